"""The tool that writes a whole file."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from pydantic import Field

from infrastructure.tools.files import CHANGING, replace, resolve
from infrastructure.tools.output import ToolOutput, size
from infrastructure.tools.tool import Arguments, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from infrastructure.tools.output import ToolContext


class WriteInput(Arguments):
    """A file and all of its text."""

    path: str = Field(description="Path of the file, absolute or from the working directory")
    content: str = Field(description="All of the file's new text")


class Write(Tool[WriteInput]):
    """Replaces a file in one step, or creates it."""

    name = "write"
    description = (
        "Create a file, or replace all of an existing one, with exactly the text you give. Folders "
        "that are missing are created. To change part of a file, use edit."
    )
    Input = WriteInput

    def _summary(self, call: WriteInput) -> str:
        return f"write {call.path} ({_lines(call.content)})"

    async def _run(self, call: WriteInput, context: ToolContext) -> ToolOutput:
        data = call.content.encode()
        await asyncio.to_thread(_write, resolve(call.path, context.cwd), data)
        return ToolOutput(f"Wrote {_lines(call.content)} ({size(len(data))}) to {call.path}")


def _write(path: Path, data: bytes) -> None:
    with CHANGING:
        replace(path, data)


def _lines(text: str) -> str:
    number = text.count("\n") + (not text.endswith("\n") and text != "")
    return f"{number:,} line{'' if number == 1 else 's'}"
