"""The tool that writes a whole file."""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from pydantic import Field

from infrastructure.errors import ToolError
from infrastructure.tools.changing import ChangingTool, Edition
from infrastructure.tools.encodings import BOMS, decode
from infrastructure.tools.output import size
from infrastructure.tools.tool import FileArguments

if TYPE_CHECKING:
    from infrastructure.tools.files import FileState
    from infrastructure.tools.output import ToolContext

_CHANGED: Final = (
    "{path} has changed since it was read or written here; nothing was written. Read it again, so "
    "that what is new in it is not lost."
)
_UNSEEN: Final = (
    "{path} exists, and not all of it was read here; nothing was written. Read it first, so that "
    "nothing in it is lost."
)


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
            raise ToolError(_CHANGED.format(path=call.path))
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
