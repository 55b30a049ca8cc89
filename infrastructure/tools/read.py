"""The tool that shows a file: text by lines, or an image."""

from __future__ import annotations

import asyncio
import base64
import os
from typing import TYPE_CHECKING, BinaryIO, Final

from pydantic import Field

from domain.images import HEADER_BYTES, Image, identify
from infrastructure.errors import ToolError
from infrastructure.tools.files import digest, open_regular, resolve
from infrastructure.tools.output import MAX_BYTES, MAX_LINES, ToolOutput, size
from infrastructure.tools.tool import Arguments, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from infrastructure.tools.output import ToolContext

# What the API takes; the first is counted in base64.
_IMAGE_BYTES: Final = 5 * 1024 * 1024
_IMAGE_PIXELS: Final = 8000

_SNIFFED: Final = 8 * 1024
_CHUNK: Final = 1024 * 1024
_BOM: Final = b"\xef\xbb\xbf"


class ReadInput(Arguments):
    """A file and which of its lines."""

    path: str = Field(description="Path of the file, absolute or from the working directory")
    offset: int = Field(1, ge=1, description="First line to show, counted from 1")
    limit: int = Field(MAX_LINES, ge=1, description="How many lines to show at most")


class Read(Tool[ReadInput]):
    """Shows a regular file and changes nothing."""

    name = "read"
    description = (
        "Read a file. Text is returned as it is, without line numbers, up to 2,000 lines or "
        "50 KiB a call; a note at the end tells the offset to go on with. Images (png, jpg, gif, "
        "webp) are shown to you. Use it rather than cat or sed. For directories use bash: ls."
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
        if image := identify(start):
            return _image(path, file, image)
        if b"\0" in start:
            length = size(os.fstat(file.fileno()).st_size)
            raise ToolError(
                f"{path} is binary ({length}). Look at it with bash: file, strings, xxd | head",
            )
        return _text(path, file, call)


def _text(path: Path, file: BinaryIO, call: ReadInput) -> ToolOutput:
    """Return whole lines from the offset on, as many as the cap allows, and how to go on."""
    _go_to_line(path, file, call.offset)
    original = data = file.read(MAX_BYTES + len(_BOM) + 1)
    if call.offset == 1:
        data = data.removeprefix(_BOM)
        if not data:
            return _whole(path, original, "(empty file)")
    shown: list[str] = []
    room = MAX_BYTES
    wanted = min(call.limit, MAX_LINES)
    at_end = not file.read(1)
    lines = data.removesuffix(b"\n").split(b"\n") if at_end else data.split(b"\n")[:-1]
    for line in lines[:wanted]:
        text = line.decode(errors="replace") + "\n"
        room -= len(text.encode())
        if room < 0:
            break
        shown.append(text)
    following = call.offset + len(shown)
    if not shown:
        return ToolOutput(_giant_line(path, data, call.offset))
    if at_end and len(shown) == len(lines):
        # The last line ends as it does in the file.
        text = "".join(shown) if data.endswith(b"\n") else "".join(shown)[:-1]
        text = text if text.strip() else "(only blank lines)"
        return _whole(path, original, text) if call.offset == 1 else ToolOutput(text)
    length = size(os.fstat(file.fileno()).st_size)
    return ToolOutput(
        f"{''.join(shown)}\n[Lines {call.offset:,}-{following - 1:,} of a file of {length}. "
        f"Go on with offset={following}]"
    )


def _whole(path: Path, data: bytes, text: str) -> ToolOutput:
    """Return a file that the model knows whole from here on (case R12)."""
    return ToolOutput(text, seen={os.path.realpath(path): digest(data)})


def _giant_line(path: Path, data: bytes, number: int) -> str:
    line = data.split(b"\n")[0].decode(errors="replace").encode()[: MAX_BYTES - 1024]
    return (
        f"{line.decode(errors='ignore')}\n\n[Line {number:,} is longer than 50 KiB; this is its "
        f"beginning. For its rest use bash, for example: sed -n {number}p '{path}' | cut -c "
        f"50000-90000. The next line is at offset={number + 1}]"
    )


def _go_to_line(path: Path, file: BinaryIO, number: int) -> None:
    """Put *file* at the start of a line; only a newline ends a line (case E1)."""
    file.seek(0)
    position, passed, last = 0, 0, b"\n"
    while passed < number - 1:
        chunk = file.read(_CHUNK)
        if not chunk:
            raise _past_the_end(path, number, passed + (not last.endswith(b"\n")))
        newlines = chunk.count(b"\n")
        if passed + newlines < number - 1:
            passed += newlines
            position += len(chunk)
            last = chunk
            continue
        end = -1
        for _ in range(number - 1 - passed):
            end = chunk.index(b"\n", end + 1)
        passed, position = number - 1, position + end + 1
    file.seek(position)
    if number > 1 and not file.read(1):
        raise _past_the_end(path, number, passed)
    file.seek(position)


def _past_the_end(path: Path, number: int, lines: int) -> ToolError:
    plural = "" if lines == 1 else "s"
    return ToolError(f"Offset {number} is past the end: {path} has {lines:,} line{plural}.")


def _image(path: Path, file: BinaryIO, image: Image) -> ToolOutput:
    """Return the image as a block; one that the API refuses would fail every later turn (I4)."""
    length = os.fstat(file.fileno()).st_size
    if length * 4 / 3 > _IMAGE_BYTES:
        raise ToolError(
            f"{path} is an image of {size(length)}, too large to be shown (5 MiB as base64, so "
            f"about 3.9 MB). Make a smaller copy with bash and read that.",
        )
    file.seek(0)
    data = file.read(_IMAGE_BYTES)
    known = identify(data[:HEADER_BYTES]) or image
    if known.pixels is None:
        raise ToolError(f"{path} starts like {image.media_type} but is no image that can be read.")
    width, height = known.pixels
    if max(width, height) > _IMAGE_PIXELS:
        raise ToolError(
            f"{path} is {width} x {height} pixels; at most {_IMAGE_PIXELS} a side can be shown. "
            f"Make a smaller copy with bash and read that.",
        )
    source = {
        "type": "base64",
        "media_type": image.media_type,
        "data": base64.b64encode(data).decode(),
    }
    note = f"{path.name}: {image.media_type}, {width} x {height} pixels, {size(length)}"
    return ToolOutput([{"type": "text", "text": note}, {"type": "image", "source": source}])
