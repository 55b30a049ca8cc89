"""The application: use cases over conversations, on the eventsourcing library.

`Conversations` finds, opens, starts and forks; `OpenConversation` keeps one conversation in step
with its log. "Append, then believe" lives here: the library's aggregates change first and empty
their pending list before the recorder is asked, so after any failed save the object is thrown
away and read again.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from datetime import UTC, datetime
from functools import partial
from typing import TYPE_CHECKING, Any, ClassVar
from uuid import UUID

from eventsourcing.application import AggregateNotFoundError, Application, ProcessingEvent
from eventsourcing.persistence import IntegrityError, PersistenceError

from app.errors import (
    ChangedElsewhereError,
    LockedConversationError,
    NewerEventsError,
    NoSuchConversationError,
    NotRecordedError,
    UnreadableConversationError,
)
from domain.conversation import Conversation
from domain.errors import UnknownEntryError
from domain.events import Compacted, Entry, Forked, LeafMoved
from domain.projections.catalogue import CATALOGUED
from infrastructure.event_store import ConversationEvents, Snapshots
from infrastructure.jsonl import life_cycle
from infrastructure.jsonl.recorders import JSONLApplicationRecorder
from infrastructure.mapper import LOCKED, ConversationMapper, SnapshotMapper
from infrastructure.seals import HomeSeals, default_home

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from eventsourcing.persistence import EventStore, Mapper, Recording
    from eventsourcing.utils import EnvType

    from domain.events import Event, Version
    from infrastructure.jsonl.store import Store

_PAGE = 500
_LAST_FEW = 16

HEAD = 16
"""How many events are read from the beginning of a log: up to the first prompt, in practice."""

MAX_TRIES = 20
"""How often a command is applied again because another program was faster."""

SNAPSHOT_INTERVAL = 500
"""Events between two snapshots: what opening replays at most, in a few milliseconds."""


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

    def construct_mapper(self) -> Mapper[UUID]:
        """Use the mapper of conversations, with the library's cipher and compressor."""
        return self.factory.mapper(
            transcoder=self.construct_transcoder(), mapper_class=ConversationMapper
        )

    events: ConversationEvents

    def construct_event_store(self) -> ConversationEvents:
        """Read logs without a detour."""
        return ConversationEvents(self.mapper, self.recorder)

    def construct_snapshot_store(self) -> EventStore[UUID]:
        """Keep snapshots apart from the closed registry of events."""
        mapper = self.factory.mapper(
            transcoder=self.construct_transcoder(), mapper_class=SnapshotMapper
        )
        recorder = self.factory.aggregate_recorder(purpose="snapshots")
        return Snapshots(mapper, recorder, self.seals)

    @property
    def store(self) -> Store | None:
        """The folder of logs; None over another persistence module."""
        recorder = self.recorder
        return recorder.store if isinstance(recorder, JSONLApplicationRecorder) else None

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
            started.update(dict.fromkeys(_uuid(notice.originator_id) for notice in page))
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
        replay = partial(Conversation.replay, load=partial(self._recorded, conversation_id))
        try:
            conversation: Conversation = self.repository.get(
                conversation_id, version=version, projector_func=replay
            )
        except AggregateNotFoundError:
            if self.store is not None and self.store.log(conversation_id).exists():
                raise UnreadableConversationError(conversation_id) from None
            raise NoSuchConversationError(str(conversation_id)) from None
        unread = conversation.unrecognised
        if conversation.cwd is None and not conversation.entries and unread[:1]:
            first = unread[0].reason
            if first == LOCKED:
                raise LockedConversationError(conversation_id, first)
        conversation.clock, conversation.seals = self.clock, self.seals
        return conversation

    def _recorded(self, conversation_id: UUID, first: Version, last: Version) -> list[Event]:
        return list(self.events_of(conversation_id, since=first, until=last))

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
        version, leaf = self._end_of(source_id) if entry is None else (entry, entry)
        if entry is not None and not self._is_entry(source_id, entry):
            raise UnknownEntryError(entry)
        require_known(self.get(source_id, version=version))
        forked = Forked(
            originator_id=_new_id(),
            originator_version=version + 1,
            timestamp=self.clock(),
            source_id=source_id,
            source_version=version,
            entry=leaf,
        )
        stored = self.mapper.to_stored_event(forked)
        if self.store is not None:
            life_cycle.fork(self.store, source_id, version, forked.originator_id, [stored])
        else:
            copied = self.recorder.select_events(source_id, lte=version)
            child = [replace(event, originator_id=forked.originator_id) for event in copied]
            self.recorder.insert_events([*child, stored])
        return forked.originator_id

    def _end_of(self, conversation_id: UUID) -> tuple[Version, Version | None]:
        """Return the last version and the leaf, read from the end; by replay where that is unsure.

        Raises:
            NoSuchConversationError: the store has no event of it.
        """
        found: Any = self.events.get(conversation_id, desc=True, limit=_LAST_FEW)
        newest = list(found)
        for event in newest:
            if isinstance(event, Entry):
                return newest[0].originator_version, event.originator_version
            if isinstance(event, LeafMoved) and self._is_entry(conversation_id, event.target):
                return newest[0].originator_version, event.target
        conversation = self.get(conversation_id)
        return conversation.version, conversation.leaf

    def _is_entry(self, conversation_id: UUID, version: Version | None) -> bool:
        if version is None or version < 1:
            return False
        found = self.events_of(conversation_id, since=version, until=version)
        return any(isinstance(event, Entry) for event in found)

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
        saving = ProcessingEvent[UUID]()
        saving.events.extend(objs[0].collect_events())
        saving.aggregates[objs[0].id] = objs[0]
        recordings = self._record(saving)
        self._take_snapshots(saving)
        self._notify(recordings)
        self.notify(saving.events)
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


