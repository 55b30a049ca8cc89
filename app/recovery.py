"""Recovery: what can be saved of a damaged log, as a new conversation; the old file stays as it is.

Events are taken over in the order of their versions and numbered anew without gaps; whatever names
a version is translated, and what hung from a lost entry hangs from a note that says so. Of damaged
lines, first the whole event is tried (the state is readable though the envelope is broken), then
the text in them, which becomes a note. A proof (request digest) that the loss broke is dropped.
"""

from __future__ import annotations

import base64
import json
import re
from bisect import bisect_left
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec
from eventsourcing.persistence import StoredEvent
from uuid_utils.compat import uuid7

from app.errors import AppError, LockedConversationError
from domain import events
from domain.calls import OUTCOME_UNKNOWN
from domain.conversation import Conversation
from domain.events import TOPICS, Entry, MessageAppended, Unrecognised
from domain.projections.proofs import proofs
from domain.seals import sealed
from domain.text import decoded, valid
from infrastructure.jsonl import disk
from infrastructure.jsonl import line as lines_
from infrastructure.mapper import LOCKED

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from datetime import datetime
    from uuid import UUID

    from app.application import Conversations
    from domain.events import Event, Version
    from domain.seals import Seals
    from infrastructure.jsonl.line import DamageKind, Line
    from infrastructure.jsonl.store import Inspection

Placed = TypeVar("Placed", bound="Event")

NOTE = "recovered"
LOST_HERE = "(A part of this conversation was lost here.)"
IN_PART = "(This is what could be read of a damaged part of this conversation.)"

_SHORTEST_TEXT = 4
_VERSION = re.compile(rb'"v"\s*:\s*(\d{1,10})\b')
_TOPIC = re.compile(rb'"topic"\s*:\s*"(\w{1,40})"')
_STATE = re.compile(rb'"state"\s*:\s*(?=\{)')
_STATE64 = re.compile(rb'"state64"\s*:\s*"([A-Za-z0-9+/]+=*)"')
_ROLE = re.compile(r'"role"\s*:\s*"(user|assistant)"')
_TEXTS = re.compile(
    r'"(?:text|content|summary|system|command|thinking|name)"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL
)
_SPOKEN = (b"Compacted", b"BranchSummarized", b"NoteAppended", b"PromptQueued")
_KINDS = (
    ("MessageAppended", {"parent", "message"}),
    ("Compacted", {"parent", "summary", "first_kept"}),
    ("BranchSummarized", {"parent", "summary", "from"}),
    ("NoteAppended", {"parent", "kind", "content", "visible"}),
    ("ToolStarted", {"tool_use_id"}),
    ("InstructionsChanged", {"system", "tools"}),
    ("ModelChanged", {"model", "max_tokens"}),
    ("Started", {"cwd"}),
)


class NothingToRecoverError(AppError):
    """There is nothing in a log that could be saved."""

    def __init__(self, conversation_id: UUID) -> None:
        super().__init__(
            f"nothing of conversation {conversation_id} can be saved; its file is as it was"
        )


class Fate(NamedTuple):
    """What became of one damaged place: saved, saved in part, or lost."""

    line: int | None
    offset: int | None
    version: Version | None
    reason: str
    fate: str


class Recovery(NamedTuple):
    """The new conversation, and what was saved and lost on the way to it."""

    source: UUID
    id: UUID
    events: int
    saved: int
    in_part: int
    lost: tuple[tuple[Version, Version], ...]
    proofs_kept: int
    proofs_dropped: int
    fates: tuple[Fate, ...]


class _Text(NamedTuple):
    """What could be read of a damaged line: who said it, if that is known, and the words."""

    who: str
    text: str
    visible: bool


class _Item(NamedTuple):
    """Something to take over, and the place for it: a version, and an order among equals."""

    version: Version
    order: int
    what: Event | _Text


