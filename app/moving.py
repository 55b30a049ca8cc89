"""Conversations on their way from one store to another, whichever persistence modules keep them.

A stream is compared as the domain sees it, decrypted and decompressed: what keeps it does not
count. It is only ever appended to. What is there already is not written again, so a copy that was
cut short goes on where it stopped; at the end both are read, and their digests compared.
"""

from __future__ import annotations

from contextlib import contextmanager, suppress
from dataclasses import replace
from datetime import datetime
from hashlib import sha256
from itertools import takewhile
from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias
from uuid import UUID  # noqa: TC003 - msgspec reads the annotations

import msgspec
from eventsourcing.persistence import IntegrityError, StoredEvent

from app import leases
from app.errors import (
    AppError,
    ChangedElsewhereError,
    LockedConversationError,
    NoSuchConversationError,
)
from app.i18n import _
from app.open_conversation import require_known
from app.outputs import Output
from domain.events import Forked, Version
from domain.text import decoded
from infrastructure.derived_ids import uuid7_of
from infrastructure.errors import LockedStateError, LogMissingError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from app.application import Conversations
    from infrastructure.jsonl.store import Store

_AT_ONCE = 500
"""Events of one save: what a copy that is cut short has to do again at most."""


class DamagedStreamError(AppError):
    """A conversation of which events are missing, or were changed after they were written."""

    MESSAGE = (
        "conversation {id} is damaged in {place}, and was left alone: {what}; "
        "`leftfold recover` makes a new one of what can be saved"
    )


class PartedError(AppError):
    """Two stores have different events of one conversation."""

    MESSAGE = (
        "conversation {id} is another one in {place} from version {version} on: "
        "nothing was copied; --fork copies it under an id of its own"
    )


class NotTheSameError(AppError):
    """What was written is not what was read."""

    MESSAGE = "conversation {id} in {place} is not what was copied: digest {digest}, not {wanted}"


Copying: TypeAlias = Literal["same", "copied", "continued", "forked", "merged", "deleted"]


class Copied(Output, frozen=True):
    """What was done to have a conversation in another store as well."""

    id: UUID
    outcome: Copying
    version: Version
    events: int
    parted: Version | None
    fork: UUID | None
    digest: str | None


class Stream(NamedTuple):
    """All events of a conversation, their states as the domain sees them: versions 1, 2, 3 …."""

    id: UUID
    events: Sequence[StoredEvent]

    @property
    def last(self) -> Version:
        """The last version; 0 if there is no event."""
        return len(self.events)

    @property
    def digest(self) -> str:
        """A digest of versions, topics and states: the same whatever keeps them."""
        found = sha256()
        for event in self.events:
            found.update(f"{event.originator_version} {event.topic} {len(event.state)}\n".encode())
            found.update(event.state)
        return found.hexdigest()

    def common(self, other: Stream) -> Version:
        """Return the last version up to which both have the same events."""
        pairs = zip(self.events, other.events, strict=False)
        return sum(1 for _pair in takewhile(_are_alike, pairs))


def _are_alike(pair: tuple[StoredEvent, StoredEvent]) -> bool:
    one, other = pair
    return (one.topic, one.state) == (other.topic, other.state)


def place_of(conversations: Conversations) -> str:
    """Return what people call the place where *conversations* are kept."""
    if conversations.store is not None:
        return str(conversations.store.path)
    return str(conversations.env.get("PERSISTENCE_MODULE"))


def read(conversations: Conversations, conversation_id: UUID) -> Stream:
    """Return all events of a conversation; none if it is not there.

    Raises:
        DamagedStreamError: some are missing, or were changed.
        LockedConversationError: they cannot be decrypted or decompressed.
    """
    stored: Iterable[StoredEvent]
    if conversations.store is None:
        stored = conversations.recorder.select_events(conversation_id)
    else:
        stored = _whole(conversations.store, conversation_id)
    opened = conversations.events.mapper.opened
    events = []
    for version, event in enumerate(stored, 1):
        if event.originator_version != version:
            what = _("version {version} is missing").format(version=version)
            raise _damaged(conversations, conversation_id, what)
        try:
            events.append(opened(event))
        except LockedStateError as error:
            raise LockedConversationError(id=conversation_id, reason=str(error)) from error
    return Stream(conversation_id, events)


def _whole(store: Store, conversation_id: UUID) -> Iterator[StoredEvent]:
    """Yield the events of a log, of which all bytes are looked at."""
    try:
        found = store.inspect(conversation_id)
    except LogMissingError:
        return
    if not found.lines:
        what = _("no event of it can be read")
        raise DamagedStreamError(id=conversation_id, place=str(store.path), what=what)
    for line in found.lines:
        if line.crc_ok is False:
            what = _("line {line} was changed after it was written").format(line=line.number)
            raise DamagedStreamError(id=conversation_id, place=str(store.path), what=what)
        yield StoredEvent(conversation_id, line.version, line.topic, line.state)


def _damaged(conversations: Conversations, conversation_id: UUID, what: str) -> DamagedStreamError:
    return DamagedStreamError(id=conversation_id, place=place_of(conversations), what=what)


