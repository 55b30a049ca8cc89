"""The library's event stores: of events, without a detour over logs, and of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from eventsourcing.persistence import EventStore

from domain.seals import is_sealed
from domain.snapshot import ConversationSnapshot
from infrastructure.jsonl.recorders import JSONLAggregateRecorder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from uuid import UUID

    from eventsourcing.persistence import AggregateRecorder, Mapper

    from domain.events import Event
    from domain.seals import Seals
    from infrastructure.jsonl.line import Line
    from infrastructure.mapper import ConversationMapper


class ConversationEvents(EventStore["UUID"]):
    """Events of conversations, over any recorder.

    Over logs, lines become events directly: stored events in between cost a third of a replay.
    """

    mapper: ConversationMapper

    def get(
        self,
        originator_id: UUID,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Iterator[Event]:
        """Yield the events with versions in ``(gt, lte]``, at most *limit*, in order or *desc*."""
        recorder = self.recorder
        if isinstance(recorder, JSONLAggregateRecorder):
            lines = recorder.select_lines(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
            return self.of_lines(originator_id, lines)
        found = super().get(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return cast("Iterator[Event]", found)

    def of_lines(self, originator_id: UUID, lines: Iterable[Line]) -> Iterator[Event]:
        """Yield the events of the *lines* of one log."""
        read = self.mapper.read
        return (
            read(originator_id, line.version, line.topic, line.raw, as_written=line.is_as_written)
            for line in lines
        )

    def newest_of(self, originator_id: UUID, topics: Sequence[str]) -> list[Event]:
        """Return the newest event of each of *topics* that there is."""
        recorder = self.recorder
        if isinstance(recorder, JSONLAggregateRecorder):
            return list(self.of_lines(originator_id, recorder.newest_lines(originator_id, topics)))
        newest = {event.TOPIC: event for event in self.get(originator_id) if event.TOPIC in topics}
        return list(newest.values())


class Snapshots(EventStore["UUID"]):
    """Snapshots of conversations, over any recorder.

    A snapshot that cannot be read, or was not made here, is none: a log may be brought from
    elsewhere, and a snapshot with it.
    """

    def __init__(self, mapper: Mapper[UUID], recorder: AggregateRecorder, seals: Seals) -> None:
        super().__init__(mapper, recorder)
        self._seals = seals

    def get(self, originator_id: UUID, **wanted: Any) -> Iterator[ConversationSnapshot]:
        """Yield the snapshots as the library's event store does."""
        found = super().get(originator_id, **wanted)
        return (
            event
            for event in found
            if isinstance(event, ConversationSnapshot) and is_sealed(event, self._seals)
        )