def recover(conversations: Conversations, conversation_id: UUID, *, cwd: str) -> Recovery:
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
        raise LockedConversationError(conversation_id, LOCKED)
    if not salvage.has_something:
        raise NothingToRecoverError(conversation_id)
    clock = conversations.clock()
    new = _NewConversation(
        uuid7(), conversation_id, clock, seals=conversations.seals, hurt_end=salvage.hurt_end
    )
    made = new.made_of(salvage.items, cwd=cwd)
    kept, dropped = _with_proofs_that_hold(made)
    conversations.recorder.insert_events([conversations.mapper.to_stored_event(e) for e in kept])
    return Recovery(
        source=conversation_id,
        id=new.id,
        events=len(kept),
        saved=salvage.whole,
        in_part=sum(isinstance(item.what, _Text) for item in salvage.items),
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
        self._found: list[_Item] = []
        if conversations.store is None:
            self._take_events(conversations.events_of(conversation_id))
        else:
            found = conversations.store.inspect(conversation_id)
            self._take_events(self._event_of(line) for line in found.lines)
            self._take_damages(found, disk.contents(found.path))
        self.items = sorted(self._found, key=lambda item: item[:2])

    @property
    def has_something(self) -> bool:
        """Whether there is an event, or words that a person or the model said."""
        return self.whole > 0 or any(
            isinstance(item.what, _Text) and item.what.visible for item in self.items
        )

    def missing(self) -> Iterator[tuple[Version, Version]]:
        """Yield the ranges of versions of which nothing at all was saved."""
        expected = 1
        for version in sorted({item.version for item in self._found}):
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
                kept = _text_in(event.state) or _raw_text(event)
                fate = "saved as a note" if kept else "lost"
                if kept:
                    self._found.append(_Item(version, 0, kept))
                self.fates.append(Fate(None, None, version, event.reason, fate))
            else:
                self.whole += 1
                self._found.append(_Item(version, 0, event))

    def _take_damages(self, found: Inspection, data: bytes) -> None:
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
        event = self._whole_event(raw)
        if event is None:
            text = _text_in(raw)
            if text is None:
                return "not needed" if kind == "header" else "lost"
            self._found.append(_Item(before, order, text))
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
            text = _text_in(self._state_of(event))
            if text is None:
                return "does not belong here: lost"
            self._found.append(_Item(before, order, text._replace(visible=False)))
            return "does not belong here: saved as a hidden note"
        self._taken.add(version)
        self.whole += 1
        event = msgspec.structs.replace(event, originator_version=version)
        self._found.append(_Item(version, 0, event))
        return f"saved as version {version}"

    def _state_of(self, event: Event) -> bytes:
        return bytes(self._mapper.to_stored_event(event).state)

    def _place_for(self, version: Version, before: Version, after: Version | None) -> Version:
        """Return the version that an event saved from a damaged line has; 0 if there is none.

        Its own, if that fits where it stands; else one that is missing there (a version that was
        hit); else its own, if that is missing elsewhere (a line that was moved).
        """
        is_free = 0 < version <= lines_.MAX_VERSION and version not in self._taken
        if is_free and before < version and (after is None or version < after):
            return version
        slot = before + 1
        while slot in self._taken:
            slot += 1
        if slot < after if after is not None else version == 0:
            return slot
        return version if is_free and version < self._last else 0

    def _whole_event(self, raw: bytes) -> Event | None:
        """Return the event in *raw* if all of its state can be read; None if not.

        Its version is 0 if that cannot be read.
        """
        start = _STATE.search(raw) or _STATE64.search(raw)
        if start is None:
            return None
        try:
            if start.re is _STATE64:
                state = base64.b64decode(start[1], validate=True)
                keys: Iterable[str] = ()
            else:  # characters are bytes, so the end is an offset
                text = str(raw[start.end() :], "latin-1")
                _, length = json.JSONDecoder(strict=False).raw_decode(text)
                state = raw[start.end() : start.end() + length]
                keys = decoded(state).keys()
        except (ValueError, RecursionError, AttributeError):
            return None
        head = raw[: start.start()]
        number, named = _VERSION.search(head), _TOPIC.search(head)
        topic = named[1].decode() if named else ""
        if topic not in TOPICS:
            topic = next((name for name, needed in _KINDS if needed <= set(keys)), "")
        event = self._event(int(number[1]) if number else 0, topic, state)
        return None if isinstance(event, Unrecognised) else event


def _text_in(raw: bytes) -> _Text | None:
    """Return what a person may have said, or read, in the damaged bytes *raw*."""
    text = raw.decode("utf-8", "replace")
    role, topic = _ROLE.search(text), _TOPIC.search(raw)
    found = [_unescaped(match[1]) for match in _TEXTS.finditer(text)]
    said = "\n".join(part for part in found if part.strip(" \n\0\ufffd"))
    if len(said) < _SHORTEST_TEXT:
        return None
    visible = role is not None or (topic is not None and topic[1] in _SPOKEN)
    return _Text(role[1] if role else "", valid(said), visible)


def _unescaped(text: str) -> str:
    """Return the string whose JSON *text* may end in the middle of an escape."""
    for cut in range(min(len(text), 6) + 1):
        try:
            return str(json.loads(f'"{text[: len(text) - cut]}"', strict=False))
        except ValueError:
            continue
    return text


def _raw_text(event: Unrecognised) -> _Text | None:
    if decoded(event.state) is None:
        return None
    shown = event.state.decode("utf-8", "replace")
    return _Text("", valid(f"{event.topic}: {shown}"), visible=False)


# -- the new conversation ------------------------------------------------------------------------


class _NewConversation:
    """Takes items over, one after the other, while the old conversation is replayed beside it."""

    def __init__(
        self, new: UUID, source: UUID, now: datetime, *, seals: Seals, hurt_end: bool
    ) -> None:
        self.id = new
        self._hurt_end = hurt_end
        self._old = Conversation.blank(source, now)
        self._old.seals = seals
        self._new = Conversation.blank(new, now)
        self._new.clock = lambda: now
        self._versions: dict[Version, Version] = {}  # old -> new, of everything taken over
        self._notes: dict[Version | None, Version] = {}  # old leaf -> the note that follows it
        self._made: list[Event] = []

    def made_of(self, items: Sequence[_Item], *, cwd: str) -> list[Event]:
        """Return the events of the new conversation."""
        unknown = self._calls_of_unknown_outcome(items)
        if not any(isinstance(item.what, events.Started) for item in items):
            first = next((i.what.timestamp for i in items if not isinstance(i.what, _Text)), None)
            self._add(events.Started(timestamp=first or self._new.clock(), cwd=cwd))
        for item in items:
            if isinstance(item.what, _Text):
                self._take_text(item.version, item.what)
            else:
                self._take(item.what, unknown.get(item.version, ()))
        self._close()
        return self._made

    def _calls_of_unknown_outcome(self, items: Sequence[_Item]) -> dict[Version, list[str]]:
        """Return the calls that may have been started, though the log does not say so any more."""
        old = Conversation.blank(self._old.id, self._old.created_on)
        for item in items:
            if not isinstance(item.what, _Text):
                old.fold(item.what)
        if self._hurt_end:  # as if something had come after it: that makes a gap
            end = events.Archived(timestamp=old.modified_on, archived=old.archived)
            old.fold(msgspec.structs.replace(end, originator_version=old.version + 2))
        if not old.gaps:
            return {}
        suspected = _unknown_calls(old)
        old.gaps.clear()
        recorded = _unknown_calls(old)
        return {
            version: [call for call in calls if call not in recorded.get(version, ())]
            for version, calls in suspected.items()
        }

    # -- one event ---------------------------------------------------------------------------------

    def _take(self, event: Event, unknown: Sequence[str]) -> None:
        version = event.originator_version
        before = self._old.leaf
        self._old.fold(event)
        changes = self._translated(event, before)
        if changes is None:
            return
        self._versions[version] = self._add(msgspec.structs.replace(event, **changes))
        for call in unknown:
            self._add(events.ToolStarted(timestamp=event.timestamp, tool_use_id=call))

    def _translated(self, event: Event, before: Version | None) -> dict[str, Any] | None:
        """Return the fields of *event* that name versions, in the new numbers; None to drop it."""
        changes: dict[str, Any] = {}
        match event:
            case Entry(originator_version=version, parent=parent):
                changes["parent"] = self._parent(version, parent)
            case events.LeafMoved():
                changes["target"] = self._new_entry(self._old.leaf)
            case events.LabelChanged(target=target) | events.PromptWithdrawn(target=target):
                if target not in self._versions:
                    return None
                changes["target"] = self._versions[target]
            case events.ContentWithheld(targets=targets):
                changes["targets"] = tuple(
                    self._versions[target] for target in targets if target in self._versions
                )
        match event:
            case events.Compacted(first_kept=int(first_kept)):
                changes["first_kept"] = self._first_from(first_kept)
            case events.BranchSummarized(left=left):
                changes["left"] = self._versions.get(left, self._new_entry(before) or 0)
        match event:
            case events.Compacted(asked=asked) | events.BranchSummarized(asked=asked) if asked:
                changes["asked"] = msgspec.structs.replace(
                    asked,
                    version=self._last_up_to(asked.version),
                    leaf=self._versions.get(asked.leaf, 0),
                )
            case MessageAppended(request_version=int(request_version)):
                changes["request_version"] = self._last_up_to(request_version)
        return changes

    def _parent(self, version: Version, parent: Version | None) -> Version | None:
        """Return the new parent of an entry; for a lost one, a note that says that it is lost."""
        if parent is None or self._versions.get(parent) in self._new.entries:
            return self._new_entry(parent)
        above = self._old.parents[version]
        if above not in self._notes:
            self._note(LOST_HERE, above, visible=True)
        self._versions.setdefault(parent, self._notes[above])
        return self._notes[above]

    def _new_entry(self, old: Version | None) -> Version | None:
        if old in self._notes:
            return self._notes[old]
        return None if old is None else self._versions.get(old)

    def _first_from(self, version: Version) -> Version:
        """Return the new version of the first entry from the old *version* on."""
        later = [new for old, new in self._versions.items() if old >= version]
        return min(later, default=self._new.version + 1)

    def _last_up_to(self, version: Version) -> Version:
        return max((new for old, new in self._versions.items() if old <= version), default=0)

    # -- what is said about the loss -----------------------------------------------------------

    def _take_text(self, version: Version, text: _Text) -> None:
        who = {"user": "The user said:", "assistant": "The model said:"}.get(text.who, "")
        content = "\n".join(part for part in (IN_PART, who, text.text) if part)
        new = self._note(content, self._old.leaf, visible=text.visible)
        self._versions.setdefault(version, new)

    def _note(self, content: str, follows: Version | None, *, visible: bool) -> Version:
        """Add a note after the old entry *follows*; what hung from that hangs from the note."""
        new = self._add(
            events.NoteAppended(
                timestamp=self._old.modified_on,
                parent=self._new_entry(follows),
                kind=NOTE,
                content=content,
                visible=visible,
            )
        )
        self._notes[follows] = new
        return new

    def _close(self) -> None:
        """Say where it all is from; what was queued stays queued."""
        ours, theirs = self._old.queue.values(), self._old.held_back.values()
        self._add(
            events.Forked(
                timestamp=self._new.clock(),
                source_id=self._old.id,
                source_version=self._old.version,
                entry=self._old.leaf,
            )
        )
        for text in theirs:
            self._add(events.PromptQueued(timestamp=self._new.clock(), text=text))
        for text in ours:
            queued = events.PromptQueued(timestamp=self._new.clock(), text=text)
            self._add(sealed(self._placed(queued), self._old.seals))

    def _placed(self, event: Placed) -> Placed:
        """Return *event* as the next one of the new conversation."""
        version = self._new.version + 1
        return msgspec.structs.replace(event, originator_id=self.id, originator_version=version)

    def _add(self, event: Event) -> Version:
        event = self._placed(event)
        version = event.originator_version
        self._new.fold(event)
        self._made.append(event)
        return version


def _unknown_calls(conversation: Conversation) -> dict[Version, list[str]]:
    """Return the calls that, if they have no result, have an unknown outcome."""
    found: dict[Version, list[str]] = {}
    for version, entry in conversation.entries.items():
        if isinstance(entry, MessageAppended):
            for call in dict.fromkeys(call["id"] for call in entry.content.tool_uses):
                if conversation.outcome_of(call, asked_at=version) == OUTCOME_UNKNOWN:
                    found.setdefault(version, []).append(call)
    return found


def _with_proofs_that_hold(made: Sequence[Event]) -> tuple[list[Event], int]:
    """Return the events without the request digests that cannot be proven, and how many went."""
    wrong = {proof.answer.originator_version for proof in proofs(made) if not proof.holds}
    kept = []
    for event in made:
        if event.originator_version not in wrong:
            kept.append(event)
        elif isinstance(event, MessageAppended):
            kept.append(
                msgspec.structs.replace(
                    event, request_digest=None, request_version=None, projection=None
                )
            )
        else:
            kept.append(msgspec.structs.replace(event, asked=None))
    return kept, len(wrong)
