"""Canonical JSON: one byte string for one value, however it was written.

Keys sorted by code point, no blanks, UTF-8 unescaped, numbers in their shortest form (as msgspec
writes them).
"""

from __future__ import annotations

from typing import Any

import msgspec

_encoder = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a JSON-like *value* as UTF-8 bytes.

    Raises:
        UnicodeEncodeError: a string holds a lone surrogate; see `domain.text.valid_json`.
    """
    return _encoder.encode(value)
