"""What a tool gives back, what it is given, and the one cap on how much of it a model sees."""

from __future__ import annotations

import asyncio
import codecs
import os
import re
from dataclasses import dataclass, field
from itertools import count
from typing import TYPE_CHECKING, Final, Self

from domain.sizes import size
from domain.text import valid
from infrastructure.jsonl import disk
from infrastructure.safe_files import reason_of
from infrastructure.secret_shapes import Mask
from infrastructure.secrets import values_in_outputs
from infrastructure.tools.encodings import decode
from infrastructure.tools.terminal import Terminal, shown

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from pathlib import Path

    from domain.tool_use import ToolOutput

MAX_LINES: Final = 2_000
MAX_BYTES: Final = 50 * 1024
_TELLING: Final = 4
"""How many undecodable characters tell an encoding."""
_MOST_RAW: Final = 4 * MAX_BYTES
SIDE_FILE_BYTES: Final = 100_000_000

# The end of an output says how it went, so it gets three quarters of the room.
_HEAD_SHARE: Final = 4
_NOTICE_LINES: Final = 4
_NOTICE_BYTES: Final = 512


class StoppedError(asyncio.CancelledError):
    """A call was stopped, for good: *output* is what it came to until then."""

    def __init__(self, output: ToolOutput) -> None:
        super().__init__()
        self.output = output


@dataclass(frozen=True, slots=True)
class ToolContext:
    """The surroundings of one call.

    Attributes:
        cwd: Where relative paths start and commands run.
        side_files: Folder for outputs too long to be shown; created (0700) when first needed.
        tool_use_id: Names the side file; it comes from a model and is never trusted as a path.
        on_output: Called with output as it arrives, in the thread of the event loop.
        seen: The files that the model knows whole, and the digest of each as it knows it.
        state: The state of the file on which the call was planned; no other is changed.
        masks: Whether secrets are masked, also in the side file.
        masked: The names of those that were.
    """

    cwd: Path
    side_files: Path
    tool_use_id: str
    on_output: Callable[[str], None] = lambda _text: None
    seen: Mapping[str, str] = field(default_factory=dict)
    state: object = None
    masks: bool = True
    masked: list[str] = field(default_factory=list)


def capped(text: str, context: ToolContext) -> str:
    """Return *text*, or its head and tail if it is longer than a model is shown (case I5)."""
    with Capture(context) as capture:
        capture.feed(valid(text).encode())
    return capture.text()


