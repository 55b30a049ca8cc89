"""The tree that the events of a conversation make, and how much of it is in memory.

`History.record` is the one fold of entries, leaf, gaps and started tools: of a whole log, of what
came since a snapshot, and of a block of what came before. Such a block is fetched on demand, from
the end: to go on with a conversation, to show its end and to project its context after a
compaction, nothing else is needed. The log stays the truth: a block that is not as the snapshot
took it to be makes the snapshot worthless.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from domain.events import Entry, LeafMoved, ToolStarted, TurnEnded, Unrecognised, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from domain.events import Event

    Load: TypeAlias = "Callable[[Version, Version], Sequence[Event]]"
    """Returns the recorded events from the first version to the second, as far as there are any."""

_FIRST_BLOCK = 512


class Gap(NamedTuple):
    """Versions *first*…*last* are missing, or unreadable; *leaf* was the leaf just before them."""

    first: Version
    last: Version
    leaf: Version | None
    unreadable: bool = False


class History:
    """Entries and their parents, the leaf, what is lost, the calls that began, the ended turns.

    Attributes:
        since: Everything from this version on is here; 1 for all of it.
        leaf: The entry that the next one hangs from.
        is_orderly: Whether each parent and each place of the leaf is an entry.
        doubts: Entries, as the events since the snapshot have it, that are not here yet.
    """

    def __init__(
        self,
        *,
        load: Load,
        since: Version = 1,
        leaf: Version | None = None,
        is_leaf_known: bool = True,
    ) -> None:
        self.entries: dict[Version, Entry] = {}
        self.parents: dict[Version, Version | None] = {}
        self.started_tools: dict[str, list[Version | None]] = {}
        self.turns: list[TurnEnded] = []
        self.gaps: list[Gap] = []
        self.is_orderly = True
        self.leaf = leaf
        self.since = since
        self.load = load
        self.doubts: set[Version] = set()
        self._expected = set() if leaf is None else {leaf}  # entries, as the snapshot has it
        self._is_leaf_known = is_leaf_known
        self._block = _FIRST_BLOCK

    # -- the fold ------------------------------------------------------------------------------

    def record(self, event: Event) -> None:
        """Change the tree by what *event* says happened; most events do not."""
        match event:
            case Entry(originator_version=version, parent=parent):
                self.entries[version] = event
                self.parents[version] = (
                    parent if parent == self.leaf else self._resolve(parent, before=version)
                )
                self.leaf, self._is_leaf_known = version, True
            case LeafMoved(originator_version=version, target=target):
                self.leaf, self._is_leaf_known = self._resolve(target, before=version), True
            case ToolStarted(tool_use_id=tool_use_id) if self._is_leaf_known:
                self.started_tools.setdefault(tool_use_id, []).append(self.leaf)
            case TurnEnded() if self._is_leaf_known:
                self.turns.append(event)
            case Unrecognised(originator_version=version):
                self.lose(version, version, unreadable=True)

    def lose(self, first: Version, last: Version, *, unreadable: bool = False) -> None:
        """Take it that the events *first*…*last* are lost."""
        self.gaps.append(Gap(first, last, self.leaf, unreadable))

    def _resolve(self, target: Version | None, *, before: Version) -> Version | None:
        """Return the entry that *target* names, or the one that stands in for a lost one.

        An entry that is missing lay in a gap (or was never an entry): what hung from it hangs
        from the leaf before that gap, the nearest earlier entry of that branch that is left.
        """
        if target is None or (target < before and target in self.entries):
            return target
        if 0 < target < self.since:
            self.doubts.add(target)
            return target
        self.is_orderly = False
        for gap in self.gaps:
            if gap.first <= target <= gap.last:
                return gap.leaf
        return self.leaf

    # -- what came before ----------------------------------------------------------------------

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

    def _prepend(self, events: Sequence[Event], first: Version) -> bool:
        """Put *events* before what is here; whether they are what a snapshot may leave out."""
        older = History(load=self.load, since=first, is_leaf_known=first == 1)
        for event in events:
            older.record(event)
            if not older._is_leaf_known:  # what it hangs from is not known: the next block knows
                older.since = event.originator_version + 1
        return older.is_orderly and not older.gaps and self._adopt(older)

    def _adopt(self, older: History) -> bool:
        """Put *older* before what is here; whether what was taken for an entry of it is one."""
        within = {each for each in self.doubts | self._expected if each >= older.since}
        if not within <= older.entries.keys():
            return False
        self.doubts -= within
        self._expected = self._expected - within | older.doubts
        self.entries = older.entries | self.entries
        self.parents = older.parents | self.parents
        for tool_use_id, leaves in self.started_tools.items():
            older.started_tools.setdefault(tool_use_id, []).extend(leaves)
        self.started_tools = older.started_tools
        self.turns = older.turns + self.turns
        self.since = older.since
        return True
