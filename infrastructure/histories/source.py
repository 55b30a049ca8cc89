"""A file of another program, read line by line, and never trusted.

What is no JSON is damage: it is told as a note, verbatim, and costs nothing but itself. A last line
without its end may be in the middle of being written: it is left for the next time.
"""

from __future__ import annotations

import hashlib
import os
import re
from contextlib import suppress
from datetime import UTC, datetime
from functools import cached_property
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol

import msgspec

from domain.foreign import Told, told_note
from domain.messages import blocks_of
from domain.text import MAX_NESTING, decoded, valid_json
from infrastructure.derived_ids import uuid7_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path
    from typing import BinaryIO
    from uuid import UUID

    from domain.messages import JsonObject

EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
DAMAGE = "import/damage"
_CHUNK = 1 << 20
_BOM = b"\xef\xbb\xbf"
_DATA_URL = re.compile(r"data:(image/[\w.+-]+);base64,(.*)", re.DOTALL)


class Line(NamedTuple):
    """A line of a file: its number, from 1, where it stands, its bytes, and the object in it."""

    number: int
    offset: int
    raw: bytes
    value: JsonObject | None

    @property
    def key(self) -> str:
        """Names the line, in a history whose lines have no ids."""
        return f"line {self.number}"

    @property
    def text(self) -> str:
        """The line as it stands."""
        return self.raw.decode("utf-8", "replace")


class Origin(NamedTuple):
    """Of what conversation a history is: facts of its first lines.

    Attributes:
        session: What names the conversation, wherever its file goes.
        started: When it began; `EPOCH` if nothing tells.
        cwd: Where it worked, if that is known.
        version: Of the program that wrote it.
        parent: What it was forked from, or started by.
        is_timed: Whether each thing in it has a time.
    """

    session: str
    started: datetime = EPOCH
    cwd: str | None = None
    version: str = ""
    parent: str | None = None
    is_timed: bool = True


class Source:
    """An open file, of the size that it has now.

    Attributes:
        size: How many bytes are read.
        done: How many of them have been.
        damaged: How many lines could not be read.
        unfinished: Whether the last line is being written, or was cut off.
    """

    def __init__(self, path: Path, file: BinaryIO) -> None:
        self.path = path
        self.size = os.fstat(file.fileno()).st_size
        self.done = 0
        self.damaged = 0
        self.unfinished = False
        self._file = file

    def places(self) -> Iterator[tuple[int, bytes]]:
        """Yield where each line stands, and its bytes."""
        self._file.seek(0)
        offset = 0
        while offset < self.size and (raw := self._file.readline(self.size - offset)):
            yield offset, raw
            offset += len(raw)

    def lines(self, last: int | None = None) -> Iterator[Line]:
        """Yield the lines that say something, at most *last*, from the beginning."""
        self.damaged = 0
        self.unfinished = False
        for number, (offset, raw) in enumerate(self.places(), 1):
            line = Line(number, offset, raw.strip(b" \t\r\n"), _value(raw, is_first=number == 1))
            self.done = offset + len(raw)
            if not line.raw.strip(b"\0"):
                continue
            if line.value is None and not raw.endswith(b"\n"):
                self.unfinished = True
                return
            self.damaged += line.value is None
            yield line
            if last is not None and number >= last:
                return

    def value_at(self, offset: int, length: int) -> JsonObject:
        """Return the object in the bytes at *offset*; an empty one if it is gone."""
        return _value(os.pread(self._file.fileno(), length, offset), is_first=offset == 0) or {}

    def document(self) -> Any:
        """Return all of the file as one JSON value; None if it is none."""
        self.done = self.size
        return self._document

    @cached_property
    def _document(self) -> Any:
        return _valid(self.contents().removeprefix(_BOM))

    def contents(self) -> bytes:
        """Return all of the file."""
        self._file.seek(0)
        self.done = self.size
        return self._file.read(self.size)

    def digest(self) -> str:
        """Return the SHA-256 of what is read, as hexadecimal digits."""
        self._file.seek(0)
        digest, left = hashlib.sha256(), self.size
        while left and (chunk := self._file.read(min(_CHUNK, left))):
            digest.update(chunk)
            left -= len(chunk)
        return digest.hexdigest()


class Format(Protocol):
    """How one program writes its histories."""

    NAME: str

    def origin(self, source: Source) -> Origin | None:
        """Return of what conversation *source* is; None if this program did not write it."""

    def told(self, source: Source, origin: Origin) -> Iterator[Told]:
        """Yield what *source* tells, in its order."""