class Capture:
    """Output of any length in bounded memory: its head, its tail, and all of it in a side file.

    The side file appears only when the cap is passed, and gets the bytes as they came, but for
    known secrets. With *is_terminal*, the head and the tail are of what a terminal would show in
    the end.
    """

    def __init__(self, context: ToolContext, *, is_terminal: bool = False) -> None:
        self._context = context
        self._is_terminal = is_terminal
        self._mask = Mask(values_in_outputs()) if context.masks else None
        self._decoder = codecs.getincrementaldecoder("utf-8")("replace")
        self._terminal = Terminal()
        self._raw = bytearray()
        self._side_file: _SideFile | None = None
        self._forget()

    def _forget(self) -> None:
        self._head = bytearray()
        self._tail = bytearray()
        self._bytes = self._newlines = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Take what was held back until its end might come; nothing comes any more."""
        self.rest()
        self._settle(self._decoder.decode(b"", final=True))
        self._take(self._terminal.rest())
        self._use_legacy_encoding()
        if self._side_file is not None:
            self._side_file.close()

    def rest(self) -> str:
        """Take, and return, what might have become a secret; nothing comes any more."""
        if self._mask is None:
            return ""
        text = self._accept(self._mask.rest())
        self._context.masked.extend(self._mask.found)
        self._mask = None
        return text

    def feed(self, data: bytes) -> str:
        """Take *data* and return the text in it; half a character waits for its other half.

        So does what may become a secret.
        """
        return self._accept(data if self._mask is None else self._mask.feed(data))

    def _accept(self, data: bytes) -> str:
        text = self._decoder.decode(data)
        self._settle(text)
        if self._side_file is not None:
            self._side_file.write(data)
        else:
            self._raw += data
            if self._is_cut or len(self._raw) > _MOST_RAW:
                self._side_file = _SideFile(self._context)
                self._side_file.write(bytes(self._raw))
                self._raw.clear()
        return shown(text) if self._is_terminal else text

    def _settle(self, text: str) -> None:
        self._take(self._terminal.feed(text) if self._is_terminal else text)

    def _use_legacy_encoding(self) -> None:
        """Read a short output again that was no UTF-8, if it is certain what it was in."""
        if not self._is_terminal or self._side_file is not None:
            return
        raw = bytes(self._raw)
        if b"\0" in raw or self._head.decode().count("\ufffd") < _TELLING:
            return
        text = decode(raw, "")
        if text.encoding not in (None, "utf-8"):
            self._forget()
            self._take(shown(text.text))

    def text(self) -> str:
        """Return what the model is shown. Call it when the capture is closed."""
        if not self._is_cut:
            return self._head.decode()
        kept_where = "" if self._side_file is None else self._side_file.note()
        room = MAX_BYTES - _NOTICE_BYTES - len(kept_where.encode())
        lines = MAX_LINES - _NOTICE_LINES
        head = _start_of(bytes(self._head), room // _HEAD_SHARE, lines // _HEAD_SHARE)
        tail = _end_of(bytes(self._tail), room - len(head), lines - lines // _HEAD_SHARE)
        left_out = size(self._bytes - len(head) - len(tail))
        if lines_left_out := self._newlines - head.count(b"\n") - tail.count(b"\n"):
            left_out = f"{lines_left_out:,} lines, {left_out}"
        notice = f"[… {left_out} left out here. {kept_where}]"
        before = "" if head.endswith(b"\n") else "\n"
        return f"{head.decode()}{before}{notice}\n{tail.decode()}"

    @property
    def _is_cut(self) -> bool:
        unfinished = bool(self._tail) and not self._tail.endswith(b"\n")
        return self._bytes > MAX_BYTES or self._newlines + unfinished > MAX_LINES

    def _take(self, text: str) -> None:
        data = text.encode()
        self._bytes += len(data)
        self._newlines += data.count(b"\n")
        self._head += data[: MAX_BYTES - len(self._head)]
        self._tail += data
        if len(self._tail) > 4 * MAX_BYTES:
            del self._tail[:-MAX_BYTES]


class _SideFile:
    """The full text of one output, up to a size; a disk that is full costs the file only."""

    def __init__(self, context: ToolContext) -> None:
        self._path: Path | None = None
        self._descriptor = -1
        self._written = 0
        self._is_full = False
        self._failure = ""
        try:
            self._create(context)
        except OSError as error:
            self._failure = f" ({reason_of(error)})"

    def write(self, data: bytes) -> None:
        """Append *data*, or as much of it as the size allows."""
        if self._descriptor < 0:
            return
        rest = memoryview(data)[: SIDE_FILE_BYTES - self._written]
        self._is_full = self._is_full or len(rest) < len(data)
        try:
            while rest:
                written = os.write(self._descriptor, rest)
                self._written += written
                rest = rest[written:]
        except OSError as error:
            self._failure = f" ({reason_of(error)})"
            self.close()

    def close(self) -> None:
        """Close the file; what comes later is dropped."""
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1

    def note(self) -> str:
        """Say where the text is, and how much of it."""
        if self._path is None:
            return f"The full output could not be kept{self._failure}"
        if self._failure or self._is_full:
            return f"Its first {size(self._written)}{self._failure}: {self._path}"
        return f"Full output: {self._path}"

    def _create(self, context: ToolContext) -> None:
        folder = context.side_files
        disk.make_inner_folder(folder)
        stem = re.sub(r"[^A-Za-z0-9_-]", "_", context.tool_use_id)[:64] or "output"
        for number in count(1):
            path = folder / (f"{stem}.txt" if number == 1 else f"{stem}-{number}.txt")
            try:
                self._descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            except FileExistsError:
                continue
            self._path = path
            return


def _start_of(data: bytes, room: int, lines: int) -> bytes:
    """Return the start of *data*: whole lines unless that loses more than half of it."""
    head = data[:room]
    if head.count(b"\n") > lines:
        return b"\n".join(head.split(b"\n")[:lines]) + b"\n"
    if (line_end := head.rfind(b"\n") + 1) > len(head) // 2:
        return head[:line_end]
    return head.decode(errors="ignore").encode()


def _end_of(data: bytes, room: int, lines: int) -> bytes:
    """Return the end of *data*: whole lines unless that loses more than half of it."""
    tail = data[-room:]
    newlines = tail.count(b"\n", 0, -1)
    if newlines >= lines:
        return tail.split(b"\n", newlines - lines + 1)[-1]
    if 0 < (line_start := tail.find(b"\n") + 1) < len(tail) // 2:
        return tail[line_start:]
    return tail.decode(errors="ignore").encode()
