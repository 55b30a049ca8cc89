"""Markdown that is still arriving: what of it is finished, and what may yet change."""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING

from app.view.plain import plain

if TYPE_CHECKING:
    from markdown_it import MarkdownIt

_SMALL = 4_000
_GROWTH = 1.3
"""A long block is parsed again when it has grown by so much: a few times, not for each line."""


@cache
def parser() -> MarkdownIt:
    """Return what finds the blocks of a text."""
    from markdown_it import MarkdownIt  # noqa: PLC0415 - not before there is an answer

    return MarkdownIt().enable("strikethrough").enable("table")


class MarkdownStream:
    """Cuts Markdown that is still arriving into finished blocks and an unfinished tail.

    A block is finished when a whole line after it begins another one: half a line decides
    nothing, since ``2`` may become the ``2.`` of the same list.
    """

    def __init__(self) -> None:
        self.tail = ""
        self._held = ""
        self._looked_at = 0  # so many characters of the tail have been parsed in vain

    def feed(self, text: str) -> str:
        """Take *text*; return the blocks that it finished (or nothing), which leave the tail."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self.tail += plain(text.removesuffix("\r") if self._held else text)
        if "\n" not in text or len(self.tail) < self._looked_at * _GROWTH:
            return ""
        end = self._end_of_finished()
        finished, self.tail = self.tail[:end], self.tail[end:]
        self._looked_at = len(self.tail) if len(self.tail) > _SMALL else 0
        return finished.strip("\n")

    def finish(self) -> str:
        """Return what is left; the stream is then as new."""
        rest, self.tail, self._held, self._looked_at = self.tail, "", "", 0
        return rest.strip("\n")

    def _end_of_finished(self) -> int:
        whole = self.tail[: self.tail.rfind("\n") + 1]
        starts = [
            token.map[0]
            for token in parser().parse(whole)
            if token.level == 0 and token.nesting >= 0 and token.map
        ]
        if len(starts) < 2:  # noqa: PLR2004 - the only block may go on
            return 0
        lines = whole.split("\n")[: starts[-1]]
        return sum(len(line) + 1 for line in lines)
