"""What can be believed of a line that is not as written: salvaged lines, and damage. Pure."""

from __future__ import annotations

import binascii
import json
from typing import TYPE_CHECKING, Final, NamedTuple
from zlib import crc32

import msgspec

from infrastructure.jsonl.line import (
    ERRORS,
    MAX_VERSION,
    Damage,
    DamageKind,
    Line,
    open_state,
    parse,
    stripped,
)

if TYPE_CHECKING:
    from collections.abc import Iterator


class _Fault(NamedTuple):
    """What is wrong with bytes that are no line."""

    reason: str
    kind: DamageKind = "damage"


_RECORD_START: Final = '{"v":'
_MAX_RESYNCS: Final = 16
_NOT_A_LINE: Final = _Fault("")
_HALF: Final = _Fault("half a record")
_NO_EVENT: Final = _Fault("not an event")
_ZEROS: Final = _Fault("NUL bytes", "zeros")
_decode_any: Final = msgspec.json.Decoder().decode
_raw_decode: Final = json.JSONDecoder().raw_decode


def salvage(data: bytes, offset: int = 0, number: int = 0) -> Iterator[Line | Damage]:
    """Yield what can be believed of a line that `decode` refused, and what is wrong with it."""
    body, start = stripped(data, offset)
    zeros = _ZEROS if b"\0" in data else None  # a batch around them was not synced
    if not body:
        if zeros:
            yield Damage(number, offset, len(data), *zeros)
        return
    line = _checked(body)
    if isinstance(line, Line):
        line.offset, line.number = start, number
        if zeros:
            yield Damage(number, offset, len(data), *zeros, lost=False)
        yield line
        return
    pieces = list(_pieces(body, start, number))
    lines = sum(isinstance(piece, Line) for piece in pieces)
    if not lines:
        fault = line if line.reason else zeros or _what_is_wrong(body)
        yield Damage(number, offset, len(data), *fault)
        return
    if lines == len(pieces) > 1:
        fault = zeros or _Fault(f"{lines} records on one line")
        yield Damage(number, offset, len(data), *fault, lost=False)
    for piece in pieces:
        if zeros and isinstance(piece, Damage) and piece.lost:
            yield Damage(piece.number, piece.offset, piece.length, *zeros)
        else:
            yield piece


def _checked(body: bytes) -> Line | _Fault:
    """Return the line in *body*, read in full and with its checksum's verdict, or what is wrong."""
    try:
        line = parse(body)
        open_state(line)
        if not 0 <= line.version <= MAX_VERSION:
            return _out_of_range(line)
        line.crc_ok = None if line.crc is None else _crc_agrees(line.crc, line.raw)
        if not line.crc_ok and line.state64 is None:
            _decode_any(line.raw)
        if line.crc_ok is False and line.state64 is not None:
            return _Fault("base64 state that disagrees with its checksum")
    except binascii.Error:
        return _Fault("not valid base64")
    except ERRORS:
        return _NOT_A_LINE
    line.offset, line.length, line.number = 0, len(body), 0
    return line


def _out_of_range(line: Line) -> _Fault:
    return _Fault(f"version {line.version} is out of range", "version")


def _crc_agrees(crc: str, state: msgspec.Raw) -> bool:
    try:
        return int(crc, 16) == crc32(state)
    except ValueError:
        return False


def _pieces(body: bytes, offset: int, number: int) -> Iterator[Line | Damage]:
    """Read record after record of a physical line that holds more, or less, than one.

    After bytes that are no record, reading goes on only at something that starts like one, carries
    a checksum that agrees, and is followed by another or by nothing: no text inside a message is
    ever taken for a record.
    """
    text = str(body, "latin-1")  # characters are bytes, so ends are offsets
    position, resyncs = 0, 0
    while position < len(text):
        end = _record_end(text, position)
        line = _repaired(body[position:end]) if end else _HALF
        after = _skip_blank(text, end)
        if isinstance(line, Line) and resyncs:
            alone = after == len(text) or text[after] == "{"
            line = line if alone and line.crc_ok else _HALF
        if isinstance(line, Line):
            line.offset, line.number = offset + position, number
            if line.crc_ok is False:
                reason = "lone surrogate, read as U+FFFD"
                yield Damage(number, line.offset, end - position, reason, lost=False)
            yield line
        elif not end or resyncs:
            resyncs += 1
            end = text.find(_RECORD_START, position + 1) if resyncs <= _MAX_RESYNCS else -1
            after = end = len(text) if end < 0 else end
            yield Damage(number, offset + position, end - position, *_HALF)
        else:
            fault = line if line.reason else _NO_EVENT
            yield Damage(number, offset + position, end - position, *fault)
        position = after


def _record_end(text: str, position: int) -> int:
    """Return where the JSON object that starts at *position* ends, or 0."""
    if text[position] != "{":
        return 0
    try:
        return int(_raw_decode(text, position)[1])
    except (ValueError, RecursionError):
        return 0


def _skip_blank(text: str, position: int) -> int:
    while position < len(text) and text[position] in " \t\r\0":
        position += 1
    return position


def _repaired(body: bytes) -> Line | _Fault:
    """Return the line in *body*, with lone surrogate escapes read as U+FFFD (case E3)."""
    line = _checked(body)
    if isinstance(line, Line) or b"\\u" not in body:
        return line
    try:
        text = json.dumps(json.loads(body), ensure_ascii=False).encode("utf-16", "surrogatepass")
        found = json.loads(text.decode("utf-16", "replace"))
        state = json.dumps(found.pop("state"), ensure_ascii=False, separators=(",", ":")).encode()
        found.pop("crc", None)
        repaired = msgspec.convert(found, Line)
    except (*ERRORS, KeyError, AttributeError):
        return line
    if not 0 <= repaired.version <= MAX_VERSION:
        return _out_of_range(repaired)
    repaired.raw, repaired.crc_ok = msgspec.Raw(state), False
    repaired.offset, repaired.length, repaired.number = 0, len(body), 0
    return repaired


def _what_is_wrong(body: bytes) -> _Fault:
    try:
        _decode_any(body)
    except UnicodeDecodeError:
        return _Fault("not valid UTF-8")
    except msgspec.DecodeError as error:
        return _Fault("not valid UTF-8" if "UTF-8" in str(error) else "not valid JSON")
    except RecursionError:
        return _Fault("nested too deeply")
    return _NO_EVENT
