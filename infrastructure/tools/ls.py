"""The tool that lists a folder."""

from __future__ import annotations

import asyncio
import os
from typing import TYPE_CHECKING

from pydantic import Field

from domain.text import valid
from infrastructure.errors import ToolError
from infrastructure.tools.files import missing, resolve
from infrastructure.tools.output import ToolOutput, capped
from infrastructure.tools.tool import Arguments, Tool

if TYPE_CHECKING:
    from pathlib import Path

    from infrastructure.tools.output import ToolContext


class LsInput(Arguments):
    """A folder and how much of it."""

    path: str = Field(".", description="The folder")
    limit: int = Field(500, ge=1, description="How many names to show at most")


class Ls(Tool[LsInput]):
    """Lists the names in a folder, hidden ones too."""

    name = "ls"
    description = "List a folder, sorted, hidden files too; folders end in /, links in @."
    needs_approval = False
    Input = LsInput

    def _summary(self, call: LsInput) -> str:
        return f"ls {call.path}"

    async def _run(self, call: LsInput, context: ToolContext) -> ToolOutput:
        listed = await asyncio.to_thread(_listed, resolve(call.path, context.cwd), call.limit)
        return ToolOutput(capped(listed, context))


def _listed(path: Path, limit: int) -> str:
    try:
        with os.scandir(path) as entries:
            names = sorted(f"{valid(entry.name)}{_mark(entry)}" for entry in entries)
    except FileNotFoundError:
        raise ToolError(missing(path)) from None
    except NotADirectoryError:
        raise ToolError(f"{path} is not a directory.") from None
    if not names:
        return "(empty directory)"
    more = f"\n[{limit:,} of {len(names):,} names]" if len(names) > limit else ""
    return "\n".join(names[:limit]) + more


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir(follow_symlinks=False) else ""
