"""Where lines may be broken: between words, and between wide characters.

A word that is wider than the screen stays whole, for the terminal breaks it without tearing it: a
long address can be copied. East Asian text has no blanks; no line of it begins with a full stop.
"""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING

from rich.cells import get_character_cell_size

if TYPE_CHECKING:
    from collections.abc import Iterator

    from rich.text import Text

_NOT_FIRST = frozenset("，。、；：？！）】》」』〉〕”’…—·％,.;:?!)]}%")
_NOT_LAST = frozenset("（【《「『〈〔“‘([{")


def laid_out(text: str, width: int) -> Iterator[str]:
    """Yield plain lines as lines of at most *width* cells, each below its first word."""
    for line in text.split("\n"):
        words = line.lstrip(" ")
        indent = " " * min(len(line) - len(words), width // 2)
        ends = [*_breaks(words, width - len(indent)), None]
        for begin, end in pairwise([0, *ends]):
            part = words[begin:end]
            yield indent + (part if end is None else part.rstrip())


def wrapped(text: Text, width: int) -> list[Text]:
    """Return one line as lines of at most *width* cells, without the blanks where it is broken."""
    breaks = list(_breaks(text.plain, width))
    if not breaks:
        return [text]
    lines = list(text.divide(breaks))
    for line in lines[:-1]:
        line.rstrip()
    return lines


def _breaks(text: str, width: int) -> Iterator[int]:
    """Yield where the second line begins, and each one after it."""
    if len(text) * 2 <= width:
        return
    cells = 0  # of the line so far
    last, cells_to_last = 0, 0  # the last place where it may be broken, and the cells before it
    begin = 0
    for place, character in enumerate(text):
        if place > begin and _may_break(text, place):
            last, cells_to_last = place, cells
        cells += get_character_cell_size(character)
        if cells > width and not character.isspace() and last > begin:
            yield last
            begin = last
            cells -= cells_to_last


def _may_break(text: str, place: int) -> bool:
    before, after = text[place - 1], text[place]
    if after.isspace():
        return False
    if before.isspace():
        return True
    if get_character_cell_size(before) < 2 and get_character_cell_size(after) < 2:  # noqa: PLR2004
        return False
    return after not in _NOT_FIRST and before not in _NOT_LAST
