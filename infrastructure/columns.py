"""The columns of a piece of a log, as they are kept beside it: then none of its lines is parsed.

They are made of the bytes of the piece alone, and hold for those very bytes, by their checksum:
whatever was edited, cut or replaced since, they no longer fit, and the log is read. Messages are
taken from the log itself, never from here.
"""

from __future__ import annotations

import sys
from array import array
from functools import cached_property
from typing import TYPE_CHECKING, Final
from uuid import UUID
from zlib import crc32

import msgspec

from domain.events import MessageAppended, Version
from domain.plain import THINKS, Shapes
from domain.unread import Unread
from infrastructure.event_store import placed
from infrastructure.jsonl.one_pass import NotAsWrittenError
from infrastructure.replayed import Piece, ReplayedEvents, in_order, messages_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from domain.unread import Told
    from infrastructure.jsonl.one_pass import Block

FORM: Final = f"columns/2 {sys.byteorder}"
"""What they mean. The number is counted up with each change of the columns, of what makes a message
plain, and of what `Unread` takes from events; then older ones are no longer read."""

_FACT: Final = 255
_NOBODY: Final = UUID(int=0)


class Columns(msgspec.Struct, frozen=True, array_like=True, gc=False):
    """What lines of a log are, in order, a column for each thing.

    Attributes:
        start: Where the first begins in the log.
        length: How many bytes they are.
        checksum: The CRC-32 of these.
        first: The version of the first; the others follow.
        kinds: What each is: a fact, or a message of a kind of `domain.plain`.
        spans: Where in these bytes the part of each message begins and ends that requests have.
        ids: The ids of the calls of each message.
        parents: What a message hangs from, by its place, if not from the one before.
        models: Which model said a message, by its place, if it holds thinking.
    """

    start: int
    length: int
    checksum: int
    first: Version
    kinds: bytes
    spans: bytes
    ids: list[tuple[str, ...]]
    parents: dict[int, Version | None]
    models: dict[int, str]

    @classmethod
    def of(cls, block: Block) -> Columns:
        """Return the columns of *block*.

        Raises:
            NotAsWrittenError: a newer version of this program wrote in it.
        """
        data = block.data[: block.length]
        piece = Piece(_NOBODY, data, block.lines[0].version)
        unread = messages_of(block, piece)
        of_messages = iter(unread.shapes.kinds)
        kinds = [
            next(of_messages) if type(line.state) is MessageAppended else _FACT
            for line in block.lines
        ]
        befores = [None, *unread.versions]
        hanging = enumerate(zip(unread.parents, befores, strict=False))
        thinking = (place for place, kind in enumerate(unread.shapes.kinds) if kind & THINKS)
        spans = array("I")
        for version, part in zip(unread.versions, unread.parts(0, len(befores) - 1), strict=True):
            start = piece.find(version, part)
            spans.extend((start, start + len(part)))
        return cls(
            block.start,
            len(data),
            crc32(data),
            block.lines[0].version,
            bytes(kinds),
            spans.tobytes(),
            list(unread.shapes.ids),
            {place: parent for place, (parent, before) in hanging if parent != before},
            {place: unread.models[place] or "" for place in thinking},
        )

    @property
    def last(self) -> Version:
        """The version of the last line."""
        return self.first + len(self.kinds) - 1

    def told(
        self, originator_id: UUID, data: bytes, events: ReplayedEvents
    ) -> Iterator[Told] | None:
        """Return what the lines tell, *data* in the log: what *events* make of them.

        None if these columns were made of other bytes, or by a program that knows other events.
        """
        decoder = events.decoder
        if decoder is None or len(data) != self.length or crc32(data) != self.checksum:
            return None
        piece = Piece(originator_id, data, self.first)
        places = [place for place, kind in enumerate(self.kinds) if kind == _FACT]
        try:
            lines = decoder.lines(b"".join([piece.line(self.first + place) for place in places]))
            read = [placed(originator_id, line) for line in lines]
        except (msgspec.MsgspecError, NotAsWrittenError):
            return None
        facts = ((place - number, read[number]) for number, place in enumerate(places))
        return in_order(_Unread(self, piece, data), facts)


class _Unread(Unread):
    """Messages by their columns; none of their bodies was looked at."""

    def __init__(self, columns: Columns, piece: Piece, data: bytes) -> None:
        kinds = columns.kinds
        versions = list(range(columns.first, columns.last + 1))
        if _FACT in kinds:
            pairs = zip(versions, kinds, strict=True)
            versions = [version for version, kind in pairs if kind != _FACT]
        parents: list[Version | None] = [None, *versions[:-1]]
        for place, parent in columns.parents.items():
            parents[place] = parent
        models: list[str | None] = [None] * len(versions)
        for place, model in columns.models.items():
            models[place] = model
        super().__init__(piece, versions, parents, models)
        self._kinds, self._ids = kinds, columns.ids
        self._data, self._spans = data, columns.spans

    @cached_property
    def shapes(self) -> Shapes:
        return Shapes(self._kinds.replace(bytes([_FACT]), b""), self._ids)

    def parts(self, first: int, after: int) -> list[memoryview]:
        view, spans = memoryview(self._data), array("I", self._spans)[2 * first : 2 * after]
        return [view[start:end] for start, end in zip(spans[::2], spans[1::2], strict=True)]


def packed(pieces: Sequence[Columns]) -> bytes:
    """Return *pieces* as bytes."""
    return msgspec.msgpack.encode(pieces)


def unpacked(data: bytes) -> list[Columns]:
    """Return the pieces in *data*.

    Raises:
        MsgspecError: there are none.
    """
    return _unpack(data)


_unpack = msgspec.msgpack.Decoder(list[Columns]).decode
