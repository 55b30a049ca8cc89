"""Recovery: what can be saved of a damaged log, as a new conversation; the old file stays as it is.

Events are taken over in the order of their versions and numbered again (`domain.renumbering`). Of
a damaged line, the whole event is tried first (the state is readable though the envelope is
broken), then the text in it, which becomes a note. A proof (request digest) that the loss broke is
dropped.
"""

from __future__ import annotations

from bisect import bisect_left
from typing import TYPE_CHECKING, Any

import msgspec
from eventsourcing.persistence import StoredEvent
from uuid_utils.compat import uuid7

from app.errors import AppError, LockedConversationError
from app.outputs import Fate, Recovered
from domain.events import Event, MessageAppended, Unrecognised, Version
from domain.projections.proofs import with_proofs_that_hold
from domain.renumbering import Item, Renumbering, Words
from domain.text import decoded, valid
from infrastructure.fragments import record_in, words_in
from infrastructure.jsonl import disk
from infrastructure.jsonl.line import MAX_VERSION, DamageKind, Line
from infrastructure.mapper import LOCKED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from app.application import Conversations
    from infrastructure.jsonl.reader import Scan


class NothingToRecoverError(AppError):
    """There is nothing in a log that could be saved."""

    MESSAGE = "nothing of conversation {id} can be saved; its file is as it was"


def recover(conversations: Conversations, conversation_id: UUID, *, cwd: str) -> Recovered:
    """Write what can be saved of a conversation into a new one.

    *cwd* is where the new conversation works if the old directory is not known any more.

    Raises:
        NothingToRecoverError: nothing can be saved; nothing was written.
        LockedConversationError: it can only be read with another cipher or compressor.
        LogMissingError: there is no such log.
        NewerFormatError: a newer version wrote it.
    """
    salvage = _Salvage(conversations, conversation_id)
    if salvage.locked and not salvage.whole:
        raise LockedConversationError(id=conversation_id, reason=LOCKED)
    if not salvage.has_something:
        raise NothingToRecoverError(id=conversation_id)
    clock = conversations.clock()
    new = Renumbering(
        uuid7(), conversation_id, clock, seals=conversations.seals, hurt_end=salvage.hurt_end
    )
    kept, dropped = with_proofs_that_hold(new.made_of(salvage.items, cwd=cwd))
    conversations.recorder.insert_events([conversations.mapper.to_stored_event(e) for e in kept])
    return Recovered(
        id=new.id,
        source_id=conversation_id,
        source=conversation_id,
        events=len(kept),
        saved=salvage.whole,
        in_part=sum(isinstance(item.what, Words) for item in salvage.items),
        lost=tuple(salvage.missing()),
        proofs_kept=sum(isinstance(e, MessageAppended) and bool(e.request_digest) for e in kept),
        proofs_dropped=dropped,
        fates=tuple(salvage.fates),
    )


# -- what there is to be saved -------------------------------------------------------------------


