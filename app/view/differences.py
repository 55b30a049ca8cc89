"""What becomes of a text, line by line, with line numbers and some lines around each change."""

from __future__ import annotations

import difflib
import re
from itertools import groupby
from typing import TYPE_CHECKING, NamedTuple

from app.i18n import _
from app.view.visible import MOST_BLANK_LINES, blank_lines, is_blank, visible

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

MOST_COMPARED = 2_000_000_000
"""Pairs of lines up to which two texts are compared; beyond that all of the old one goes."""
_AROUND = 3
_HUNK = re.compile(r"@@ -(\d+)(?:,\d+)? \+(\d+)(?:,\d+)? @@")
_LINE = re.compile(r"[^\n]*\n|[^\n]+")
_STYLES = {"+": "green", "-": "red"}


class Row(NamedTuple):
    """A line of a change: its number, "+", "-" or a blank, its text, and how it looks."""

    number: str
    sign: str
    text: str
    style: str = "dim"


def rows_of(before: str, after: str) -> list[Row]:
    """Return what changes between two texts: every character visible, blank lines counted."""
    rows = numbered(_diff(_LINE.findall(before), _LINE.findall(after)))
    folded: list[Row] = []
    for (_sign, blank), group in groupby(rows, lambda row: (row.sign, is_blank(row.text))):
        several = list(group)
        if blank and len(several) > MOST_BLANK_LINES:
            folded.append(several[0]._replace(text=blank_lines(len(several))))
        else:
            folded += (row._replace(text=_seen(row.text)) for row in several)
    return folded


def numbered(diff: Iterable[str]) -> list[Row]:
    """Return the lines of a unified diff with their numbers: those of the new text, or the old."""
    rows: list[tuple[int, str, str]] = []
    old = new = 0
    for line in diff:
        if line.startswith("@") and (hunk := _HUNK.match(line)):
            if rows:
                rows.append((0, " ", "⋮\n"))
            old, new = int(hunk[1]), int(hunk[2])
        elif line.startswith("\\"):
            rows.append((0, " ", line))
        elif old or new:  # no longer the names of the files
            sign = line[:1] or " "
            rows.append((old if sign == "-" else new, sign, line[1:]))
            old, new = old + (sign != "+"), new + (sign != "-")
    width = len(str(max((number for number, _sign, _text in rows), default=0)))
    return [
        Row(f"{number or '':>{width}}", sign, text, _STYLES.get(sign, "dim"))
        for number, sign, text in rows
    ]


def _diff(before: list[str], after: list[str]) -> Iterator[str]:
    """Yield a unified diff; what the two begin and end with is not compared."""
    first = max(_alike(before, after) - _AROUND, 0)
    before, after = before[first:], after[first:]
    end = max(_alike(before[::-1], after[::-1]) - _AROUND, 0)
    before, after = before[: len(before) - end], after[: len(after) - end]
    if not before or not after or len(before) * len(after) > MOST_COMPARED:
        yield f"@@ -{first + 1} +{first + 1} @@"
        yield from (f"-{line}" for line in before)
        yield from (f"+{line}" for line in after)
        return
    for line in difflib.unified_diff(before, after, n=_AROUND):
        hunk = _HUNK.match(line) if line.startswith("@") else None
        yield f"@@ -{int(hunk[1]) + first} +{int(hunk[2]) + first} @@" if hunk else line


def _alike(one: list[str], other: list[str]) -> int:
    """Return how many lines the two begin with alike."""
    pairs = enumerate(zip(one, other, strict=False))
    return next((number for number, (a, b) in pairs if a != b), min(len(one), len(other)))


def _seen(text: str) -> str:
    end = "" if text.endswith("\n") else _("⟨no line feed at the end⟩")
    return visible(text.removesuffix("\n")) + end
