"""What is in memory of a conversation's past: all of it, or what came since a snapshot.

What came before is fetched on demand, block by block from the end: to go on with a conversation,
to show its end and to project its context after a compaction, nothing else is needed. The log
stays the truth: a block that is not as the snapshot took it to be makes the snapshot worthless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, TypeAlias

from domain.events import Entry, LeafMoved, ToolStarted, TurnEnded, Unrecognised

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from domain.events import Event, Version

    Load: TypeAlias = "Callable[[Version, Version], Sequence[Event]]"
    """Returns the recorded events from the first version to the second, as far as there are any."""

_FIRST_BLOCK = 512


class History:
    """Entries and their parents, the calls that began, the turns that ended.

    Attributes:
        since: Everything from this version on is here; 1 for all of it.
    """

    def __init__(self, *, since: Version = 1, leaf: Version | None = None, load: Load) -> None:
        self.entries: dict[Version, Entry] = {}
        self.parents: dict[Version, Version | None] = {}
        self.started_tools: dict[str, list[Version | None]] = {}
        self.turns: list[TurnEnded] = []
        self.since = since
        self.load = load
        self._block = _FIRST_BLOCK
        self._awaited = {leaf} if leaf is not None else set()  # entries, if all is well

    def reach(self, version: Version) -> bool:
        """Have everything from *version* on here; False if the log is not what it was."""
        while self.since > max(version, 1):
            first = max(min(version, self.since - self._block), 1)
            self._block *= 2
            events = self.load(first, self.since - 1)
            if [event.originator_version for event in events] != list(range(first, self.since)):
                return False
            if not self._prepend(events, first):
                return False
        return True

    def await_entry(self, version: Version | None) -> None:
        """Take it that *version*, which is not here yet, is an entry, and check it when it is."""
        if version is not None and version < self.since:
            self._awaited.add(version)

    def _prepend(self, events: Sequence[Event], first: Version) -> bool:
        """Put *events* before what is here; whether they are what a snapshot may leave out."""
        older = History(since=first, load=self.load)
        leaf: Version | None = None
        knows_leaf = first == 1
        for event in events:
            match event:
                case Entry(originator_version=version, parent=parent):
                    older.entries[version], older.parents[version] = event, parent
                    if parent not in older.parents:
                        older.await_entry(parent)
                        if parent is not None and parent >= first:
                            return False
                    leaf, knows_leaf = version, True
                case LeafMoved(target=target):
                    leaf, knows_leaf = target, True
                case ToolStarted(tool_use_id=tool_use_id) if knows_leaf:
                    older.started_tools.setdefault(tool_use_id, []).append(leaf)
                case TurnEnded() if knows_leaf:
                    older.turns.append(event)
                case Unrecognised():
                    return False
            if not knows_leaf:  # where it stands is not known: the next block brings it
                older.since = event.originator_version + 1
        return self._adopt(older)

    def _adopt(self, older: History) -> bool:
        within = {version for version in self._awaited if version >= older.since}
        if not within <= older.entries.keys():
            return False
        self._awaited = self._awaited - within | older._awaited
        self.entries = older.entries | self.entries
        self.parents = older.parents | self.parents
        for tool_use_id, leaves in self.started_tools.items():
            older.started_tools.setdefault(tool_use_id, []).extend(leaves)
        self.started_tools = older.started_tools
        self.turns = older.turns + self.turns
        self.since = older.since
        return True