class OpenConversation:
    """An open conversation, in step with its log: append, then believe."""

    def __init__(
        self,
        conversations: Conversations,
        conversation_id: UUID,
        begin: Callable[[UUID, datetime], Conversation] | None = None,
        *,
        conversation: Conversation | None = None,
    ) -> None:
        self.id = conversation_id
        self._conversations = conversations
        self._begin = begin
        self._conversation = conversation
        self._kept: Version = conversation.restored_from if conversation else 0

    @property
    def conversation(self) -> Conversation:
        """The conversation as the log has it; read again after a failed save."""
        if self._conversation is None:
            self._conversation = self._read()
        return self._conversation

    def _read(self) -> Conversation:
        try:
            return self._conversations.get(self.id)
        except NoSuchConversationError:
            if self._begin is None:
                raise
            conversation = self._begin(self.id, self._conversations.clock())
            conversation.clock = self._conversations.clock
            conversation.seals = self._conversations.seals
            return conversation

    def record(self, command: Callable[[Conversation], object], *, anywhere: bool = False) -> None:
        """Apply *command* and append its events; when this returns, they are in the log.

        What another program appended meanwhile is read, and *command* applied again: if the leaf
        is where it was, or *anywhere* for what knows its own place in the tree.

        Raises:
            ConversationError: the command was refused; nothing changed.
            ChangedElsewhereError: another program moved the leaf meanwhile.
            NewerEventsError: a newer version wrote in it what this one cannot read.
            NotRecordedError: the log could not take the events.
        """
        leaf = self._known().leaf
        for _ in range(MAX_TRIES):
            try:
                pending = self._recorded(command)
            except ChangedElsewhereError:
                if self._known().leaf != leaf and not anywhere:
                    raise
            else:
                self._keep_snapshot(pending)
                return
        raise ChangedElsewhereError(self.id)

    def _known(self) -> Conversation:
        try:
            conversation = self.conversation
        except PersistenceError as error:
            raise NotRecordedError(str(error)) from error
        require_known(conversation)
        return conversation

    def _recorded(self, command: Callable[[Conversation], object]) -> list[Event]:
        """Apply *command*, append its events, and return them."""
        conversation, self._conversation = self._known(), None
        command(conversation)
        pending: list[Any] = list(conversation.pending_events)
        try:
            self._conversations.save(conversation)
        except IntegrityError as error:
            raise ChangedElsewhereError(self.id) from error
        except PersistenceError as error:
            # The error may have come after the fact. The log knows.
            if not self._conversations.is_recorded(pending):
                raise NotRecordedError(str(error)) from error
        self._begin = None
        self._conversation = conversation
        return pending

    def _keep_snapshot(self, added: list[Event]) -> None:
        """Keep a snapshot after a compaction, and every so many events."""
        conversation = self.conversation
        compacted = any(isinstance(event, Compacted) for event in added)
        if compacted or conversation.version - self._kept >= SNAPSHOT_INTERVAL:
            self._conversations.keep_snapshot(conversation)
            self._kept = conversation.version


def require_known(conversation: Conversation) -> None:
    """Make sure that no newer version wrote in *conversation* what this one cannot read.

    Raises:
        NewerEventsError: one did: what came after it would be appended as if it were ours.
    """
    if any(event.is_newer for event in conversation.unrecognised):
        raise NewerEventsError(conversation.id)


def _uuid(originator_id: UUID | str) -> UUID:
    return originator_id if isinstance(originator_id, UUID) else UUID(originator_id)


def _new_id() -> UUID:
    from uuid_utils.compat import uuid7  # noqa: PLC0415 - most commands begin nothing

    return uuid7()
