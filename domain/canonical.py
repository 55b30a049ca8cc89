"""Canonical JSON and its digest: one byte string for one value, however it was written.

Keys sorted by code point, no blanks, UTF-8 unescaped, numbers in their shortest form (as msgspec
writes them). The digest carries the tag of this form, so that the form can change detectably.
"""

from __future__ import annotations

from hashlib import sha256
from typing import Any

import msgspec

FORM = "c1"
_encoder = msgspec.json.Encoder(order="sorted")


def canonical(value: Any) -> bytes:
    """Return the canonical JSON of a JSON-like *value* as UTF-8 bytes.

    Raises:
        UnicodeEncodeError: a string holds a lone surrogate; see `domain.text.valid_json`.
    """
    return _encoder.encode(value)


def digest(value: Any) -> str:
    """Return ``c1:`` and the SHA-256, in hexadecimal, of the canonical JSON of *value*."""
    return f"{FORM}:{sha256(canonical(value)).hexdigest()}"