@contextmanager
def held(conversations: Conversations, conversation_id: UUID) -> Iterator[None]:
    """Hold the lease of a conversation, where there are leases: nobody else goes on with it.

    Raises:
        LeaseHeldError: it is open in another program.
    """
    lease = leases.lease(conversations, conversation_id)
    try:
        yield
    finally:
        if lease is not None:
            lease.release()


# -- writing -------------------------------------------------------------------------------------


def carry(stream: Stream, target: Conversations) -> None:
    """Append to *target* what it has not of *stream*, of which it may have the beginning.

    Raises:
        ChangedElsewhereError: another program has appended something meanwhile.
        NotTheSameError: what is there in the end is something else.
    """
    missing = stream.events[read(target, stream.id).last :]
    whole = missing[:-1]
    saves = [whole[start : start + _AT_ONCE] for start in range(0, len(whole), _AT_ONCE)]
    # The last event is a save of its own. Damage to the last save of a log, if it is of many
    # events, costs all of them: they look like a save that a crash cut short.
    for events in [*saves, missing[-1:]] if missing else []:
        try:
            target.recorder.insert_events([target.events.mapper.closed(event) for event in events])
        except IntegrityError as error:
            raise ChangedElsewhereError(id=stream.id) from error
    require_same(stream, target)


def require_same(stream: Stream, target: Conversations) -> None:
    """Make sure that *target* has just the events of *stream*: read them again.

    Raises:
        NotTheSameError: it has others.
    """
    digest = read(target, stream.id).digest
    if digest != stream.digest:
        place = place_of(target)
        raise NotTheSameError(id=stream.id, place=place, digest=digest, wanted=stream.digest)


# -- a fork ----------------------------------------------------------------------------------------


def fork_of(stream: Stream, conversations: Conversations) -> Stream:
    """Return *stream*, which is of *conversations*, as a fork with an id of its own.

    The id, and all of the event that says so, follow from the events: who makes the fork again
    makes the same one.

    Raises:
        NewerEventsError: a newer version wrote in it what this one cannot read.
    """
    source = conversations.get(stream.id, version=stream.last)
    require_known(source)
    fork_id = _fork_id(stream)
    forked = Forked(
        originator_id=fork_id,
        originator_version=stream.last + 1,
        timestamp=source.modified_on,
        source_id=stream.id,
        source_version=stream.last,
        entry=source.leaf,
    )
    mapper = conversations.events.mapper
    events = [replace(event, originator_id=fork_id) for event in stream.events]
    return Stream(fork_id, [*events, mapper.opened(mapper.to_stored_event(forked))])


def _fork_id(stream: Stream) -> UUID:
    """Return a UUIDv7 made of the time of the last event and of a digest of all."""
    digest = int(sha256(stream.id.bytes + bytes.fromhex(stream.digest)).hexdigest(), 16)
    state = decoded(stream.events[-1].state)
    milliseconds = _milliseconds(state.get("timestamp")) if isinstance(state, dict) else 0
    random_a, random_b = digest >> 244, digest & ((1 << 62) - 1)
    return uuid7_of(milliseconds, random_a, random_b)


def _milliseconds(timestamp: object) -> int:
    with suppress(msgspec.ValidationError, OverflowError, OSError):
        return max(int(msgspec.convert(timestamp, datetime).timestamp() * 1000), 0) % (1 << 48)
    return 0


# -- copying ---------------------------------------------------------------------------------------


def copy(
    source: Conversations, target: Conversations, conversation_id: UUID, *, fork: bool
) -> Copied:
    """Copy a conversation, or what is missing of it at the *target*; say what was done.

    Raises:
        NoSuchConversationError: it is not there.
        PartedError: the target's is another one, and no *fork* is asked for.
        DamagedStreamError, LockedConversationError: one of the two cannot be read as a whole.
        LeaseHeldError: somebody works in the target's.
    """
    stream = read(source, conversation_id)
    if not stream.events:
        raise NoSuchConversationError(wanted=str(conversation_id))
    with held(target, conversation_id):
        there = read(target, conversation_id)
        common = stream.common(there)
        if common == stream.last:
            return copied(stream, "same")
        if common == there.last:
            carry(stream, target)
            return copied(stream, "continued" if common else "copied", events=stream.last - common)
    if not fork:
        raise PartedError(id=conversation_id, place=place_of(target), version=common + 1)
    made = fork_of(stream, source)
    with held(target, made.id):
        before = read(target, made.id)
        if made.common(before) < made.last:
            carry(made, target)
    added = made.last - min(before.last, made.last)
    outcome: Copying = "forked" if added else "same"
    return copied(made, outcome, fork_of=conversation_id, events=added, parted=common + 1)


def copied(
    stream: Stream,
    outcome: Copying,
    *,
    fork_of: UUID | None = None,
    events: int = 0,
    parted: Version | None = None,
) -> Copied:
    """Return what is said of a conversation that is *stream* now, or of which that is a fork."""
    return Copied(
        id=fork_of or stream.id,
        outcome=outcome,
        version=stream.last,
        events=events,
        parted=parted,
        fork=stream.id if fork_of else None,
        digest=stream.digest,
    )