def _value(raw: bytes, *, is_first: bool) -> JsonObject | None:
    value = _valid(raw.removeprefix(_BOM) if is_first else raw)
    return value if isinstance(value, dict) else None


def _valid(raw: bytes) -> Any:
    value = decoded(raw)
    brackets = raw.count(b"[") + raw.count(b"{")
    return valid_json(value) if brackets > MAX_NESTING else value


def damage(line: Line, timestamp: datetime) -> Told:
    """Return a line that cannot be read, verbatim."""
    return told_note(line.key, timestamp, DAMAGE, line.text)


def time_of(value: Any, otherwise: datetime) -> datetime:
    """Return the time that *value* tells: ISO 8601, or Unix time in (milli)seconds."""
    with suppress(ValueError, OverflowError, OSError):
        if isinstance(value, str):
            time = datetime.fromisoformat(value)
            return time.astimezone(UTC) if time.tzinfo else time.replace(tzinfo=UTC)
        if isinstance(value, int | float) and not isinstance(value, bool) and value > 0:
            return datetime.fromtimestamp(value / 1000 if value > 1e11 else value, UTC)  # noqa: PLR2004
    return otherwise


def text_of(value: Any, otherwise: str = "") -> str:
    """Return *value* if it is a text."""
    return value if isinstance(value, str) else otherwise


def number_of(value: Any) -> int:
    """Return *value* if it is a count; 0 if it is none."""
    return value if isinstance(value, int) and value > 0 else 0


def objects(value: Any) -> list[JsonObject]:
    """Return the objects in *value*, if it is a list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def blocks_in(content: Any) -> list[JsonObject]:
    """Return what a message holds as raw blocks; a part that is no object is text."""
    return [
        part if isinstance(part, dict) else text_block(text_of(part, json_text(part)))
        for part in blocks_of(content)
    ]


def text_block(text: str) -> JsonObject:
    """Return *text* as a block."""
    return {"type": "text", "text": text}


def json_block(raw: JsonObject) -> JsonObject:
    """Return what is of no kind that is known as a block: its JSON, as text."""
    return text_block(json_text(raw))


def json_text(value: Any) -> str:
    """Return *value* as JSON, which is what stands in a note for what has no place here."""
    return msgspec.json.encode(value).decode()


def image_of(url: str) -> JsonObject | None:
    """Return the image in a ``data:`` URL as a block; None for any other URL."""
    found = _DATA_URL.match(url)
    return image_block(found[2], found[1]) if found else None


def usage_of(new: Any, output: int, *, read: Any = 0, written: Any = 0) -> JsonObject:
    """Return token counts as the Messages API has them: what was cached is not in the input."""
    return {
        "input_tokens": number_of(new),
        "output_tokens": output,
        "cache_read_input_tokens": number_of(read),
        "cache_creation_input_tokens": number_of(written),
    }


def image_block(data: str, media_type: str) -> JsonObject:
    """Return an image, in base64, as a block."""
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": media_type, "data": data},
    }


def arguments_of(value: Any) -> JsonObject:
    """Return the arguments of a call; what is no object stands in one."""
    if isinstance(value, str):
        with suppress(msgspec.DecodeError):
            value = msgspec.json.decode(value)
    return value if isinstance(value, dict) else {"arguments": value}


def nameless(source: Source, first: JsonObject) -> str:
    """Return what names a session without a name: its place, and its *first* message."""
    return f"{source.path}\0{hashlib.sha256(msgspec.json.encode(first)).hexdigest()}"


def id_of(agent: str, origin: Origin) -> UUID:
    """Return the id of the conversation that a history becomes: the same whenever it is imported.

    A UUIDv7: when it began, and bits of a digest. Without a time they are all digest.
    """
    digest = hashlib.sha256(f"leftfold import\0{agent}\0{origin.session}".encode()).digest()
    milliseconds = int(origin.started.timestamp() * 1000)
    if not 0 < milliseconds < 1 << 48:
        milliseconds = int.from_bytes(digest[10:16], "big")
    random_a = int.from_bytes(digest[:2], "big") & 0xFFF
    random_b = int.from_bytes(digest[2:10], "big") & (1 << 62) - 1
    return uuid7_of(milliseconds, random_a, random_b)
