"""What stands in the file that a call is about to write: whoever is asked sees what would go."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pathlib import Path

    from domain.messages import ToolUseBlock

LARGEST = 1_000_000
"""Bytes of a file that is still compared with what would take its place."""


async def overwritten(call: ToolUseBlock, cwd: Path) -> str | None:
    """Return what *call* would overwrite; None if it makes a new file, or writes none.

    A file that cannot be read, or is larger than `LARGEST`, is "": there is something.
    """
    path = call.input.get("path")
    if call.name != "write" or not isinstance(path, str):
        return None
    return await asyncio.to_thread(_content, path, cwd)


def _content(path: str, cwd: Path) -> str | None:
    from infrastructure.errors import ToolError  # noqa: PLC0415
    from infrastructure.tools.files import open_regular, resolve  # noqa: PLC0415 - only here

    with suppress(ToolError, OSError, ValueError):
        place = resolve(path, cwd)
        if not place.exists():
            return None
        with open_regular(place) as file:
            data = file.read(LARGEST + 1)
        return data.decode("utf-8", "replace") if len(data) <= LARGEST else ""
    return ""
