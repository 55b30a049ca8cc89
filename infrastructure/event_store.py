"""The library's event stores: of events, without a detour over logs, and of snapshots."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import closing, suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, cast, overload

import msgspec
from eventsourcing.persistence import EventStore, Notification, Recording

from domain.unread import last_version, selected
from infrastructure.jsonl.line import MAX_VERSION
from infrastructure.jsonl.one_pass import Block, Decoder, NotAsWrittenError, decoder_of
from infrastructure.jsonl.recorders import JSONLAggregateRecorder

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from eventsourcing.persistence import StoredEvent

    from domain.events import Event
    from infrastructure.jsonl.line import Line
    from infrastructure.jsonl.one_pass import Lines
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
            if limit is None and not desc and self.decoder is not None:
                reading = recorder.read_once(originator_id, self.decoder, gt=gt, lte=lte)
                with suppress(NotAsWrittenError), closing(reading) as blocks:
                    return iter(self._within(originator_id, blocks, gt, lte))
            lines = recorder.select_lines(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
            return self.of_lines(originator_id, lines)
        found = super().get(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return cast("Iterator[Event]", found)

    def put(self, domain_events: Sequence[Any], **kwargs: Any) -> list[Recording[UUID]]:
        """Store *domain_events*, as the library does; what it returns is made when it is read."""
        stored = [self.mapper.to_stored_event(event) for event in domain_events]
        ids = self.recorder.insert_events(stored, **kwargs)
        return cast("list[Recording[UUID]]", Recordings(domain_events, stored, ids or ()))

    @cached_property
    def decoder(self) -> Decoder | None:
        """What reads events in one pass, if they stand in the log as they are."""
        states = self.mapper.states
        return decoder_of(tuple(states.items())) if states else None

    def _within(
        self, originator_id: UUID, blocks: Iterable[Lines], gt: int | None, lte: int | None
    ) -> list[Any]:
        """Return the events of *blocks* with versions in ``(gt, lte]``.

        Raises:
            NotAsWrittenError: they have to be read otherwise.
        """
        events: list[Any] = []
        for block in blocks:
            if isinstance(block, Block):
                events += self._of_block(originator_id, block)
            else:
                events += self.of_lines(originator_id, block)
        low, high = -1 if gt is None else gt, MAX_VERSION if lte is None else lte
        if events and low < events[0].originator_version and last_version(events[-1]) <= high:
            return events
        return list(selected(events, low + 1, high))

    def _of_block(self, originator_id: UUID, block: Block) -> Iterator[Any]:
        return map(partial(placed, originator_id), block.lines)

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


class Recordings(Sequence["Recording[UUID]"]):
    """What a save recorded, in the library's objects, which are made when somebody reads them."""

    def __init__(
        self, events: Sequence[Event], stored: Sequence[StoredEvent], ids: Sequence[int]
    ) -> None:
        self._events, self._stored, self._ids = events, stored, ids

    def __len__(self) -> int:
        return len(self._ids)

    @overload
    def __getitem__(self, index: int) -> Recording[UUID]: ...

    @overload
    def __getitem__(self, index: slice) -> Sequence[Recording[UUID]]: ...

    def __getitem__(self, index: int | slice) -> Recording[UUID] | Sequence[Recording[UUID]]:
        return self._made[index]

    @cached_property
    def _made(self) -> list[Recording[UUID]]:
        found = zip(self._events, self._stored, self._ids, strict=False)  # no ids, no recordings
        return [
            Recording(event, Notification(**vars(stored), id=id_)) for event, stored, id_ in found
        ]


def placed(originator_id: UUID, line: Any) -> Event:
    """Return the state of *line*, which is an event, with who and which in it."""
    event: Event = line.state
    if event.written_as != 1:
        raise NotAsWrittenError  # by a newer version of this program
    _set(event, "originator_id", originator_id)
    _set(event, "originator_version", line.version)
    return event


_set = msgspec.structs.force_setattr
