"""The events of a damaged conversation, numbered again without gaps in a new one. Pure.

Whatever names a version is translated, and what hung from a lost entry hangs from a note that says
so. The old conversation is replayed beside the new one: it tells where each event belongs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

import msgspec

from domain import events
from domain.calls import OUTCOME_UNKNOWN
from domain.conversation import Conversation
from domain.events import Entry, Event, MessageAppended, Version
from domain.seals import Seals, sealed

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

Placed = TypeVar("Placed", bound="Event")

NOTE = "recovered"
LOST_HERE = "(A part of this conversation was lost here.)"
IN_PART = "(This is what could be read of a damaged part of this conversation.)"


class Words(NamedTuple):
    """What could be read of an event that is lost: who said it, if that is known, and the words."""

    who: str
    text: str
    visible: bool


class Item(NamedTuple):
    """Something to take over, and the place for it: a version, and an order among equals."""

    version: Version
    order: int
    what: Event | Words


class Renumbering:
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

    def made_of(self, items: Sequence[Item], *, cwd: str) -> list[Event]:
        """Return the events of the new conversation."""
        unknown = self._calls_of_unknown_outcome(items)
        if not any(isinstance(item.what, events.Started) for item in items):
            first = next((i.what.timestamp for i in items if not isinstance(i.what, Words)), None)
            self._add(events.Started(timestamp=first or self._new.clock(), cwd=cwd))
        for item in items:
            if isinstance(item.what, Words):
                self._take_text(item.version, item.what)
            else:
                self._take(item.what, unknown.get(item.version, ()))
        self._close()
        return self._made

    def _calls_of_unknown_outcome(self, items: Sequence[Item]) -> dict[Version, list[str]]:
        """Return the calls that may have been started, though the log does not say so any more."""
        old = Conversation.blank(self._old.id, self._old.created_on)
        for item in items:
            if not isinstance(item.what, Words):
                old.fold(item.what)
        if self._hurt_end:  # a later event makes the lost end a gap
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

    def _take_text(self, version: Version, text: Words) -> None:
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
        """Record the source; prompts that were queued stay queued."""
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
    unknown: dict[Version, list[str]] = {}
    for version, entry in conversation.entries.items():
        if isinstance(entry, MessageAppended):
            for call in dict.fromkeys(call["id"] for call in entry.content.tool_uses):
                if conversation.outcome_of(call, asked_at=version) == OUTCOME_UNKNOWN:
                    unknown.setdefault(version, []).append(call)
    return unknown
