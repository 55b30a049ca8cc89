"""The tool that searches the text of files."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
from time import monotonic
from typing import TYPE_CHECKING

from pydantic import Field

from infrastructure.errors import ToolError
from infrastructure.seals import KEY_NAME, is_key
from infrastructure.tools import searching
from infrastructure.tools.files import open_regular, resolve
from infrastructure.tools.find import SECONDS, files_in
from infrastructure.tools.output import ToolOutput, capped
from infrastructure.tools.process import environment
from infrastructure.tools.tool import Arguments, Plan, Tool
from infrastructure.tools.walking import glob

if TYPE_CHECKING:
    from pathlib import Path

    from infrastructure.tools.output import ToolContext


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
    """Searches text files by a regular expression, as git sees them."""

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
        search = _Search(call, resolve(call.path, context.cwd))
        try:
            return ToolOutput(capped(await asyncio.to_thread(search.run), context))
        except asyncio.CancelledError:
            search.stop()
            raise


class _Search:
    """One search, in a process that ends when its time is over."""

    def __init__(self, call: GrepInput, path: Path) -> None:
        self._call = call
        self._path = path
        self._process: subprocess.Popen[bytes] | None = None
        self._is_stopped = False

    def stop(self) -> None:
        self._is_stopped = True
        if self._process is not None:
            self._process.kill()

    def run(self) -> str:
        end = monotonic() + SECONDS
        start, names = self._names(end)
        options = self._call.model_dump() | {"start": start}
        command = [sys.executable, "-I", "-S", searching.__file__, json.dumps(options)]
        self._process = subprocess.Popen(  # noqa: S603 - our own script
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env=environment(),
            start_new_session=True,
        )
        note = ""
        with self._process as process:
            if self._is_stopped:
                process.kill()
            try:
                out, _ = process.communicate(b"\0".join(names), max(end - monotonic(), 1))
            except subprocess.TimeoutExpired:
                process.kill()
                out, _ = process.communicate()
                note = f"[Stopped after {SECONDS:g} s: use a simpler pattern, or fewer files]"
        return out.decode("utf-8", "replace") + note or "(nothing found)"

    def _names(self, end: float) -> tuple[str, list[bytes]]:
        """Return the folder to start from, and the files to search, from there."""
        if self._path.is_file():
            open_regular(self._path).close()  # refuses what nobody is shown
            return str(self._path.parent), [os.fsencode(self._path.name)]
        wanted = None if self._call.glob is None else glob(self._call.glob)
        return str(self._path), [
            os.fsencode(one.name)
            for one in files_in(self._path, end)
            if one.is_regular and (wanted is None or wanted.fullmatch(one.name))
            if not (one.name.endswith(KEY_NAME) and is_key(self._path / one.name))
        ]
