"""Tools that change one file: planned, shown, and then written on that very state (case R12).

The one that writes a whole file is here; the one that replaces pieces of it is `edit`.
"""

from __future__ import annotations

import asyncio
from abc import abstractmethod
from typing import Final, NamedTuple

from pydantic import Field

from domain.sizes import size
from domain.tool_use import Change, Plan, ToolOutput
from infrastructure.errors import ToolError
from infrastructure.tools.encodings import BOMS, decode
from infrastructure.tools.files import CHANGING, FileState
from infrastructure.tools.output import ToolContext, capped
from infrastructure.tools.replacing import replace
from infrastructure.tools.tool import FileArguments, FileCall, Tool

_CHANGED: Final = "{path} has changed since this was planned; nothing was written. Read it again."
_CHANGED_SINCE: Final = (
    "{path} has changed since it was read or written here; nothing was written. Read it again, so "
    "that what is new in it is not lost."
)
_UNSEEN: Final = (
    "{path} exists, and not all of it was read here; nothing was written. Read it first, so that "
    "nothing in it is lost."
)


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


class WriteInput(FileArguments):
    """A file and all of its text."""

    content: str = Field(description="All of the file's new text")


class Write(ChangingTool[WriteInput]):
    """Replaces a file in one step, or creates it; never one that has changed since it was read."""

    name = "write"
    description = (
        "Create a file, or replace all of an existing one, with exactly the text you give. Folders "
        "that are missing are created. Read a file before you replace it; where you can, change "
        "only the part of it that must change."
    )
    Input = WriteInput

    def _summary(self, call: WriteInput) -> str:
        return f"write {call.path} ({_lines(call.content)})"

    def _edition(self, call: WriteInput, old: FileState, context: ToolContext) -> Edition:
        data = _data(call, old)
        known = context.seen.get(str(old.target))
        is_lossless = not old.data or known == old.digest or old.data == data
        if known is not None and not is_lossless:
            raise ToolError(_CHANGED_SINCE.format(path=call.path))
        told = f"Wrote {_lines(call.content)} ({size(len(data))}) to {call.path}"
        unseen = "" if is_lossless else _UNSEEN.format(path=call.path)
        return Edition(data, told, is_known=True, unseen=unseen)


def _data(call: WriteInput, old: FileState) -> bytes:
    """Return the new text in the encoding, and with the line ends, of the file it replaces."""
    if not old.data or (b"\0" in old.data and not old.data.startswith(BOMS)):
        return call.content.encode()
    file = decode(old.data, call.path)
    has_only_crlf = "\r\n" in file.text and "\n" not in file.text.replace("\r\n", "")
    content = call.content
    if has_only_crlf and "\r" not in content:
        content = content.replace("\n", "\r\n")
    return file.encoded(content, call.path)


def _lines(text: str) -> str:
    number = text.count("\n") + (not text.endswith("\n") and text != "")
    return f"{number:,} line{'' if number == 1 else 's'}"
