"""How tool calls look: the line that names one, what came out, and what one would change."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from app.i18n import _
from app.repl.console import is_fancy, say, show
from app.repl.plain import fitted, one_line, plain

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from app.ports import ToolOutput
    from domain.messages import JsonObject

OUTPUT_LINES = 10
READ_LINES = 5
PREVIEW_LINES = 24
COMMAND_LINES = 60
WIDEST = 400
_SUMMARY_WIDTH = 300
_INDENT = "  "


class Line(NamedTuple):
    """A plain line and its style; one that *is_whole* is shown as it is, and never wrapped."""

    text: str
    style: str = ""
    is_whole: bool = False


_COLOUR = re.compile(r"\x1b\[[0-9;:]*[mK]")
_BETWEEN = Line("⋮", "dim")
"""Stands for what two changes leave out."""


def summary_of(name: str, arguments: JsonObject) -> str:
    """Return one line for a call whose tool is not at hand: as in a log."""
    match arguments:
        case {"command": str(command)}:
            return one_line(f"$ {command}", _SUMMARY_WIDTH)
        case {"path": str(path)}:
            return one_line(f"{name} {path}", _SUMMARY_WIDTH)
        case _:
            return one_line(f"{name} {json.dumps(arguments, ensure_ascii=False)}", _SUMMARY_WIDTH)


def text_of(output: ToolOutput) -> str:
    """Return an output's text; blocks that are not text are named in brackets."""
    if isinstance(output.content, str):
        return output.content
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in output.content)


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


def show_change(
    console: Console, name: str, arguments: JsonObject, *, old: str | None = None
) -> None:
    """Print what a call is about to do, as far as its one-line summary leaves that out.

    *old* is what stands in the file that it would write, if there is one.
    """
    match name, arguments:
        case "edit", {"edits": list(edits)}:
            lines = [line for edit in edits for line in (_BETWEEN, *_edit_lines(edit))][1:]
            _show(console, shorten(lines, PREVIEW_LINES))
        case "write", {"content": str(content)} if old is not None:
            lines = [Line(_("This replaces what is in the file:"), "yellow")]
            lines += _changed_lines(old, content)
            _show(console, shorten(lines, PREVIEW_LINES))
        case "write", {"content": str(content)}:
            lines = [Line(f"+{line}", "green") for line in plain(content).rstrip("\n").split("\n")]
            _show(console, shorten(lines, PREVIEW_LINES))
        case _, {"command": str(command)} if "\n" in command or len(command) > _SUMMARY_WIDTH:
            lines = [Line(line) for line in plain(command).split("\n")]
            _show(console, shorten(lines, COMMAND_LINES), width=COMMAND_LINES * WIDEST)


def shorten(lines: Sequence[Line], most: int) -> list[Line]:
    """Return at most *most* of *lines*: the first and the last, and a line that counts the rest."""
    if len(lines) <= most:
        return list(lines)
    head = most // 2
    tail = most - head - 1
    left_out = Line(_("… +{count:,} lines").format(count=len(lines) - head - tail), "yellow dim")
    return [*lines[:head], left_out, *lines[-tail:]]


def width_of(console: Console) -> int:
    """Return how many cells an indented line may take."""
    return max(console.width - len(_INDENT) - 1, 20) if is_fancy(console) else WIDEST


def _show(console: Console, lines: Sequence[Line], width: int | None = None) -> None:
    """Print lines, indented; one wider than *width* (else: the screen) ends in ``…``."""
    for line in _indented(lines, width or width_of(console)):
        say(console, line.text, line.style)


def _indented(lines: Sequence[Line], width: int) -> Iterator[Line]:
    for line in lines:
        yield Line(f"{_INDENT}{fitted(line.text, width)}".rstrip(), line.style)


def _edit_lines(edit: Any) -> Iterator[Line]:
    if not isinstance(edit, dict):
        return
    yield from _changed_lines(str(edit.get("old_text", "")), str(edit.get("new_text", "")))


def _changed_lines(old: str, new: str) -> Iterator[Line]:
    before, after = (plain(text).split("\n") for text in (old, new))
    yield from _diff_lines(list(difflib.unified_diff(before, after, n=2, lineterm="")))


def _diff_lines(diff: Sequence[str]) -> Iterator[Line]:
    """Yield the lines of a unified diff; the call names the file, and places mean nothing here."""
    is_first = True
    for line in diff:
        if line.startswith("@@"):
            if not is_first:
                yield _BETWEEN
            is_first = False
        elif not is_first:
            yield Line(line, _diff_style(line))


def _diff_style(line: str) -> str:
    if line.startswith("+"):
        return "green"
    if line.startswith("-"):
        return "red"
    return "dim"
