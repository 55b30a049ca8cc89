"""How tool calls look: the line that names one, and what came out."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING, NamedTuple

from app.i18n import _
from app.view.console import show
from app.view.differences import numbered
from app.view.plain import fitted, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from domain.messages import JsonObject

OUTPUT_LINES = 10
READ_LINES = 5
PREVIEW_LINES = 24
WIDEST = 400
_SUMMARY_WIDTH = 300


class Line(NamedTuple):
    """A plain line and its style; one that *is_whole* is shown as it is, and never wrapped."""

    text: str
    style: str = ""
    is_whole: bool = False


_COLOUR = re.compile(r"\x1b\[[0-9;:]*[mK]")


def summary_of(name: str, arguments: JsonObject) -> str:
    """Return one line for a call whose tool is not at hand: as in a log."""
    match arguments:
        case {"command": str(command)}:
            return one_line(f"$ {command}", _SUMMARY_WIDTH)
        case {"path": str(path)}:
            return one_line(f"{name} {path}", _SUMMARY_WIDTH)
        case _:
            return one_line(f"{name} {json.dumps(arguments, ensure_ascii=False)}", _SUMMARY_WIDTH)


def show_output(console: Console, name: str, text: str, *, is_error: bool) -> None:
    """Print what a call gave back, shortened: its first and its last lines."""
    for line in output_lines(name, text, is_error=is_error):
        show(console, line.text, line.style)


def output_lines(name: str, text: str, *, is_error: bool) -> Iterator[Line]:
    """Yield what a call gave back, shortened: its first and its last lines.

    They stand at column 0, and the terminal breaks the long ones: as they are they are copied.
    """
    lines = plain(_without_colours(text)).expandtabs(4).strip("\n").split("\n")
    if is_error:
        shown = shorten([Line(line, "red") for line in lines], OUTPUT_LINES)
    elif name == "edit":
        shown = shorten(list(_diff_lines(lines)), PREVIEW_LINES)
    else:
        most = READ_LINES if name == "read" else OUTPUT_LINES
        shown = shorten([Line(line, "dim") for line in lines], most)
    for line in shown:
        yield Line(fitted(line.text, WIDEST).rstrip(), line.style, is_whole=True)


def _without_colours(text: str) -> str:
    """Return what a terminal would show of an output with colours, and with lines written over.

    All other control characters are left, to be made visible: they are no decoration.
    """
    lines = _COLOUR.sub("", text).split("\n")
    return "\n".join(line.rstrip("\r").rpartition("\r")[2] for line in lines)


def shorten(lines: Sequence[Line], most: int) -> list[Line]:
    """Return at most *most* of *lines*: the first and the last, and a line that counts the rest."""
    if len(lines) <= most:
        return list(lines)
    head = most // 2
    tail = most - head - 1
    left_out = Line(_("… +{count:,} lines").format(count=len(lines) - head - tail), "yellow dim")
    return [*lines[:head], left_out, *lines[-tail:]]


def _diff_lines(diff: Sequence[str]) -> Iterator[Line]:
    for row in numbered(diff):
        yield Line(f"{row.number} {row.sign}{row.text}".rstrip(), row.style)
