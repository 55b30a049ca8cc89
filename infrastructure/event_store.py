"""The library's event stores: of events, without a detour over logs, and of snapshots."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, cast

from eventsourcing.persistence import EventStore

from domain.snapshot import ConversationSnapshot
from infrastructure.jsonl.recorders import JSONLAggregateRecorder
from infrastructure.mapper import ConversationMapper

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from domain.events import Event


class ConversationEvents(EventStore["UUID"]):
    """Events of conversations, over whatever recorder.

    Over logs it makes no stored event of each line on the way: that was a third of a replay.
    """

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
        recorder, mapper = self.recorder, self.mapper
        if isinstance(recorder, JSONLAggregateRecorder) and isinstance(mapper, ConversationMapper):
            read = mapper.read
            lines = recorder.select_lines(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
            return (read(originator_id, line.version, line.topic, line.raw) for line in lines)
        found = super().get(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return cast("Iterator[Event]", found)

    def newest_of(self, originator_id: UUID, topics: Sequence[str]) -> list[Event]:
        """Return the newest event of each of *topics* that there is."""
        recorder, mapper = self.recorder, self.mapper
        if isinstance(recorder, JSONLAggregateRecorder) and isinstance(mapper, ConversationMapper):
            lines = recorder.newest_lines(originator_id, topics)
            return [mapper.read(originator_id, a.version, a.topic, a.raw) for a in lines]
        newest = {event.TOPIC: event for event in self.get(originator_id) if event.TOPIC in topics}
        return list(newest.values())


class Snapshots(EventStore["UUID"]):
    """Snapshots of conversations, over whatever recorder. What cannot be read is none."""

    def get(self, originator_id: UUID, **wanted: Any) -> Iterator[ConversationSnapshot]:
        """Yield the snapshots as the library's event store does."""
        found = super().get(originator_id, **wanted)
        return (event for event in found if isinstance(event, ConversationSnapshot))
