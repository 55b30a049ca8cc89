"""Two stores brought in step, both ways: nothing is lost, and nothing is there twice.

Where one store has the beginning of what the other has, it gets the rest. Where a conversation went
on in both, one line keeps its id and the other becomes a fork with an id of its own, in both
stores. Which one, and what the fork is called, follow from the events: whoever syncs first, and
however often, all stores end up with the same. What was deleted in one store stays away from it.
"""

from __future__ import annotations

from contextlib import ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

import msgspec
from eventsourcing.persistence import IntegrityError, StoredEvent

from app.catalogue import refused
from app.errors import AppError
from app.moving import (
    Copied,
    Stream,
    carry,
    copied,
    fork_of,
    held,
    place_of,
    read,
    require_same,
)
from domain.events import Archived, LabelChanged, Renamed, Version
from domain.text import decoded
from infrastructure.errors import LockedStateError, StoreError, WriteError
from infrastructure.jsonl import life_cycle, trash

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from app.application import Conversations
    from app.outputs import Unreadable

Where: TypeAlias = Literal["here", "there"]


class Synced(Copied, frozen=True):
    """What was done to have a conversation alike in two stores."""

    to: Where | None


class Side(NamedTuple):
    """A conversation as one of the two stores has it."""

    where: Where
    conversations: Conversations
    stream: Stream

    def after(self, version: Version) -> list[StoredEvent]:
        """Return the events after *version*."""
        return list(self.stream.events[version:])


class Plan(NamedTuple):
    """What is to be done, and what is said of it then."""

    row: Synced
    carry_out: Callable[[], object]


def sync(
    here: Conversations, there: Conversations, *, dry_run: bool
) -> Iterator[Synced | Unreadable]:
    """Bring the conversations of two stores in step; yield what was done with each, or why nothing.

    A *dry_run* writes nothing: what would be done is said.

    Raises:
        WriteError: one of them cannot be written to. What was done before is done.
    """
    for conversation_id in sorted({*here.ids(), *there.ids()}):
        try:
            yield _synced(here, there, conversation_id, dry_run=dry_run)
        except WriteError:
            raise
        except (AppError, StoreError, IntegrityError) as error:
            yield refused(conversation_id, error)


def _synced(
    here: Conversations, there: Conversations, conversation_id: UUID, *, dry_run: bool
) -> Synced:
    if (version := _last_of_both(here, there, conversation_id)) is not None:
        return _same(conversation_id, version)
    with ExitStack() as leases:
        if not dry_run:
            leases.enter_context(held(here, conversation_id))
            leases.enter_context(held(there, conversation_id))
        ours = Side("here", here, read(here, conversation_id))
        theirs = Side("there", there, read(there, conversation_id))
        plan = _plan(ours, theirs)
        if not dry_run:
            plan.carry_out()
        return plan.row


def _last_of_both(
    here: Conversations, there: Conversations, conversation_id: UUID
) -> Version | None:
    """Return the last version, if both end with the same event: logs only grow, so all is alike."""
    ends = []
    for one in (here, there):
        found = one.recorder.select_events(conversation_id, desc=True, limit=1)
        with suppress(LockedStateError):  # said when all of it is read
            ends += [one.events.mapper.opened(event) for event in found]
    return ends[0].originator_version if len(ends) == 2 and ends[0] == ends[1] else None  # noqa: PLR2004


def _same(conversation_id: UUID, version: Version) -> Synced:
    return Synced(
        id=conversation_id,
        outcome="same",
        version=version,
        events=0,
        parted=None,
        fork=None,
        digest=None,
        to=None,
    )


def _plan(ours: Side, theirs: Side) -> Plan:
    common = ours.stream.common(theirs.stream)
    shorter, longer = sorted((ours, theirs), key=lambda side: side.stream.last)
    if common < shorter.stream.last:
        return _plan_of_parted(*_ranked(ours, theirs, common), common)
    if common == longer.stream.last:
        return Plan(_same(longer.stream.id, common), _nothing)
    if not common and _is_deleted(shorter.conversations, longer.stream.id):
        return Plan(_row(copied(longer.stream, "deleted"), shorter.where), _nothing)
    added = longer.stream.last - common
    done = copied(longer.stream, "continued" if common else "copied", events=added)
    return Plan(_row(done, shorter.where), lambda: carry(longer.stream, shorter.conversations))


