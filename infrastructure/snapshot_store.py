"""Snapshots of conversations, and with each of them the columns of the lines before it."""

from __future__ import annotations

from contextlib import closing, suppress
from typing import TYPE_CHECKING, Any, Final

import msgspec
from eventsourcing.persistence import EventStore

from domain.seals import is_sealed
from domain.snapshot import ConversationSnapshot
from domain.unread import selected
from infrastructure.columns import FORM, Columns, packed, unpacked
from infrastructure.jsonl.one_pass import Block, NotAsWrittenError
from infrastructure.jsonl.recorders import JSONLAggregateRecorder
from infrastructure.jsonl.snapshots import JSONLSnapshotRecorder, Kept

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from eventsourcing.persistence import AggregateRecorder, Mapper, Recording

    from domain.events import Version
    from domain.seals import Seals
    from domain.unread import Told
    from infrastructure.replayed import ReplayedEvents

_FURTHER: Final = 8
_MOST: Final = 20_000
"""Of how many events columns are made at once: nobody waits for those of a log without any."""


class Snapshots(EventStore["UUID"]):
    """Snapshots of conversations, over any recorder.

    A snapshot that cannot be read, or was not made here, is none: a log may be brought from
    elsewhere, and a snapshot with it. So are columns.
    """

    def __init__(
        self,
        mapper: Mapper[UUID],
        recorder: AggregateRecorder,
        seals: Seals,
        events: ReplayedEvents,
    ) -> None:
        super().__init__(mapper, recorder)
        self._seals = seals
        self._events = events

    def get(self, originator_id: UUID, **wanted: Any) -> Iterator[ConversationSnapshot]:
        """Yield the snapshots as the library's event store does."""
        found = super().get(originator_id, **wanted)
        return (
            event
            for event in found
            if isinstance(event, ConversationSnapshot) and is_sealed(event, self._seals)
        )

    def put(self, domain_events: Sequence[Any], **kwargs: Any) -> list[Recording[UUID]]:
        """Store snapshots, and over logs with each the columns of the lines before it."""
        if isinstance(self.recorder, JSONLSnapshotRecorder):
            kwargs["kept"] = [self._kept(snapshot) for snapshot in domain_events]
        return super().put(domain_events, **kwargs)

    def _kept(self, snapshot: ConversationSnapshot) -> Kept:
        """Return columns from the last ones that were kept up to *snapshot*."""
        originator_id, version = snapshot.originator_id, snapshot.originator_version
        newest = self.columns(originator_id, desc=True, limit=1)
        first = max([version - _MOST, 0, *(piece.last for piece in newest)]) + 1
        pieces = columns_of(self._events, originator_id, first, version)
        if not pieces:
            return Kept()
        columns = packed(pieces)
        return Kept(columns, self._seals.seal(_vouched_for(originator_id, columns)))

    def columns(self, originator_id: UUID, **wanted: Any) -> list[Columns]:
        """Return the columns that were kept, here, with the snapshots that `get` would yield."""
        if not isinstance(self.recorder, JSONLSnapshotRecorder):
            return []
        found: list[Columns] = []
        for kept in self.recorder.select_kept(originator_id, **wanted):
            if self._seals.agrees(_vouched_for(originator_id, kept.columns), kept.seal):
                with suppress(msgspec.MsgspecError):
                    found += unpacked(kept.columns)
        return found


def columns_of(
    events: ReplayedEvents, originator_id: UUID, first: Version, last: Version
) -> list[Columns]:
    """Return the columns of the lines *first*…*last*, and some around them; none in any doubt."""
    recorder, decoder = events.recorder, events.decoder
    if decoder is None or not isinstance(recorder, JSONLAggregateRecorder):
        return []
    reading = recorder.read_once(originator_id, decoder, gt=first - 1, lte=last)
    with suppress(NotAsWrittenError), closing(reading) as blocks:
        return [Columns.of(block) for block in blocks if isinstance(block, Block)]
    return []


class Past:
    """What came before a snapshot: fetched by the columns that were kept, or from the log alone.

    If columns do not fit the log, it was changed since: then none are used any more.

    Args:
        events: All events.
        snapshots: What keeps columns, if anything does.
        originator_id: Of which conversation.
    """

    def __init__(
        self, events: ReplayedEvents, snapshots: Snapshots | None, originator_id: UUID
    ) -> None:
        self._events, self._snapshots, self._id = events, snapshots, originator_id
        self._columns: list[Columns] = []
        self._looked_from: Version | None = None

    def __call__(self, first: Version, last: Version) -> list[Told]:
        """Return the events *first*…*last*, and maybe some before; then what is before those."""
        found: list[Told] = []
        after = first
        for columns, data in self._pieces(first, last):
            told = columns.told(self._id, data, self._events)
            if told is None:
                self._snapshots = None
                return self._read(first, last)
            if columns.first > after:
                found += self._read(after, columns.first - 1)
            found += selected(told, after if found else max(columns.first, 1), last)
            after = max(after, columns.last + 1)
        return found + self._read(after, last) if after <= last else found

    def _pieces(self, first: Version, last: Version) -> Iterator[tuple[Columns, bytes]]:
        """Yield the columns with any of *first*…*last*, and what the log has at their place."""
        recorder, snapshots = self._events.recorder, self._snapshots
        if snapshots is None or not isinstance(recorder, JSONLAggregateRecorder):
            return
        if self._looked_from is None or first < self._looked_from:
            self._look(snapshots, first, last)
        wanted = [each for each in self._columns if each.first <= last and each.last >= first]
        wanted.sort(key=lambda columns: columns.first)
        places = [(columns.start, columns.length) for columns in wanted]
        with closing(recorder.pieces(self._id, places)) as pieces:
            yield from zip(wanted, pieces, strict=False)  # no log, no pieces

    def _look(self, snapshots: Snapshots, first: Version, last: Version) -> None:
        """Get the columns back to *first*: further, if it was looked before, for it goes on."""
        known = self._looked_from
        least = first if known is None else first - _FURTHER * (last - first)
        newest = last if known is None else known - 1
        self._columns += snapshots.columns(self._id, gt=max(least, 1) - 1, lte=newest)
        self._looked_from = max(least, 1)

    def _read(self, first: Version, last: Version) -> list[Told]:
        return list(self._events.get(self._id, gt=first - 1, lte=last))


def _vouched_for(originator_id: UUID, columns: bytes) -> bytes:
    return f"{FORM}\0{originator_id}\0".encode() + columns