class _Salvage:
    """Everything of one log that can be understood, in order."""

    def __init__(self, conversations: Conversations, conversation_id: UUID) -> None:
        self.id = conversation_id
        self.fates: list[Fate] = []
        self.hurt_end = self.locked = False
        self.whole = 0
        self._mapper = conversations.mapper
        self._items: list[Item] = []
        if conversations.store is None:
            self._take_events(conversations.events_of(conversation_id))
        else:
            found = conversations.store.inspect(conversation_id)
            self._take_events(self._event_of(line) for line in found.lines)
            self._take_damages(found, disk.contents(conversations.store.path_of(conversation_id)))

    @property
    def items(self) -> list[Item]:
        """What was saved, in the order of versions."""
        return sorted(self._items, key=lambda item: item[:2])

    @property
    def has_something(self) -> bool:
        """Whether there is an event, or words that a person or the model said."""
        return self.whole > 0 or any(
            isinstance(item.what, Words) and item.what.visible for item in self._items
        )

    def missing(self) -> Iterator[tuple[Version, Version]]:
        """Yield the ranges of versions of which nothing at all was saved."""
        expected = 1
        for version in sorted({item.version for item in self._items}):
            if version > expected:
                yield expected, version - 1
            expected = version + 1

    def _event_of(self, line: Line) -> Event:
        return self._event(line.version, line.topic, line.state)

    def _event(self, version: Version, topic: str, state: bytes) -> Event:
        found: Any = self._mapper.to_domain_event(StoredEvent(self.id, version, topic, state))
        event: Event = found
        return event

    def _take_events(self, stream: Iterable[Event]) -> None:
        for event in stream:
            version = event.originator_version
            if isinstance(event, Unrecognised):
                self.locked |= event.reason == LOCKED
                kept = words_in(event.state) or _raw_text(event)
                fate = "saved as a note" if kept else "lost"
                if kept:
                    self._items.append(Item(version, 0, kept))
                self.fates.append(Fate(None, None, version, event.reason, fate))
            else:
                self.whole += 1
                self._items.append(Item(version, 0, event))

    def _take_damages(self, found: Scan, data: bytes) -> None:
        self._believed = {line.version: line for line in found.lines}
        self._last = found.lines[-1].version if found.lines else 0
        self._taken = set(self._believed)
        offsets = [line.offset for line in found.lines]
        for order, damage in enumerate(found.damages, 1):
            if not damage.lost or not damage.length:
                continue
            place = bisect_left(offsets, damage.offset)
            before = found.lines[place - 1].version if place else 0
            after = found.lines[place].version if place < len(offsets) else None
            self.hurt_end |= after is None and damage.kind != "batch"
            raw = data[damage.offset : damage.offset + damage.length]
            fate = self._fate_of(raw, damage.kind, before, after, order)
            self.fates.append(Fate(damage.number or None, damage.offset, None, damage.reason, fate))

    def _fate_of(
        self, raw: bytes, kind: DamageKind, before: Version, after: Version | None, order: int
    ) -> str:
        """Save what can be of the damaged bytes *raw*, which stand between two versions."""
        if kind == "batch":
            return "was never saved"
        record = record_in(raw)
        event = None if record is None else self._event(*record)
        if event is None or isinstance(event, Unrecognised):
            text = words_in(raw)
            if text is None:
                return "not needed" if kind == "header" else "lost"
            self._items.append(Item(before, order, text))
            return "saved in part, as a note"
        return self._fate_of_event(event, before, after, order)

    def _fate_of_event(
        self, event: Event, before: Version, after: Version | None, order: int
    ) -> str:
        version = event.originator_version
        line = self._believed.get(version)
        if line is not None and (line.topic, line.state) == (event.TOPIC, self._state_of(event)):
            return "there already"
        version = self._place_for(version, before, after)
        if not version:
            text = words_in(self._state_of(event))
            if text is None:
                return "does not belong here: lost"
            self._items.append(Item(before, order, text._replace(visible=False)))
            return "does not belong here: saved as a hidden note"
        self._taken.add(version)
        self.whole += 1
        event = msgspec.structs.replace(event, originator_version=version)
        self._items.append(Item(version, 0, event))
        return f"saved as version {version}"

    def _state_of(self, event: Event) -> bytes:
        return bytes(self._mapper.to_stored_event(event).state)

    def _place_for(self, version: Version, before: Version, after: Version | None) -> Version:
        """Return the version that an event saved from a damaged line has; 0 if there is none.

        Its own, if that fits where it stands; else one that is missing there (a version that was
        hit); else its own, if that is missing elsewhere (a line that was moved).
        """
        is_free = 0 < version <= MAX_VERSION and version not in self._taken
        if is_free and before < version and (after is None or version < after):
            return version
        slot = before + 1
        while slot in self._taken:
            slot += 1
        if slot < after if after is not None else version == 0:
            return slot
        return version if is_free and version < self._last else 0


def _raw_text(event: Unrecognised) -> Words | None:
    if decoded(event.state) is None:
        return None
    shown = event.state.decode("utf-8", "replace")
    return Words("", valid(f"{event.topic}: {shown}"), visible=False)
