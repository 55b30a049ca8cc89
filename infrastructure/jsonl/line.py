r"""One line of a log: bytes to `Line`, and back. Pure; `salvage` reads damaged lines.

A line is ``{"v":1,"topic":"Started","state":{…},"crc":"8f3a1c22"}``. The state is embedded as it is
when it is JSON on one line, and goes as base64 (``"state64"``) when it is anything else. A line may
also carry:

* ``"batch":[i,n]``: it is the i-th of n lines that were saved together;
* ``"base":v``: everything up to version v before this line was committed, and nothing above it;
* ``"tracking":["name",n]``: what a process recorder had read when it saved this.
"""

from __future__ import annotations

import base64
import re
import struct
from typing import Final, Literal
from zlib import crc32

import msgspec

from infrastructure.errors import InvalidEventError, NewerFormatError

FORMAT: Final = "leftfold/1"
MAX_VERSION: Final = 2**32 - 1
BOM: Final = b"\xef\xbb\xbf"
_BLANK: Final = b" \t\r\n\0"
_OURS: Final = re.compile(r"leftfold/\d[\w.+-]*\Z")
_NO_STATE: Final = msgspec.Raw(b"")
_NEWLINE: Final = 0x0A
_DEEPEST: Final = 500
_STRINGS: Final = re.compile(rb'"(?:[^"\\]|\\.)*"')
_BRACKETS: Final = re.compile(rb"[][{}]")
_PLAIN_LENGTH: Final = len('{"v":,"topic":"","state":,"crc":"12345678"}')

DamageKind = Literal["header", "zeros", "batch", "version", "damage"]
"""Of what bytes are damage: a header, NUL bytes (not synced), an unfinished batch, a version."""

Batch = tuple[int, int]
TrackingMark = tuple[str, int]


class Line(msgspec.Struct, gc=False):
    """A valid line as it is on disk, its state raw and unread, and where it stands.

    ``crc_ok`` is None when the line has no checksum. ``number`` counts lines of the file from 1,
    and is 0 when the file was not read from its beginning.
    """

    version: int = msgspec.field(name="v")
    topic: str
    raw: msgspec.Raw = msgspec.field(name="state", default=_NO_STATE)
    state64: str | None = None
    crc: str | None = None
    batch: Batch | None = None
    base: int | None = None
    tracking: TrackingMark | None = None
    # The reader sets these fields; no line says them.
    offset: int = msgspec.field(name=" offset", default=0)
    length: int = msgspec.field(name=" length", default=0)
    number: int = msgspec.field(name=" number", default=0)
    crc_ok: bool | None = msgspec.field(name=" crc_ok", default=None)

    @property
    def state(self) -> bytes:
        """The state's bytes: JSON, unless a cipher or a compressor was at work."""
        return bytes(self.raw)

    @property
    def is_as_written(self) -> bool:
        """Whether the state is what our own encoder wrote: its checksum agrees, and it is UTF-8."""
        if not self.crc_ok or self.state64 is not None:
            return False
        try:
            str(self.raw, "utf-8")  # a raw body is not checked for this
        except UnicodeDecodeError:
            return False
        return True

    @property
    def end(self) -> int:
        """Offset of the byte after the line, not counting its newline."""
        return self.offset + self.length


class Damage(msgspec.Struct, frozen=True, gc=False):
    """Bytes of a log that are not what they were meant to be; ``reason`` is for people.

    ``lost`` is False when everything in them could be read all the same.
    """

    number: int
    offset: int
    length: int
    reason: str
    kind: DamageKind = "damage"
    lost: bool = True


class Header(msgspec.Struct, frozen=True):
    """The first line of a log."""

    format: str
    id: str = ""
    created: str = ""


parse: Final = msgspec.json.Decoder(Line).decode
_decode_lines: Final = msgspec.json.Decoder(Line).decode_lines
_decode_header: Final = msgspec.json.Decoder(Header).decode
_decode_raw: Final = msgspec.json.Decoder(msgspec.Raw).decode
_encode: Final = msgspec.json.encode
ERRORS: Final = (msgspec.MsgspecError, ValueError, TypeError, IndexError, RecursionError)


def encode(
    version: int,
    topic: str,
    state: bytes,
    *,
    batch: Batch | None = None,
    base: int | None = None,
    tracking: TrackingMark | None = None,
) -> bytes:
    """Return the line for one event, with its newline.

    Raises:
        InvalidEventError: The version is out of range, or the topic is not valid text.
    """
    if not 0 <= version <= MAX_VERSION:
        raise InvalidEventError(f"version {version} is not between 0 and {MAX_VERSION}")
    try:
        head = b'{"v":%d,"topic":%s,' % (version, _encode(topic))
    except (UnicodeEncodeError, msgspec.MsgspecError) as error:
        raise InvalidEventError(f"topic {topic!r} is not valid text") from error
    name, value = b"state", state
    if not _embeds(state):
        name, value = b"state64", b'"%s"' % base64.b64encode(state)
    has_marks = batch is not None or base is not None or tracking is not None
    marks = _marks(batch, base, tracking) if has_marks else b""
    return b'%s"%s":%s,"crc":"%08x"%s}\n' % (head, name, value, crc32(state), marks)


