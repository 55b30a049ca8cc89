"""A request as it is sent: the bytes of its body, and the digest that proves them.

A digest carries the tag of its form. In today's form it is over the very bytes that are sent. The
first form was over the canonical JSON of the body; what was recorded in it is still proven by it.
"""

from __future__ import annotations

from hashlib import sha256
from io import SEEK_END, BytesIO
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from domain.canonical import canonical

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from domain.messages import JsonObject

FORM = "c2"
"""The form of digests that are recorded now: of the bytes as sent."""
CANONICAL_FORM = "c1"
"""The form of digests before: of the canonical JSON."""


class Request(NamedTuple):
    """The *body* of a request of the Messages API, and how long its answer may be."""

    body: bytes
    max_tokens: int

    @classmethod
    def of(cls, fields: JsonObject, pieces: Iterable[bytes | memoryview]) -> Request:
        """Return the request with these *fields*, and the messages that *pieces* are together."""
        return BodyEnds.of(fields).around(pieces)

    @property
    def content(self) -> JsonObject:
        """The body, decoded at each call."""
        content: JsonObject = msgspec.json.decode(self.body)
        return content

    def digest(self, form: str = FORM) -> str:
        """Return the tag of *form*, a colon, and the SHA-256 of the body in it, in hexadecimal."""
        return f"{form}:{sha256(in_form(form, self.body)).hexdigest()}"


class BodyEnds(NamedTuple):
    """The ends of a body, *before* and *after* its messages, as a digest of some form has them."""

    before: bytes
    after: bytes
    max_tokens: int

    @classmethod
    def of(cls, fields: JsonObject, form: str = FORM) -> BodyEnds:
        """Return what is around the messages of a body with these *fields*, sorted by name."""
        before = {key: fields[key] for key in sorted(fields) if key < "messages"}
        after = {key: fields[key] for key in sorted(fields) if key > "messages"}
        encode = canonical if form == CANONICAL_FORM else msgspec.json.encode
        head, tail = encode(before)[:-1] + b',"messages":[', b"]," + encode(after)[1:]
        return cls(head, tail, fields["max_tokens"])

    def around(self, pieces: Iterable[bytes | memoryview]) -> Request:
        """Return the request with the messages that *pieces* are together, as JSON."""
        # Joined at once: to copy a megabyte a second time would cost more than all the rest.
        return Request(b"".join([self.before, *pieces, self.after]), self.max_tokens)


class GrowingRequest:
    """One request after the other, each of which begins as the one before.

    The bytes that they have in common are joined once. A body that is let go of grows in place into
    the next one: `BytesIO` gives its buffer away, and copies it only if somebody still has it.
    """

    def __init__(self) -> None:
        self._buffer = BytesIO()
        self._before = b""
        self._pieces = 0
        self._common = 0

    def next(self, ends: BodyEnds, pieces: Sequence[bytes | memoryview], last: bytes) -> Request:
        """Return the request with the messages that *pieces* are together, and the *last* one.

        To those of the call before, *pieces* were only added.
        """
        if ends.before != self._before:
            self._buffer = BytesIO(b"".join([ends.before, *pieces]))
            self._common = self._buffer.seek(0, SEEK_END)
        else:
            self._buffer.truncate(self._buffer.seek(self._common))
            self._common += self._buffer.write(b"".join(pieces[self._pieces :]))
        self._before, self._pieces = ends.before, len(pieces)
        self._buffer.writelines((last, ends.after))
        return Request(self._buffer.getvalue(), ends.max_tokens)


def in_form(form: str, raw: bytes) -> bytes:
    """Return what a digest of *form* is over, for the JSON *raw*."""
    return canonical(msgspec.json.decode(raw)) if form == CANONICAL_FORM else raw


def form_of(digest: str) -> str:
    """Return the form of a recorded *digest*: today's, unless it says that it is the older one."""
    return CANONICAL_FORM if digest.startswith(f"{CANONICAL_FORM}:") else FORM
