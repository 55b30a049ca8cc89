"""The tool that shows a file: text by lines, or an image."""

from __future__ import annotations

import asyncio
import os
from itertools import islice
from typing import TYPE_CHECKING, BinaryIO, Final

from pydantic import Field

from domain.images import identify
from domain.sizes import size
from domain.tool_use import ToolOutput
from infrastructure.errors import ToolError
from infrastructure.tools import images
from infrastructure.tools.encodings import decode, lines_of
from infrastructure.tools.files import LARGEST, digest, open_regular, resolve
from infrastructure.tools.output import MAX_BYTES, MAX_LINES, ToolContext
from infrastructure.tools.tool import FileArguments, Tool

if TYPE_CHECKING:
    from collections.abc import Iterable
    from pathlib import Path

_SNIFFED: Final = 8 * 1024
_PIECE: Final = 1024 * 1024


class ReadInput(FileArguments):
    """A file and which of its lines."""

    offset: int = Field(1, ge=1, description="First line to show, counted from 1")
    limit: int = Field(MAX_LINES, ge=1, description="How many lines to show at most")
    numbers: bool = Field(default=False, description="Whether each line begins with its number")


class Read(Tool[ReadInput]):
    """Shows a regular file and changes nothing."""

    name = "read"
    description = (
        "Read a file. Text is returned as it is, up to 2,000 lines or 50 KiB a call; a note at the "
        "end says how many lines there are, and the offset to go on with. Images (png, jpg, gif, "
        "webp) are shown to you. Use it rather than cat or sed."
    )
    needs_approval = False
    Input = ReadInput

    def _summary(self, call: ReadInput) -> str:
        given = call.model_fields_set
        if not given & {"offset", "limit"}:
            return f"read {call.path}"
        last = str(call.offset + call.limit - 1) if "limit" in given else ""
        return f"read {call.path}:{call.offset}-{last}"

    async def _run(self, call: ReadInput, context: ToolContext) -> ToolOutput:
        return await asyncio.to_thread(_read, resolve(call.path, context.cwd), call)


def _read(path: Path, call: ReadInput) -> ToolOutput:
    with open_regular(path) as file:
        start = file.read(_SNIFFED)
        length = os.fstat(file.fileno()).st_size
        if identify(start):
            return ToolOutput(images.blocks(path, start + file.read(images.MOST_BYTES), length))
        data = start + file.read(LARGEST + 1 - len(start))
        if len(data) > LARGEST:
            return ToolOutput(_text_of_giant(path, file, call, length))
    return _text(path, data, call)


def _text(path: Path, data: bytes, call: ReadInput) -> ToolOutput:
    """Return whole lines from the offset on, as many as the cap allows, and how to go on."""
    text, remark = decode(data, path).shown()
    lines = lines_of(text)
    first = call.offset - 1
    if first > max(len(lines) - 1, 0):
        raise _past_the_end(path, call.offset, len(lines))
    shown, following = _fitting(lines[first : first + call.limit], call)
    if following <= len(lines):
        whole = f" of {len(lines):,}"
        return ToolOutput(_with(shown, _how_to_go_on(path, call, following, whole), remark))
    if not text.strip():
        shown = "(only blank lines)" if text else "(empty file)"
    seen = {} if first else {os.path.realpath(path): digest(data)}
    return ToolOutput(_with(shown, remark), seen=seen)


def _fitting(lines: Iterable[str], call: ReadInput) -> tuple[str, int]:
    """Return as many lines as a model is shown, and the number of the one that follows."""
    shown: list[str] = []
    room = MAX_BYTES
    for number, line in enumerate(islice(lines, min(call.limit, MAX_LINES)), call.offset):
        text = f"{number:>6}\t{line}" if call.numbers else line
        room -= len(text.encode())
        if room < 0:
            break
        shown.append(text)
    if not shown and room < 0:
        return line.encode()[: MAX_BYTES - 1024].decode(errors="ignore"), call.offset
    return "".join(shown), call.offset + len(shown)


def _how_to_go_on(path: Path, call: ReadInput, following: int, whole: str) -> str:
    if following > call.offset:
        return f"Lines {call.offset:,}-{following - 1:,}{whole}. Go on with offset={following}"
    return (
        f"Line {call.offset:,} is longer than 50 KiB; this is its beginning. For its rest "
        f"use a command, for example: sed -n {call.offset}p '{path}' | cut -c 50000-90000. The "
        f"next line is at offset={call.offset + 1}"
    )


def _with(text: str, *notes: str) -> str:
    """Return *text* and what is to be said of it, apart from it."""
    end = "".join(f"\n[{note}]" for note in notes if note)
    return text if not end else f"{text}{'' if text.endswith(chr(10)) else chr(10)}{end}"


def _text_of_giant(path: Path, file: BinaryIO, call: ReadInput, length: int) -> str:
    """Return lines of a file that is too large to be taken whole, as UTF-8; it is not counted."""
    _go_to_line(path, file, call.offset)
    data = file.read(MAX_BYTES + 1)
    lines = lines_of(data.decode(errors="replace"))
    shown, following = _fitting(lines if len(data) <= MAX_BYTES else lines[:-1] or lines, call)
    return _with(shown, _how_to_go_on(path, call, following, f" of a file of {size(length)}"))


def _go_to_line(path: Path, file: BinaryIO, number: int) -> None:
    """Put *file* at the start of a line; only a newline ends a line."""
    file.seek(0)
    passed = 0
    while passed < number - 1:
        piece = file.readline(_PIECE)
        if not piece:
            raise _past_the_end(path, number, passed)
        passed += piece.endswith(b"\n")


def _past_the_end(path: Path, number: int, lines: int) -> ToolError:
    plural = "" if lines == 1 else "s"
    return ToolError(f"Offset {number} is past the end: {path} has {lines:,} line{plural}.")
