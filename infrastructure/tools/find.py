"""The tool that finds files by their names."""

from __future__ import annotations

import asyncio
import re
from itertools import islice, takewhile
from time import monotonic
from typing import TYPE_CHECKING, Final

from pydantic import Field

from domain.text import valid
from infrastructure.errors import ToolError
from infrastructure.tools.files import missing, resolve
from infrastructure.tools.output import ToolOutput, capped
from infrastructure.tools.tool import Arguments, Tool
from infrastructure.tools.walking import Found, glob, walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infrastructure.tools.output import ToolContext

SECONDS: Final = 20.0
"""How long a walk over files may take."""


class FindInput(Arguments):
    """Which names, and where."""

    pattern: str = Field(min_length=1, description="Glob of the name, or of the path: src/**/*.py")
    path: str = Field(".", description="The folder to look in")
    limit: int = Field(1000, ge=1, description="How many paths to show at most")


class Find(Tool[FindInput]):
    """Finds files and folders by a glob, as git sees them."""

    name = "find"
    description = "Find files and folders by name. What .gitignore leaves out is left out."
    needs_approval = False
    Input = FindInput

    def _summary(self, call: FindInput) -> str:
        return f"find {call.pattern} in {call.path}"

    async def _run(self, call: FindInput, context: ToolContext) -> ToolOutput:
        found = await asyncio.to_thread(_found, resolve(call.path, context.cwd), call)
        return ToolOutput(capped(found, context))


def _found(start: Path, call: FindInput) -> str:
    try:
        wanted = glob(call.pattern)
    except re.error as error:
        raise ToolError(f"{call.pattern!r} is no glob: {error}.") from None
    end = monotonic() + SECONDS
    names = (f"{one.name}{'/' if one.is_folder else ''}" for one in files_in(start, end))
    matching = (name for name in names if wanted.fullmatch(name.removesuffix("/")))
    found = [valid(name) for name in islice(matching, call.limit + 1)]
    notes = []
    if len(found) > call.limit:
        notes.append(f"[The first {call.limit:,}; there are more]")
    if monotonic() > end:
        notes.append(f"[Stopped after {SECONDS:g} s: look in a smaller folder]")
    return "\n".join([*found[: call.limit], *notes]) or "(nothing found)"


def files_in(start: Path, end: float) -> Iterator[Found]:
    """Yield what is in the folder *start*, until the moment *end*.

    Raises:
        ToolError: It is not there, or no folder.
    """
    if not start.exists():
        raise ToolError(missing(start))
    if not start.is_dir():
        raise ToolError(f"{start} is not a directory.")
    return takewhile(lambda _: monotonic() <= end, walk(start))
