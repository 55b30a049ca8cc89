"""What the history of another program tells, and its place in a conversation of ours. Pure.

A history names its entries by keys of its own. `Placement` gives each a version, and hangs from
what came right before it whatever names an entry that is lost.
"""

from __future__ import annotations

from collections import defaultdict, deque
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, NamedTuple

import msgspec

from domain import events
from domain.events import UNSET_ID, Entry, Event, MessageAppended, Version

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping
    from datetime import datetime
    from uuid import UUID

    from domain.messages import JsonObject

BEFORE = "(before)"
"""Names the entry that comes right before, in a history whose entries name no parent."""

_encode = msgspec.json.encode

_ENTRIES = ("parent", "target", "first_kept", "left")
"""The fields of events that name entries."""


class Told(NamedTuple):
    """One thing that a history tells.

    Attributes:
        key: What it is called in the history, where other things name it.
        event: What it is here; None for what says nothing itself, though others hang from it.
        parent: The key of what it hangs from, None for a root, or `BEFORE`.
        names: The fields of the event that name other entries, each with a key.
        calls: The ids of the calls in it.
        results: The ids of the calls that it answers.
        is_aside: Whether the conversation does not go on from here: another agent said it.
    """

    key: str
    event: Event | None
    parent: str | None = BEFORE
    names: Mapping[str, str] = {}
    calls: tuple[str, ...] = ()
    results: tuple[str, ...] = ()
    is_aside: bool = False


def told_message(
    key: str,
    timestamp: datetime,
    role: str,
    content: list[JsonObject],
    parent: str | None = BEFORE,
    **facts: Any,
) -> Told:
    """Return a message of valid blocks; *facts* are the fields that answers have besides."""
    event = MessageAppended(
        timestamp=timestamp,
        parent=None,
        message=msgspec.Raw(_encode({"role": role, "content": content})),
        **facts,
    )
    calls = tuple(str(raw.get("id")) for raw in content if raw.get("type") == "tool_use")
    results = tuple(
        str(raw.get("tool_use_id")) for raw in content if raw.get("type") == "tool_result"
    )
    return Told(key, event, parent, calls=calls, results=results)


def told_note(
    key: str, timestamp: datetime, kind: str, content: str, parent: str | None = BEFORE,
    *, visible: bool = False,
) -> Told:  # fmt: skip
    """Return a note: what is no message, or has no other place here."""
    note = events.NoteAppended(
        timestamp=timestamp, parent=None, kind=kind, content=content, visible=visible
    )
    return Told(key, note, parent)


class Recorded:
    """The events that a conversation has already: each is found once, in their order.

    Args:
        is_timed: Whether the history tells times. Else events are the same at any time.
    """

    def __init__(self, stream: Iterable[Event], *, is_timed: bool) -> None:
        self.last: Version = 0
        self.leaf: Version | None = None
        self._is_timed = is_timed
        self._versions: dict[bytes, deque[Version]] = defaultdict(deque)
        for event in stream:
            self.last = event.originator_version
            if isinstance(event, Entry):
                self.leaf = self.last
            elif isinstance(event, events.LeafMoved):
                self.leaf = event.target
            self._versions[self._said(event)].append(self.last)

    def take(self, event: Event) -> Version | None:
        """Return the version of the first event that says what *event* does, and is not taken."""
        if not self.last:
            return None
        found = self._versions.get(self._said(event))
        return found.popleft() if found else None

    def _said(self, event: Event) -> bytes:
        """Return a digest of what *event* says, wherever it stands."""
        place: dict[str, Any] = dict.fromkeys((*_ENTRIES, "seal"))
        place = {field: place[field] for field in event.__struct_fields__ if field in place}
        bare = msgspec.structs.replace(event, originator_id=UNSET_ID, originator_version=0, **place)
        if not self._is_timed:
            bare = msgspec.structs.replace(bare, timestamp=None)
        return blake2b(event.TOPIC.encode() + _encode(bare), digest_size=16).digest()


class Placement:
    """Places what a history tells in the conversation *conversation_id*, after what it has."""

    def __init__(self, conversation_id: UUID, recorded: Recorded) -> None:
        self.added = 0
        self.known = 0
        self._id = conversation_id
        self._recorded = recorded
        self._version = recorded.last
        self._own_leaf = recorded.leaf
        self._leaf: Version | None = None  # of what the history has told so far
        self._written_leaf = recorded.leaf  # of the log with what is added
        self._taken: set[Version] = set()
        self._versions: dict[str, Version | None] = {}
        self._unanswered: dict[Version, set[str]] = {}

    def add(self, event: Event) -> Event:
        """Return *event*, which no history tells, as the next one."""
        return self._next(event, {})

    def placed(self, told: Told) -> Iterator[Event]:
        """Yield the events to add for *told*: none if the conversation has it."""
        place = parent = self._place(told.parent)
        event = told.event
        if isinstance(event, Entry) and not told.results:
            yield from self._unknown_outcomes(parent, event.timestamp)
        if event is not None:
            version = self._recorded.take(event)
            if version is None:
                added = self._added(event, told.names, parent)
                yield from added
                version = self._version
            else:
                self.known += 1
                self._taken.add(version)
            if isinstance(event, Entry):
                place = version
                self._keep_unanswered(told, version, parent)
        self._versions[told.key] = place
        if not told.is_aside:
            self._leaf = place

    def ended(self, timestamp: datetime) -> Iterator[Event]:
        """Yield what is to be added at the end; a person who has gone on here stays there."""
        yield from self._unknown_outcomes(self._leaf, timestamp)
        if not self.added:
            return
        has_gone_on = self._own_leaf is not None and self._own_leaf not in self._taken
        target = self._own_leaf if has_gone_on else self._leaf
        if target != self._written_leaf:
            yield self._next(events.LeafMoved(timestamp=timestamp, target=target), {})

    def _place(self, key: str | None) -> Version | None:
        """Return the version of the entry *key*; of one that is lost, what came right before."""
        if key is None:
            return None
        return self._leaf if key == BEFORE else self._versions.get(key, self._leaf)

    def _added(self, event: Event, names: Mapping[str, str], parent: Version | None) -> list[Event]:
        """Return *event* as the next one; none, if it says something of an entry that is lost."""
        places = {field: self._place(key) for field, key in names.items()}
        if "target" in places and places["target"] is None:
            return []
        if places.get("left", 0) is None:
            places["left"] = 0
        if isinstance(event, Entry):
            places["parent"] = parent
        return [self._next(event, places)]

    def _next(self, event: Event, places: Mapping[str, Version | None]) -> Event:
        self._version += 1
        self.added += 1
        if isinstance(event, Entry):
            self._written_leaf = self._version
        return msgspec.structs.replace(
            event, originator_id=self._id, originator_version=self._version, **places
        )

    # -- calls without a result --------------------------------------------------------------------

    def _keep_unanswered(self, told: Told, version: Version, parent: Version | None) -> None:
        if told.calls:
            self._unanswered[version] = set(told.calls)
        elif told.results and parent in self._unanswered:
            left = self._unanswered.pop(parent) - set(told.results)
            if left:
                self._unanswered[version] = left

    def _unknown_outcomes(self, parent: Version | None, timestamp: datetime) -> Iterator[Event]:
        """Yield that the calls before *parent* without a result began: they may have run."""
        calls = self._unanswered.pop(parent, set()) if parent is not None else set()
        for call in sorted(calls):
            began = events.ToolStarted(timestamp=timestamp, tool_use_id=call)
            # It belongs to the answer that the log has reached when it is recorded.
            if self._recorded.take(began) is None and parent == self._written_leaf:
                yield self._next(began, {})