def encode_header(conversation: str, created: str) -> bytes:
    """Return a log's first line."""
    return _encode(Header(FORMAT, conversation, created)) + b"\n"


def decode(data: bytes) -> Line | None:
    """Return the line in *data* if it is just what this module writes, else None."""
    try:
        line = parse(data)
        open_state(line)
        crc_ok = int(line.crc, 16) == crc32(line.raw)  # type: ignore[arg-type] # None: below
    except ERRORS:
        return None
    if not crc_ok or not 0 <= line.version <= MAX_VERSION:
        return None
    line.offset, line.length, line.number, line.crc_ok = 0, len(data), 0, True
    return line


def decode_block(block: bytes, offset: int, number: int) -> list[Line] | None:
    """Return the lines of a *block* of whole lines if all are just what this module writes.

    None if any is not. The parser does not care where a line ends, so the ends are checked: no
    record is shorter than what `encode` makes of it, so if each ends where it then should, and the
    last one at the end of the block, there is one to a line.
    """
    try:
        lines = _decode_lines(block)
        crcs = bytes.fromhex("".join([line.crc for line in lines]))  # type: ignore[misc] # None: an error
        if [crc32(line.raw) for line in lines] != list(struct.unpack(f">{len(lines)}I", crcs)):
            return None
        start, step = 0, 1 if number else 0
        for line in lines:
            version = line.version
            end = start + _PLAIN_LENGTH + len(str(version)) + len(line.topic) + len(line.raw)
            if line.batch or line.base is not None or line.tracking:
                end += len(_marks(line.batch, line.base, line.tracking))
            if block[end] != _NEWLINE or not 0 <= version <= MAX_VERSION:
                return None
            line.offset, line.length = offset + start, end - start
            line.number, line.crc_ok = number, True
            start, number = end + 1, number + step
    except (*ERRORS, struct.error):
        return None
    return lines if start == len(block) else None


def _marks(batch: Batch | None, base: int | None, tracking: TrackingMark | None) -> bytes:
    """Return the parts of a line that most have not."""
    marks = b""
    if batch is not None:
        marks += b',"batch":[%d,%d]' % batch
    if base is not None:
        marks += b',"base":%d' % base
    if tracking is not None:
        marks += b',"tracking":' + _encode(tracking)
    return marks


def header(data: bytes) -> Header | None:
    """Return the header in *data*, or None if it is something else.

    Raises:
        NewerFormatError: It is one of ours, of a format, be it a minor one, that is not known here.
    """
    body, _ = stripped(data, 0)
    try:
        found = _decode_header(body)
    except ERRORS:
        return None
    if found.format != FORMAT:
        if _OURS.match(found.format):
            raise NewerFormatError(None, found.format)
        return None
    return found


def other_format(data: bytes) -> str | None:
    """Return the format that a first line names, if it is a header of something else."""
    try:
        return _decode_header(stripped(data, 0)[0]).format
    except ERRORS:
        return None


def _embeds(state: bytes) -> bool:
    """Whether *state* is one JSON value on one line, from its first byte to its last."""
    if state.find(_NEWLINE) >= 0 or _is_deep(state):
        return False
    try:
        if not state.isascii():
            str(state, "utf-8")  # a raw value is not checked for this
        return len(_decode_raw(state)) == len(state)
    except ERRORS:
        return False


def _is_deep(state: bytes) -> bool:
    """Whether *state* is nested so deeply that some Python's parser would not read it back."""
    opened = 2 * len(state) - len(state.replace(b"[", b"")) - len(state.replace(b"{", b""))
    if opened < _DEEPEST:  # counted so, for `count` takes four times as long
        return False
    depth = 0
    for bracket in _BRACKETS.findall(_STRINGS.sub(b"", state)):
        depth += 1 if bracket in b"[{" else -1
        if depth > _DEEPEST:
            return True
    return False


def open_state(line: Line) -> None:
    """Put the state that a line has as base64 where the others have theirs."""
    if line.state64 is not None:
        line.raw = msgspec.Raw(base64.b64decode(line.state64, validate=True))
    elif not len(line.raw):
        raise ValueError("no state")


def stripped(data: bytes, offset: int) -> tuple[bytes, int]:
    """Return *data* without a byte order mark, blanks and NULs around it, and where that starts."""
    body = data.lstrip(_BLANK)
    if body.startswith(BOM):
        body = body[len(BOM) :].lstrip(_BLANK)
    start = offset + len(data) - len(body)
    return body.rstrip(_BLANK), start
