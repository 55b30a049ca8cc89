"""The tools that look around and change nothing: ls, find and grep."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from itertools import islice, takewhile
from signal import SIGKILL
from time import monotonic
from typing import TYPE_CHECKING, Final

from pydantic import Field

from domain.text import valid
from domain.tool_use import Plan, ToolOutput
from infrastructure.errors import ToolError
from infrastructure.seals import KEY_NAME, is_key
from infrastructure.tools import searching
from infrastructure.tools.files import missing, open_regular, resolve
from infrastructure.tools.output import ToolContext, capped
from infrastructure.tools.process import environment
from infrastructure.tools.tool import Arguments, Tool
from infrastructure.tools.walking import Found, glob, walk

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

SECONDS: Final = 20.0
"""How long a walk over files, and a search of their text, may take."""


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
    _require_folder(path)
    with os.scandir(path) as entries:
        names = sorted(f"{valid(entry.name)}{_mark(entry)}" for entry in entries)
    if not names:
        return "(empty directory)"
    more = f"\n[{limit:,} of {len(names):,} names]" if len(names) > limit else ""
    return "\n".join(names[:limit]) + more


def _require_folder(path: Path) -> None:
    if not path.exists():
        raise ToolError(missing(path))
    if not path.is_dir():
        raise ToolError(f"{path} is not a directory.")


def _mark(entry: os.DirEntry[str]) -> str:
    if entry.is_symlink():
        return "@"
    return "/" if entry.is_dir(follow_symlinks=False) else ""


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
    names = (f"{one.name}{'/' if one.is_folder else ''}" for one in _files_in(start, end))
    matching = (name for name in names if wanted(name.removesuffix("/")))
    found = [valid(name) for name in islice(matching, call.limit + 1)]
    notes = []
    if len(found) > call.limit:
        notes.append(f"[The first {call.limit:,}; there are more]")
    if monotonic() > end:
        notes.append(f"[Stopped after {SECONDS:g} s: look in a smaller folder]")
    return "\n".join([*found[: call.limit], *notes]) or "(nothing found)"


def _files_in(start: Path, end: float) -> Iterator[Found]:
    """Yield what is in the folder *start*, until the moment *end*."""
    _require_folder(start)
    return takewhile(lambda _: monotonic() <= end, walk(start))


class GrepInput(Arguments):
    """What to look for, and where."""

    pattern: str = Field(min_length=1, description="Regular expression (Python's)")
    path: str = Field(".", description="File or folder to search")
    glob: str | None = Field(None, description="Which files: *.py, src/**/*.ts")
    ignore_case: bool = False
    literal: bool = Field(default=False, description="Whether pattern is plain text")
    context: int = Field(0, ge=0, le=20, description="Lines to show around each match")
    limit: int = Field(100, ge=1, description="How many matches to show at most")


class Grep(Tool[GrepInput]):
    """Searches text files by a regular expression, in a process that ends when its time is over."""

    name = "grep"
    description = (
        "Search the text of files; matches come as path:line: text. What .gitignore leaves out and "
        "binary files are left out."
    )
    needs_approval = False
    Input = GrepInput

    def _summary(self, call: GrepInput) -> str:
        return f"grep {call.pattern} in {call.path}" + (f" ({call.glob})" if call.glob else "")

    async def _plan(self, call: GrepInput, context: ToolContext) -> Plan:
        try:
            re.compile(re.escape(call.pattern) if call.literal else call.pattern)
            glob(call.glob or "*")
        except (re.error, RecursionError, OverflowError) as error:
            raise ToolError(f"This pattern cannot be used: {error}.") from None
        return await super()._plan(call, context)

    async def _run(self, call: GrepInput, context: ToolContext) -> ToolOutput:
        await self._plan(call, context)
        end = monotonic() + SECONDS
        start, names = await asyncio.to_thread(_files, resolve(call.path, context.cwd), call, end)
        process = _searching(call, start)
        loop = asyncio.get_running_loop()
        killing = loop.call_later(max(end - monotonic(), 1), process.kill)
        try:
            out, _ = await asyncio.to_thread(process.communicate, b"\0".join(names))
        finally:
            killing.cancel()
            process.kill()
        note = "(nothing found)" if not out else ""
        if process.returncode == -SIGKILL:
            note = f"[Stopped after {SECONDS:g} s: use a simpler pattern, or fewer files]"
        return ToolOutput(capped(out.decode("utf-8", "replace") + note, context))


def _searching(call: GrepInput, start: str) -> subprocess.Popen[bytes]:
    options = json.dumps(call.model_dump() | {"start": start})
    return subprocess.Popen(  # noqa: S603 - our own script
        [sys.executable, "-I", "-S", searching.__file__, options],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,
    )


def _files(path: Path, call: GrepInput, end: float) -> tuple[str, list[bytes]]:
    """Return the folder to start from, and the files to search, from there."""
    if path.is_file():
        open_regular(path).close()  # refuses what nobody is shown
        return str(path.parent), [os.fsencode(path.name)]
    wanted = glob(call.glob or "**")
    return str(path), [
        os.fsencode(one.name)
        for one in _files_in(path, end)
        if one.is_regular and wanted(one.name)
        if not (one.name.endswith(KEY_NAME) and is_key(path / one.name))
    ]