def _row(done: Copied, to: Where | None = None) -> Synced:
    return Synced(**msgspec.structs.asdict(done), to=to)


def _nothing() -> None:
    """Do nothing: all is as it should be."""


def _is_deleted(conversations: Conversations, conversation_id: UUID) -> bool:
    store = conversations.store
    return store is not None and trash.is_deleted(store, conversation_id)


# -- what went on in both ------------------------------------------------------------------------


_FACTS = {Renamed.TOPIC, Archived.TOPIC, LabelChanged.TOPIC}
"""What says something of a conversation, and means the same wherever it stands in its log."""


def _is_facts_only(side: Side, common: Version) -> bool:
    """Whether nothing came after *common* but names, labels of what was there, and archiving."""
    for event in side.after(common):
        state = decoded(event.state)
        target = state.get("target", 0) if isinstance(state, dict) else None
        if event.topic not in _FACTS or not isinstance(target, int) or target > common:
            return False
    return True


def _ranked(ours: Side, theirs: Side, common: Version) -> tuple[Side, Side]:
    """Return first the side whose line keeps the id, then the other one.

    A line that cannot be replaced keeps it, then one in which more was done than named; then the
    one that went on first. Of two that were only named, the one that was named last comes second:
    it has the last word.
    """

    def rank(side: Side) -> tuple[bool, bool, str, bytes]:
        is_facts_only = _is_facts_only(side, common)
        event = side.after(common)[-1 if is_facts_only else 0]
        state = decoded(event.state)
        when = str(state.get("timestamp")) if isinstance(state, dict) else ""
        return side.conversations.store is not None, is_facts_only, when, event.state

    first, second = sorted((ours, theirs), key=rank)
    return first, second


def _plan_of_parted(first: Side, second: Side, common: Version) -> Plan:
    if _is_facts_only(second, common):
        return _plan_of_facts(first, second, common)
    fork = fork_of(second.stream, second.conversations)

    def carry_out() -> None:
        _keep_as(fork, second)
        _have(fork, first.conversations)
        _supersede(second, first.stream)

    done = copied(
        fork, "forked", fork_of=first.stream.id, events=len(second.after(common)), parted=common + 1
    )
    return Plan(_row(done, second.where), carry_out)


def _plan_of_facts(first: Side, second: Side, common: Version) -> Plan:
    """Have what the second line says of the conversation at the end of the first one."""
    known = {(event.topic, event.state) for event in first.after(common)}
    facts = [e for e in second.after(common) if (e.topic, e.state) not in known]
    numbered = [
        replace(event, originator_version=version)
        for version, event in enumerate(facts, first.stream.last + 1)
    ]
    merged = Stream(first.stream.id, [*first.stream.events, *numbered])

    def carry_out() -> None:
        carry(merged, first.conversations)
        _supersede(second, merged)

    done = copied(merged, "merged", events=len(facts), parted=common + 1)
    return Plan(_row(done, first.where), carry_out)


def _keep_as(fork: Stream, side: Side) -> None:
    """Have the line of *side* as *fork* in its own store, with every byte of its log."""
    conversations = side.conversations
    assert conversations.store is not None
    if not read(conversations, fork.id).events:
        end = conversations.events.mapper.closed(fork.events[-1])
        source, upto = side.stream.id, side.stream.last
        life_cycle.fork(conversations.store, source, upto, fork.id, [end])
    _have(fork, conversations)


def _have(fork: Stream, conversations: Conversations) -> None:
    """Have all of *fork*, which may have gone on since it was made."""
    if fork.common(read(conversations, fork.id)) < fork.last:
        carry(fork, conversations)


def _supersede(side: Side, stream: Stream) -> None:
    """Put *stream* in place of the line of *side*, all of which stands in another conversation."""
    conversations = side.conversations
    assert conversations.store is not None, place_of(conversations)
    events = [conversations.events.mapper.closed(event) for event in stream.events]
    life_cycle.supersede(conversations.store, stream.id, events, side.stream.last)
    require_same(stream, conversations)
