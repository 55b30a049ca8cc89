"""Columns that stand below one another, also where characters take two cells."""

from __future__ import annotations

from itertools import zip_longest
from typing import TYPE_CHECKING

from app.view.plain import cells

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence


def columns(rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,)) -> list[str]:
    """Return *rows* as lines: the columns in *left* begin, the others end, below one another."""
    widths = [max(map(cells, column)) for column in zip_longest(*rows, fillvalue="")]
    lines = []
    for row in rows:
        padded = []
        for number, (text, width) in enumerate(zip(row, widths, strict=False)):
            blanks = " " * (width - cells(text))
            padded.append(text + blanks if number in left else blanks + text)
        lines.append("  ".join(padded).rstrip())
    return lines
