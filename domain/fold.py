"""What a conversation is: the fold over its events, from the first one or from a snapshot.

`Fold.when` is the one place where state changes. The fold tolerates whatever a damaged log holds:
gaps, entries whose parent is lost, a first event that is not `Started`.
"""

from __future__ import annotations

from copy import copy
from typing import TYPE_CHECKING, Self
from uuid import UUID

from eventsourcing.domain import BaseAggregate

from domain import events
from domain.errors import HistoryLostError
from domain.events import Entry, Version
from domain.history import History
from domain.limits import Limits
from domain.seals import NO_KEY, Seals, sealed
from domain.snapshot import FACTS, ConversationSnapshot
from domain.unread import Run, last_version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Sequence
    from datetime import datetime

    from domain.history import Load
    from domain.unread import Told


class Fold(History, BaseAggregate[UUID]):
    """A tree of entries, a leaf, and the facts around them, as the events tell them."""

    Event = events.Event

    clock: Callable[[], datetime] = staticmethod(events.Event.create_timestamp)
    """Tells the time of the next event."""

    seals: Seals = NO_KEY
    """Tell which events were recorded here; the caller that opens a log hands them in."""

    # -- life ----------------------------------------------------------------------------------

    @classmethod
    def blank(cls, conversation_id: UUID, timestamp: datetime) -> Self:
        """Return a conversation in which nothing has happened yet (version 0)."""
        self = cls.__new__(cls)
        self._begin(conversation_id, timestamp)
        return self

    def _begin(self, conversation_id: UUID, timestamp: datetime) -> None:
        self.__base_init__(conversation_id, 0, timestamp)
        History.__init__(self, _nothing)
        self.cwd: str | None = None
        self.cwd_seal = ""
        self.name: str | None = None
        self.archived = False
        self.model: str | None = None
        self.max_tokens: int | None = None
        self.caching = False
        self.thinking_level: str | None = None
        self.instructions: events.InstructionsChanged | None = None
        self.origin: events.Forked | None = None
        self.labels: dict[Version, str] = {}
        self.queued: dict[Version, events.PromptQueued] = {}
        self.allowed: list[events.ApprovalDecided] = []
        self.limits: dict[str, Limits] = {}
        self.withheld: set[tuple[str, Version, str]] = set()
        self.last_turn: events.TurnEnded | None = None
        self.unrecognised: list[events.Unrecognised] = []
        self.restored_from: Version = 0

    @classmethod
    def replay(
        cls,
        conversation: Self | None,
        stream: Iterable[Told],
        *,
        load: Load | None = None,
    ) -> Self | None:
        """Fold *stream* into *conversation*, or into a new one; None if there is no event.

        A projector function for the library's `Repository.get`. The stream may begin with a
        snapshot if *load* fetches the events before it.
        """
        event: Told | None = None
        for event in stream:
            if isinstance(event, ConversationSnapshot):
                conversation = cls.restored(event, load or _nothing)
                continue
            if conversation is None:
                conversation = cls.blank(event.originator_id, event.timestamp)
            conversation.fold(event)
        if conversation is None:
            return None
        if isinstance(event, Run):
            conversation.modified_on = event.modified_on  # of the newest alone it is asked
        if conversation.leaf is not None:
            conversation.has_entry(conversation.leaf)  # if the snapshot was wrong, find out now
        return conversation

    # -- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> ConversationSnapshot | None:
        """Return what opens this conversation without its past; None if it has to be replayed.

        A damaged log has to be: only reading all of it tells what is lost.
        """
        if not self.is_orderly or self.gaps or self.pending_events:
            return None
        snapshot = ConversationSnapshot(
            originator_id=self.id,
            originator_version=self.version,
            timestamp=self.modified_on,
            created_on=self.created_on,
            queued=list(self.queued.values()),
            withheld=sorted(self.withheld),
            messages=self.message_count(),
            leaf=self.leaf,
            **{fact: getattr(self, fact) for fact in FACTS},
        )
        return sealed(snapshot, self.seals)

    @classmethod
    def restored(cls, snapshot: ConversationSnapshot, load: Load) -> Self:
        """Return the conversation of a *snapshot*; *load* fetches its past as far as it is read."""
        self = cls.blank(snapshot.originator_id, snapshot.created_on)
        self._version = self.restored_from = snapshot.originator_version
        self._modified_on = snapshot.timestamp
        for fact in FACTS:
            setattr(self, fact, copy(getattr(snapshot, fact)))
        self.queued = {event.originator_version: event for event in snapshot.queued}
        self.withheld = set(snapshot.withheld)
        begins, messages = self._version + 1, snapshot.messages
        History.__init__(self, load, begins=begins, leaf=snapshot.leaf, messages=messages)
        return self

    def _start_over(self) -> None:
        whole = self.replay(None, self._load(1, self.version))
        if whole is None:
            raise HistoryLostError(self.id)
        for event in self.pending_events:
            event.mutate(whole)
        kept = ("clock", "seals", "_pending_events")
        vars(self).update({k: item for k, item in vars(whole).items() if k not in kept})

    # -- the fold ------------------------------------------------------------------------------

    def fold(self, event: Told) -> None:
        """Change state by *event*, whose version rises; a repeated version is ignored."""
        version = event.originator_version
        if version <= self._version:
            later = isinstance(event, Run) and event.within(self._version + 1, event.last_version)
            if later:
                self.fold(later)
            return
        if version > self._version + 1:
            self._tree.lose(self._version + 1, version - 1)
        self._version = last_version(event)
        if isinstance(event, Run):  # most of them
            self._tree.record(event)
            self.last_turn = None
        else:
            self._modified_on = event.timestamp
            self.when(event)

    def when(self, event: events.Event) -> None:  # noqa: C901, PLR0912 - one flat table of all events
        """Change state by what *event* says happened."""
        self._tree.record(event)
        match event:
            case Entry():
                self.last_turn = None
            case events.TurnEnded():
                self.last_turn = event
            case events.ApprovalDecided(decision="always"):
                self.allowed.append(event)
            case events.ModelChanged(model=model, max_tokens=max_tokens, caching=caching):
                self.model, self.max_tokens, self.caching = model, max_tokens, caching
            case events.LimitsLearned(model=model, context_window=window, max_tokens=max_tokens):
                known = self.limits.get(model, Limits())
                self.limits[model] = known.and_then(window, max_tokens)
            case events.ContentWithheld(targets=targets, kinds=kinds, model=model):
                self.withheld.update((model, each, kind) for each in targets for kind in kinds)
            case events.ThinkingLevelChanged(level=level):
                self.thinking_level = level
            case events.InstructionsChanged():
                self.instructions = event
            case events.PromptQueued():
                self.queued[event.originator_version] = event
            case events.PromptWithdrawn(target=target):
                self.queued.pop(target, None)
            case events.LabelChanged(target=target, label=None):
                self.labels.pop(target, None)
            case events.LabelChanged(target=target, label=str(label)):
                self.labels[target] = label
            case events.Renamed(name=name):
                self.name = name
            case events.Archived(archived=archived):
                self.archived = archived
            case events.Started(cwd=cwd, seal=seal) if self.cwd is None:  # it begins once
                self.cwd, self.cwd_seal = cwd, seal
            case events.Forked():
                self.origin = event
                self.queued.clear()
                self.allowed.clear()
            case events.Unrecognised():
                self.unrecognised.append(event)


def _nothing(_first: Version, _last: Version) -> Sequence[events.Event]:
    return ()
