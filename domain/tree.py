"""The tree of entries: what each hangs from, the leaf, and what is lost of it.

Parents are always smaller than their children, so no walk can turn in a circle.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.events import Entry, LeafMoved, ToolStarted, TurnEnded, Unrecognised, Version
from domain.unread import Entries, Run, Unread, last_version

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from domain.unread import Told

    Parents = Mapping[Version, Version | None]


class Gap(NamedTuple):
    """Versions *first*…*last* are missing, or unreadable; *leaf* was the leaf just before them."""

    first: Version
    last: Version
    leaf: Version | None
    unreadable: bool = False


class Tree:
    """Entries and their parents, the leaf, what is lost, the calls that began, the ended turns.

    `record` is the one fold of all this: of a whole log, of the events since a snapshot, and of a
    block of those before it.

    Attributes:
        entries: The entries, by version, in order.
        known: The same, of which some may be unread.
        begins: Everything from this version on is in it; 1 for all of a log.
        is_orderly: Whether each parent and each place of the leaf is an entry.
        presumed: Versions before *begins* that events of the tree take for entries.
        is_leaf_known: Whether the leaf is known, and with it what events belong to.
    """

    def __init__(
        self, *, begins: Version = 1, leaf: Version | None = None, is_leaf_known: bool = True
    ) -> None:
        self.begins = begins
        self.leaf = leaf
        self.known: dict[Version, Entry | Unread] = {}
        self.entries = Entries(self.known)
        self.parents: dict[Version, Version | None] = {}
        self.started_tools: dict[str, list[Version | None]] = {}
        self.turns: list[TurnEnded] = []
        self.gaps: list[Gap] = []
        self.is_orderly = True
        self.presumed: set[Version] = set()
        self.is_leaf_known = is_leaf_known

    @classmethod
    def of(cls, events: Sequence[Told], begins: Version) -> Tree:
        """Return the tree of *events*, which are all from the version *begins* on."""
        tree = cls(begins=begins, is_leaf_known=begins == 1)
        for event in events:
            tree.record(event)
            if not tree.is_leaf_known:  # its parent is not known: the next block tells
                tree.begins = last_version(event) + 1
        return tree

    def record(self, event: Told) -> None:
        """Change the tree by what *event* says happened; most events do not."""
        match event:
            case Entry():
                self._hang(event.originator_version, event.parent, event)
            case Run(unread=unread, first=first, after=after):
                for run in unread.straight(first, after):
                    self._hang_run(run)
            case LeafMoved(originator_version=version, target=target):
                self.leaf, self.is_leaf_known = self._resolve(target, before=version), True
            case ToolStarted(tool_use_id=tool_use_id) if self.is_leaf_known:
                self.started_tools.setdefault(tool_use_id, []).append(self.leaf)
            case TurnEnded() if self.is_leaf_known:
                self.turns.append(event)
            case Unrecognised(originator_version=version):
                self.lose(version, version, unreadable=True)

    def _hang(self, version: Version, parent: Version | None, entry: Entry | Unread) -> None:
        """Hang *entry*, or what has it, where it belongs; it is the leaf now."""
        self.known[version] = entry
        self.parents[version] = (
            parent if parent == self.leaf else self._resolve(parent, before=version)
        )
        self.leaf, self.is_leaf_known = version, True

    def _hang_run(self, run: Run) -> None:
        """Hang the messages of *run*, each of which hangs from the one before, but the first."""
        unread = run.unread
        self._hang(run.originator_version, unread.parents[run.first], unread)
        if run.length > 1:
            others = slice(run.first + 1, run.after)
            self.known.update(dict.fromkeys(unread.versions[others], unread))
            self.parents.update(zip(unread.versions[others], unread.parents[others], strict=True))
            self.leaf = run.last_version

    def lose(self, first: Version, last: Version, *, unreadable: bool = False) -> None:
        """Record that the events *first*…*last* are lost."""
        self.gaps.append(Gap(first, last, self.leaf, unreadable))

    def _resolve(self, target: Version | None, *, before: Version) -> Version | None:
        """Return the entry that *target* names, or the one that stands in for a lost one.

        An entry that is missing lay in a gap (or was never an entry): what hung from it hangs
        from the leaf before that gap, the nearest earlier entry of that branch that is left.
        """
        if target is None or (target < before and target in self.known):
            return target
        if 0 < target < self.begins:
            self.presumed.add(target)
            return target
        self.is_orderly = False
        for gap in self.gaps:
            if gap.first <= target <= gap.last:
                return gap.leaf
        return self.leaf

    def prepend(self, older: Tree) -> None:
        """Put *older*, which ends where this tree begins, before it."""
        self.presumed = {each for each in self.presumed if each < older.begins}
        older.known.update(self.known)
        older.parents.update(self.parents)
        self.known, self.entries, self.parents = older.known, older.entries, older.parents
        for tool_use_id, leaves in self.started_tools.items():
            older.started_tools.setdefault(tool_use_id, []).extend(leaves)
        self.started_tools = older.started_tools
        self.turns = older.turns + self.turns
        self.begins = older.begins


def children(parents: Parents) -> dict[Version | None, list[Version]]:
    """Return the children of every entry (and, under None, the roots), oldest first."""
    result: dict[Version | None, list[Version]] = {}
    for version, parent in parents.items():
        result.setdefault(parent, []).append(version)
    return result


def common_ancestor(parents: Parents, one: Version | None, other: Version | None) -> Version | None:
    """Return the newest entry that is on the paths to both; None if they share none."""
    while one != other:
        if one is None or other is None:
            return None
        if one > other:
            one = parents[one]
        else:
            other = parents[other]
    return one
