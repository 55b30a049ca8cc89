"""Rows of any values as lines: a table, or where that has no room a list of each row's cells."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from app.view.lines import columns
from app.view.plain import cells, fitted, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

Cell: TypeAlias = "int | float | str | bytes | None"
_NARROWEST = 12
"""Cells of the screen: a text that is cut to fewer says nothing."""

_ALIGNED = 60
"""Cells of a column in a pipe, where nothing is cut: a longer text stands out of its column."""

_WORD = 48
"""Cells of the longest word that is not cut: half an id, or half a time, is worth nothing."""

_TALLEST = 5
"""Lines of the screen that a cell has in a list."""

_GAP = 2


def shown(cell: Cell) -> str:
    """Return the text of a cell: exact numbers, bytes as SQL has them, texts as they are."""
    match cell:
        case None:
            return "NULL"
        case float():
            return f"{cell:.15g}"
        case bytes():
            return f"x'{cell.hex()}'"
        case _:
            return str(cell)


def table(names: Sequence[str], rows: Sequence[Sequence[Cell]], room: int | None) -> Iterator[str]:
    """Yield the lines of a table with a head: not wider than *room*, if there is an end to it."""
    lines = [list(map(_line, names)), *([_line(shown(cell)) for cell in row] for row in rows)]
    texts = [n for n, column in enumerate(zip(*rows, strict=True)) if any(map(_is_text, column))]
    if room is None:
        yield from columns(lines, left=texts, widest=_ALIGNED)
        return
    widths = [max(map(cells, column)) for column in zip(*lines, strict=True)]
    flexible = [n for n in texts if any(not _is_word(line[n]) for line in lines)]
    widest = _widest(widths, flexible, room)
    if widest is None:
        yield from _listed(lines, room)
        return
    for line in lines:
        for number in flexible:
            line[number] = fitted(line[number], widest)
    yield from columns(lines, left=texts)


def _is_text(cell: Cell) -> bool:
    return isinstance(cell, str | bytes)


def _is_word(text: str) -> bool:
    return " " not in text and cells(text) <= _WORD


def _line(text: str) -> str:
    return " ".join(plain(text).split())


def _widest(widths: Sequence[int], texts: Sequence[int], room: int) -> int | None:
    """Return how many cells each of the columns *texts* may have, so that all columns fit *room*.

    None if that is too few.
    """
    left = room - _GAP * (len(widths) - 1)
    left -= sum(width for number, width in enumerate(widths) if number not in texts)
    needed = sorted(widths[number] for number in texts)
    for number, width in enumerate(needed):
        share = left // (len(needed) - number)
        if width > share:
            return share if share >= _NARROWEST else None
        left -= width
    return room if left >= 0 else None


def _listed(lines: Sequence[Sequence[str]], room: int) -> Iterator[str]:
    """Yield each row as lines, a name and a cell each, with an empty line between two rows."""
    names, *rows = lines
    width = max(map(cells, names))
    for number, row in enumerate(rows):
        if number:
            yield ""
        for name, cell in zip(names, row, strict=True):
            line = f"{name}{' ' * (width - cells(name))}  {cell}"
            yield fitted(line, _TALLEST * room)
