"""Make text valid: whatever enters is UTF-8 without lone surrogates before it is recorded."""

from __future__ import annotations

import json
import math
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

if TYPE_CHECKING:
    from collections.abc import Iterator

MAX_NESTING = 320
"""How deep recorded JSON may nest: far below what stops the parsers, wherever they are called."""

TOO_DEEP = "(nested too deeply)"

_REPLACEMENT = "\N{REPLACEMENT CHARACTER}"
_ESCAPED_BYTES = re.compile("(?<![\ud800-\udbff])[\udc80-\udcff]+")


def valid(text: str) -> str:
    """Return *text* with every lone surrogate replaced by U+FFFD, or by what its bytes meant.

    Lone surrogates come from ``surrogateescape`` decoding (undecodable bytes in arguments, file
    names, stdin under ``LC_ALL=C``), from models and from truncated emoji. They pass `json.dumps`
    and then break every strict encoder (cases E3, Z3-Z5).
    """
    try:
        text.encode()
    except UnicodeEncodeError:
        # What was decoded as ASCII (LC_ALL=C) may have been UTF-8 all the same (case Z12).
        text = _ESCAPED_BYTES.sub(_decoded_bytes, text)
        # A high and a low half that stand side by side are one character, not two errors.
        text = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return "".join(_REPLACEMENT if "\ud800" <= char <= "\udfff" else char for char in text)
    return text


def _decoded_bytes(match: re.Match[str]) -> str:
    return match[0].encode("ascii", "surrogateescape").decode("utf-8", "replace")


def valid_json(value: Any, *, depth: int = MAX_NESTING) -> Any:
    """Return a copy of the JSON-like *value* that every JSON parser reads back as it is.

    Every string, keys too, is valid; NaN and infinities, which JSON does not have, are None; what
    nests deeper than *depth* is replaced by `TOO_DEEP` (cases Z5-Z7).
    """
    match value:
        case str():
            return valid(value)
        case dict() | list() | tuple() if depth == 0:
            return TOO_DEEP
        case dict():
            copy = {}
            for key, item in value.items():  # no comprehension: half the stack on Python 3.11
                copy[valid(str(key))] = valid_json(item, depth=depth - 1)
            return copy
        case list() | tuple():
            items = []
            for item in value:
                items.append(valid_json(item, depth=depth - 1))  # noqa: PERF401 - as above
            return items
        case float() if not math.isfinite(value):
            return None
        case _:
            return value


def nodes(value: Any, key: str = "") -> Iterator[tuple[str, Any]]:
    """Yield a JSON-like *value* and all that is in it, each with its key, or "" in a list."""
    yield key, value
    if isinstance(value, dict):
        for name, inner in value.items():
            yield from nodes(inner, name)
    elif isinstance(value, list):
        for inner in value:
            yield from nodes(inner)


def decoded(raw: bytes | msgspec.Raw) -> Any:
    """Return the value of the JSON *raw*, whatever an old or edited log holds; None for no JSON.

    What strict parsers refuse (escaped lone surrogates, bytes that are not UTF-8, NaN, 1e999) is
    read as the standard library does and then made valid (cases E3, Z4, Z7).
    """
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeError, RecursionError):
        try:
            return valid_json(json.loads(bytes(raw).decode("utf-8", "replace"), strict=False))
        except (ValueError, RecursionError):
            return None


def rewritten(raw: bytes | msgspec.Raw) -> msgspec.Raw:
    """Return the JSON *raw* as our own encoder writes it; what is no JSON, as a string of it.

    It says what `decoded` says of *raw*, and every parser reads it.
    """
    value = decoded(raw)
    with suppress(RecursionError):
        if value is not None or bytes(raw).strip() == b"null":
            return msgspec.Raw(msgspec.json.encode(value))
    return msgspec.Raw(msgspec.json.encode(bytes(raw).decode("utf-8", "replace")))


def shortened(text: str, most: int) -> str:
    """Return *text* in at most about *most* bytes: its beginning and its end."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    half = most // 2
    head, tail = raw[:half].decode(errors="ignore"), raw[-half:].decode(errors="ignore")
    return f"{head}\n[… {len(raw) - 2 * half:,} bytes left out …]\n{tail}"
