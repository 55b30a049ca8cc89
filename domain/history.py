"""The tree of a conversation, and how much of it is in memory.

After a snapshot the past is fetched in blocks, from its end, as far as it is read: to go on with a
conversation, to show its end and to project its context after a compaction, a block is enough. The
log stays the truth: a block that is not as the snapshot took it to be makes the snapshot worthless.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, TypeAlias

from domain.errors import UnknownEntryError
from domain.events import Entry, MessageAppended, TurnEnded, Version
from domain.tree import Gap, Tree
from domain.unread import Run, Unread, follow

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence

    from domain.unread import Told

    Load: TypeAlias = "Callable[[Version, Version], Sequence[Told]]"
    """Returns the recorded events from the first version, or from a few before, to the second.

    As far as there are any.
    """

_FIRST_BLOCK = 512


class History:
    """A tree that is read backwards, and fetched as far as it is read.

    Args:
        load: Fetches the events before *begins*.
        begins: The first version that is not fetched.
        leaf: The leaf before that version.
        messages: How many messages are on the path to it.
    """

    def __init__(
        self, load: Load, *, begins: Version = 1, leaf: Version | None = None, messages: int = 0
    ) -> None:
        self._tree = Tree(begins=begins, leaf=leaf)
        self._load = load
        self._expected = set() if leaf is None else {leaf}  # entries, as the snapshot has it
        self._block = _FIRST_BLOCK
        self._counted = leaf, messages

    # -- what came before ----------------------------------------------------------------------

    def _reach(self, version: Version) -> Tree:
        """Return the tree with everything from *version* on in it."""
        while self._tree.begins > max(version, 1):
            if not self._prepend_block(version):
                self._start_over()
        return self._tree

    def _start_over(self) -> None:
        """Replay all of the log: it is not what it was when the snapshot was taken."""
        raise NotImplementedError

    def _prepend_block(self, version: Version) -> bool:
        """Fetch events before what is here; whether they are what the snapshot took them to be."""
        begins = self._tree.begins
        first = max(min(version, begins - self._block), 1)
        self._block *= 2
        events = self._load(first, begins - 1)
        if events:
            first = min(first, events[0].originator_version)
        if not follow(events, first, begins - 1):
            return False
        older = Tree.of(events, first)
        taken_for_entries = self._tree.presumed | self._expected
        within = {each for each in taken_for_entries if each >= older.begins}
        if not older.is_orderly or older.gaps or not within <= older.known.keys():
            return False
        self._expected = self._expected - within | older.presumed  # the snapshot vouches for them
        self._tree.prepend(older)
        return True

    # -- the tree ------------------------------------------------------------------------------

    @property
    def leaf(self) -> Version | None:
        """The entry that the next one hangs from."""
        return self._tree.leaf

    @property
    def gaps(self) -> list[Gap]:
        """Where events are lost or cannot be read: `first`, `last`, `unreadable`, `leaf`."""
        return self._tree.gaps

    @property
    def is_orderly(self) -> bool:
        """Whether each parent, and each place of the leaf, is an entry: looked up if in doubt."""
        if self._tree.presumed:
            self._reach(min(self._tree.presumed))
        return self._tree.is_orderly

    @property
    def entries(self) -> Mapping[Version, Entry]:
        """All entries, in order."""
        return self._reach(1).entries

    @property
    def parents(self) -> Mapping[Version, Version | None]:
        """What each entry hangs from: another one, or nothing."""
        return self._reach(1).parents

    @property
    def turns(self) -> Sequence[TurnEnded]:
        """How every turn ended, in order."""
        return self._reach(1).turns

    def has_entry(self, version: Version) -> bool:
        """Whether *version* is an entry."""
        return version > 0 and version in self._reach(version).known

    def entry(self, version: Version) -> Entry:
        """Return the entry *version*.

        Raises:
            UnknownEntryError: it is none.
        """
        if not self.has_entry(version):
            raise UnknownEntryError(version)
        return self._tree.entries[version]

    def parent_of(self, version: Version) -> Version | None:
        """Return what the entry *version* hangs from.

        Raises:
            UnknownEntryError: *version* is not an entry.
        """
        if not self.has_entry(version):
            raise UnknownEntryError(version)
        parent = self._tree.parents[version]
        if parent is not None and parent < self._tree.begins:
            self._reach(parent)  # it may turn out to be no entry
        return self._tree.parents[version]

    # -- walks ---------------------------------------------------------------------------------

    def since(self, version: Version) -> Iterator[Entry]:
        """Yield the entries from *version* on, the newest first."""
        entries = self._reach(version).entries
        for number in reversed(entries):
            if number < version:
                return
            yield entries[number]

    def backwards(self, leaf: Version | None) -> Iterator[Entry]:
        """Yield the entries from *leaf* to the root, read as they are taken.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        return self.read_known(self.known_backwards(leaf))

    def read_known(self, backwards: Iterable[Entry | Run]) -> Iterator[Entry]:
        """Yield the entries of what `known_backwards` yields, read as they are taken."""
        for known in backwards:
            for version in reversed(_versions_of(known)):
                yield self._tree.entries[version]

    def known_backwards(self, leaf: Version | None) -> Iterator[Entry | Run]:
        """Yield what `backwards` does; messages that are unread come as runs.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        while leaf is not None:
            tree = self._tree if leaf >= self._tree.begins else self._reach(leaf)
            known = tree.known.get(leaf)
            if known is None:
                raise UnknownEntryError(leaf)
            if isinstance(known, Unread):
                run = known.branch_to(leaf, begins=tree.begins)
                leaf = run.originator_version
                yield run
            else:
                yield known
            parent = self._tree.parents[leaf]
            is_here = parent is None or parent >= self._tree.begins
            leaf = parent if is_here else self.parent_of(leaf)

    def path(self, leaf: Version | None) -> tuple[Entry, ...]:
        """Return the entries from the root to *leaf*.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        return tuple(self.backwards(leaf))[::-1]

    def _path_from(self, first: Version) -> list[Entry]:
        """Return the end of the path to the leaf that begins with the entry *first*.

        Raises:
            UnknownEntryError: *first* is not on the path.
        """
        end = list(takewhile(lambda e: e.originator_version >= first, self.backwards(self.leaf)))
        if not end or end[-1].originator_version != first:
            raise UnknownEntryError(first)
        return end[::-1]

    def messages(self) -> tuple[MessageAppended, ...]:
        """Return the messages on the path to the leaf."""
        return tuple(e for e in self.path(self.leaf) if isinstance(e, MessageAppended))

    def message_count(self) -> int:
        """Return how many messages are on the path to the leaf."""
        known, before = self._counted
        count = 0
        for entry in self.known_backwards(self.leaf):
            versions = _versions_of(entry)
            if known in versions:
                count += before + len(versions) - versions.index(known) - 1
                break
            count += len(versions) if isinstance(entry, MessageAppended | Run) else 0
        self._counted = self.leaf, count
        return count


def _versions_of(known: Entry | Run) -> list[Version]:
    return known.versions if isinstance(known, Run) else [known.originator_version]
