"""Markdown that is still arriving: what of it is finished, and what may yet change."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.repl.plain import plain

if TYPE_CHECKING:
    from markdown_it import MarkdownIt
    from markdown_it.token import Token


class MarkdownStream:
    """Cuts Markdown that is still arriving into finished blocks and an unfinished tail.

    A block is finished when a whole line after it begins another one: half a line decides
    nothing, since ``2`` may become the ``2.`` of the same list.
    """

    def __init__(self) -> None:
        self.tail = ""
        self._held = ""
        self._parser: MarkdownIt | None = None

    def feed(self, text: str) -> str:
        """Take *text*; return the blocks that it finished (or nothing), which leave the tail."""
        text = self._held + text
        self._held = "\r" if text.endswith("\r") else ""
        self.tail += plain(text.removesuffix("\r") if self._held else text)
        if "\n" not in text:
            return ""
        end = self._end_of_finished()
        finished, self.tail = self.tail[:end], self.tail[end:]
        return finished.strip("\n")

    def finish(self) -> str:
        """Return what is left; the stream is then as new."""
        rest, self.tail, self._held = self.tail, "", ""
        return rest.strip("\n")

    def _parse(self, text: str) -> list[Token]:
        if self._parser is None:
            from markdown_it import MarkdownIt  # noqa: PLC0415 - not before there is an answer

            self._parser = MarkdownIt().enable("strikethrough").enable("table")
        return self._parser.parse(text)

    def _end_of_finished(self) -> int:
        whole = self.tail[: self.tail.rfind("\n") + 1]
        starts = [
            token.map[0]
            for token in self._parse(whole)
            if token.level == 0 and token.nesting >= 0 and token.map
        ]
        if len(starts) < 2:  # noqa: PLR2004 - the only block may go on
            return 0
        lines = whole.split("\n")[: starts[-1]]
        return sum(len(line) + 1 for line in lines)
