"""The library's event store, for logs: their lines go to the mapper as they are."""

from __future__ import annotations

from typing import TYPE_CHECKING, cast

from eventsourcing.persistence import EventStore

from infrastructure.jsonl.recorders import JSONLAggregateRecorder
from infrastructure.mapper import ConversationMapper

if TYPE_CHECKING:
    from collections.abc import Iterator
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
