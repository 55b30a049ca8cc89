"""Tools that change one file: planned, shown, and then written on that very state (case R12)."""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import TYPE_CHECKING, NamedTuple

from domain.tool_use import Change, Plan, ToolOutput
from infrastructure.errors import ToolError
from infrastructure.tools.encodings import decode
from infrastructure.tools.files import CHANGING, FileState
from infrastructure.tools.output import capped
from infrastructure.tools.replacing import replace
from infrastructure.tools.tool import FileCall, Tool

if TYPE_CHECKING:
    from infrastructure.tools.output import ToolContext

_CHANGED = "{path} has changed since this was planned; nothing was written. Read it again."


class Edition(NamedTuple):
    """What becomes of a file.

    Attributes:
        data: All that is to stand in it.
        told: What the model is told when it stands there.
        is_known: Whether the model then knows the file whole.
        unseen: Why this may not be written unless a person was shown it; "" if it may.
    """

    data: bytes
    told: str
    is_known: bool
    unseen: str = ""


class ChangingTool(Tool[FileCall]):
    """Makes a new edition of one file, and writes it over the state that it was made from."""

    @abstractmethod
    def _edition(self, call: FileCall, old: FileState, context: ToolContext) -> Edition:
        """Return what *call* makes of *old*; may raise `ToolError` and `OSError`."""

    async def _plan(self, call: FileCall, context: ToolContext) -> Plan:
        return await asyncio.to_thread(self._planned, call, context)

    async def _run(self, call: FileCall, context: ToolContext) -> ToolOutput:
        return await asyncio.to_thread(self._written, call, context)

    def _planned(self, call: FileCall, context: ToolContext) -> Plan:
        old = FileState.now(call.path, context.cwd)
        edition = self._edition(call, old, context)
        before = None if old.data is None else _shown(old.data, call.path)
        change = Change(call.path, old.target, before, _shown(edition.data, call.path))
        unseen = ToolOutput(edition.unseen, is_error=True) if edition.unseen else None
        return Plan(change=change, state=old, unseen=unseen)

    def _written(self, call: FileCall, context: ToolContext) -> ToolOutput:
        with CHANGING:
            old = FileState.now(call.path, context.cwd)
            if context.state not in (None, old):
                raise ToolError(_CHANGED.format(path=old.path))
            edition = self._edition(call, old, context)
            replace(old, edition.data)
        new = FileState(old.path, old.target, edition.data)
        seen = {str(new.target): new.digest} if edition.is_known else {}
        return ToolOutput(capped(edition.told, context), seen=seen)


def _shown(data: bytes, path: str) -> str:
    """Return *data* as a person is shown it."""
    try:
        return decode(data, path).shown()[0]
    except ToolError:  # no text
        return data.decode(errors="replace")
