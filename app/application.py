"""The application: use cases over conversations, on the eventsourcing library.

`Conversations` finds, opens, starts and forks; `app.open_conversation` keeps one of them in step
with its log.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar, cast
from uuid import UUID

from eventsourcing.application import AggregateNotFoundError, Application, Repository
from eventsourcing.persistence import Mapper, PersistenceError, Recording

from app.errors import (
    LockedConversationError,
    NoSuchConversationError,
    UnreadableConversationError,
)
from app.leases import Leasing
from app.open_conversation import OpenConversation, require_known
from domain.conversation import Conversation
from domain.errors import UnknownEntryError
from domain.events import Event, Forked, Version
from domain.projections.catalogue import CATALOGUED
from infrastructure.event_store import ConversationEvents
from infrastructure.jsonl import life_cycle
from infrastructure.jsonl.recorders import JSONLApplicationRecorder
from infrastructure.mapper import LOCKED, ConversationMapper, SnapshotMapper
from infrastructure.replayed import ReplayedEvents
from infrastructure.seals import HomeSeals, default_home
from infrastructure.snapshot_store import Past, Snapshots

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from eventsourcing.utils import Environment, EnvType

    from infrastructure.jsonl.store import Store

_PAGE = 2_000

HEAD = 16
"""How many events are read from the beginning of a log: up to the first prompt, in practice."""


_POSTGRES = {
    "APPLICATION_RECORDER_TOPIC": "infrastructure.postgres:Recorder",
    "POSTGRES_CONNECT_TIMEOUT": "3",
    "POSTGRES_LOCK_TIMEOUT": "5",
}
"""What holds over PostgreSQL if nothing else is said. The library tries ten times, 30 s each."""


class Conversations(Application[UUID]):
    """All conversations of one store."""

    name = "leftfold"
    env: ClassVar[dict[str, str]] = {"PERSISTENCE_MODULE": "infrastructure.jsonl"}
    is_snapshotting_enabled = True

    def __init__(
        self,
        env: EnvType | None = None,
        *,
        clock: Callable[[], datetime] | None = None,
        home: Path | None = None,
    ) -> None:
        """*home* has the key that shows what was recorded here; ``LEFTFOLD_HOME`` by default."""
        self.seals = HomeSeals(home or default_home())
        super().__init__(env)
        self.clock = clock or (lambda: datetime.now(UTC))

    def construct_env(self, name: str, env: EnvType | None = None) -> Environment:
        """Let events of any size be recorded in PostgreSQL (`infrastructure.postgres`)."""
        found = super().construct_env(name, env)
        if found.get("PERSISTENCE_MODULE") == "eventsourcing.postgres":
            found.update(_POSTGRES | found)
        return found

    def construct_mapper(self) -> Mapper[UUID]:
        """Use the mapper of conversations, with the library's cipher and compressor."""
        return self.factory.mapper(
            transcoder=self.construct_transcoder(), mapper_class=ConversationMapper
        )

    events: ConversationEvents

    def construct_event_store(self) -> ConversationEvents:
        """Read logs without a detour."""
        self._replayed = ReplayedEvents(self.mapper, self.recorder)
        return ConversationEvents(self.mapper, self.recorder)

    snapshots: Snapshots | None

    def construct_snapshot_store(self) -> Snapshots:
        """Keep snapshots apart from the closed registry of events, where there is a place."""
        mapper = self.factory.mapper(
            transcoder=self.construct_transcoder(), mapper_class=SnapshotMapper
        )
        try:
            recorder = self.factory.aggregate_recorder(purpose="snapshots")
        except NotImplementedError:  # UmaDB has none
            return cast("Snapshots", None)
        return Snapshots(mapper, recorder, self.seals, self._replayed)

    def construct_repository(self) -> Repository[UUID]:
        """Replay without reading what nobody looks at."""
        repository = super().construct_repository()
        repository.event_store = self._replayed
        return repository

    @property
    def store(self) -> Store | None:
        """The folder of logs; None over another persistence module."""
        recorder = self.recorder
        return recorder.store if isinstance(recorder, JSONLApplicationRecorder) else None

    def close(self) -> None:
        """Close what is open, leases that a database has given among it."""
        if isinstance(self.recorder, Leasing):
            self.recorder.end_leases()
        super().close()

    # -- finding -------------------------------------------------------------------------------

    def ids(self) -> Iterator[UUID]:
        """Yield the ids of all conversations, newest first."""
        if self.store is not None:
            yield from self.store.ids()
            return
        started: dict[UUID, None] = {}
        start: int | None = 1
        while start is not None:
            page = self.recorder.select_notifications(start, _PAGE, topics=["Started"])
            started.update(dict.fromkeys(UUID(str(notice.originator_id)) for notice in page))
            start = page[-1].id + 1 if len(page) == _PAGE else None
        yield from sorted(started, reverse=True)

    def events_of(
        self,
        conversation_id: UUID,
        *,
        since: Version = 1,
        until: Version | None = None,
        limit: int | None = None,
    ) -> Iterator[Event]:
        """Yield the events *since*…*until* of one conversation, in order."""
        found: Any = self.events.get(conversation_id, gt=since - 1, lte=until, limit=limit)
        return iter(found)

    def pages_of(self, conversation_id: UUID, *, since: Version = 1) -> Iterator[list[Event]]:
        """Yield the events from *since* on in pieces: not all of them are there at once."""
        if self.store is not None and self.store.log(conversation_id).is_small():
            yield list(self.events_of(conversation_id, since=since))
            return
        last = self.last_event_of(conversation_id)
        end = last.originator_version if last else 0
        for first in range(since, end + 1, _PAGE):
            until = min(first + _PAGE - 1, end)
            yield list(self.events_of(conversation_id, since=first, until=until))

    def last_event_of(self, conversation_id: UUID) -> Event | None:
        """Return the newest event of one conversation."""
        found: Any = self.events.get(conversation_id, desc=True, limit=1)
        return next(iter(found), None)

    def summary_events(self, conversation_id: UUID) -> list[Event]:
        """Return what a list shows, in order: the first events, the newest facts, the last event.

        Nothing, if no event can be read.
        """
        head = list(self.events_of(conversation_id, limit=HEAD))
        last = self.last_event_of(conversation_id) if len(head) == HEAD else None
        if last is None or last == head[-1]:
            return head
        facts = self.events.newest_of(conversation_id, CATALOGUED)
        later = {event.originator_version: event for event in [*facts, last]}
        known = {event.originator_version for event in head}
        return head + [later[version] for version in sorted(later.keys() - known)]

    # -- opening -------------------------------------------------------------------------------

    def get(self, conversation_id: UUID, *, version: Version | None = None) -> Conversation:
        """Return the conversation as it is, or as it was at *version*, rebuilt by replay.

        Raises:
            NoSuchConversationError: the store has no event of it.
            UnreadableConversationError: there is a log, and no event in it can be read.
            LockedConversationError: nothing of it can be read with these settings.
        """
        past = Past(self._replayed, self.snapshots, conversation_id)
        replay = partial(Conversation.replay, load=past)
        try:
            conversation: Conversation = self.repository.get(
                conversation_id, version=version, projector_func=replay
            )
        except AggregateNotFoundError:
            if self.store is not None and self.store.log(conversation_id).exists():
                raise UnreadableConversationError(id=conversation_id) from None
            raise NoSuchConversationError(wanted=str(conversation_id)) from None
        is_locked = [event.reason for event in conversation.unrecognised[:1]] == [LOCKED]
        if is_locked and conversation.cwd is None and not conversation.entries:
            raise LockedConversationError(id=conversation_id, reason=LOCKED)
        conversation.clock, conversation.seals = self.clock, self.seals
        return conversation

    def keep_snapshot(self, conversation: Conversation) -> None:
        """Keep what opens *conversation* fast; derived, so nothing is lost if it cannot be kept."""
        snapshot = conversation.snapshot()
        if snapshot is not None and self.snapshots is not None:
            with suppress(PersistenceError):
                self.snapshots.put([snapshot])

    def open(self, conversation_id: UUID, *, version: Version | None = None) -> OpenConversation:
        """Return an open conversation; as it was at *version*, it can only be looked at.

        Raises:
            NoSuchConversationError: the store has no event of it.
        """
        return OpenConversation(
            self, conversation_id, conversation=self.get(conversation_id, version=version)
        )

    def start(self, begin: Callable[[UUID, datetime], Conversation]) -> OpenConversation:
        """Return a new open conversation, made by *begin* from an id and a time.

        It is in the store from its first `record` on: nothing is kept of one that was only opened.
        """
        return OpenConversation(self, _new_id(), begin)

    # -- forking -------------------------------------------------------------------------------

    def fork(self, source_id: UUID, entry: Version | None = None) -> UUID:
        """Copy events 1…*entry* (all, for none) under a new id, and return it.

        The copy needs nothing of its parent, which stays byte-identical.

        Raises:
            NoSuchConversationError: the store has no event of it.
            UnknownEntryError: *entry* is not an entry of the source.
            NewerEventsError: a newer version wrote in it what this one cannot read.
        """
        source = self.get(source_id, version=None if entry is None else max(entry, 1))
        if entry is not None and not source.has_entry(entry):
            raise UnknownEntryError(entry)
        require_known(source)
        forked = Forked(
            originator_id=_new_id(),
            originator_version=source.version + 1,
            timestamp=self.clock(),
            source_id=source_id,
            source_version=source.version,
            entry=source.leaf if entry is None else entry,
        )
        stored = self.mapper.to_stored_event(forked)
        if self.store is not None:
            life_cycle.fork(self.store, source_id, source.version, forked.originator_id, [stored])
        else:
            copied = self.recorder.select_events(source_id, lte=source.version)
            child = [replace(event, originator_id=forked.originator_id) for event in copied]
            self.recorder.insert_events([*child, stored])
        return forked.originator_id

    # -- saving --------------------------------------------------------------------------------

    def save(self, *objs: Any, **kwargs: Any) -> list[Recording[UUID]]:
        """Record the pending events of aggregates, as the library does.

        For the usual case, one conversation, without its checks of run-time protocols: on
        Python 3.11 they take longer than the write.

        Raises:
            NewerEventsError: a newer version wrote in one of them what this one cannot read.
        """
        for changed in objs:
            if isinstance(changed, Conversation):
                require_known(changed)
        if kwargs or len(objs) != 1 or not isinstance(objs[0], Conversation):
            return super().save(*objs, **kwargs)
        (conversation,) = objs
        events: Any = conversation.collect_events()
        recordings = self.events.put(events)
        cache = self.repository.cache
        if cache and not self.repository.fastforward:
            cache.put(conversation.id, conversation)
        self._notify(recordings)
        return recordings

    def is_recorded(self, pending: list[Event]) -> bool:
        """Whether the log holds exactly these events at their versions."""
        if not pending:
            return False
        with suppress(PersistenceError):
            first = pending[0]
            found = self.events_of(
                first.originator_id, since=first.originator_version, limit=len(pending)
            )
            return list(found) == pending
        return False


def _new_id() -> UUID:
    from uuid_utils.compat import uuid7  # noqa: PLC0415 - most commands begin nothing

    return uuid7()
