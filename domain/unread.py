"""Messages of a log that nobody has looked at, in columns: no object for each of them.

To replay a long conversation, and to ask with it, takes no more than where messages hang and what
a request has of them. When somebody looks, a message becomes an entry like any other.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Protocol, TypeAlias

import msgspec

from domain.events import Entry, MessageAppended, Version
from domain.plain import ANSWER, INSIDE, Shapes, shapes

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from datetime import datetime
    from uuid import UUID

    from domain.events import Event


class Source(Protocol):
    """Where messages come from."""

    def message(self, version: Version) -> MessageAppended:
        """Return the message *version*."""


class Unread(ABC):
    """Messages of one piece of a log, in order, a column for each thing that is asked of them.

    Attributes:
        versions: Their versions.
        parents: What each hangs from, as recorded.
        models: The model of each that is an answer; none is needed of one without thinking.
    """

    def __init__(
        self,
        source: Source,
        versions: list[Version],
        parents: list[Version | None],
        models: Sequence[str | None],
    ) -> None:
        self.versions, self.models = versions, models
        before = [None, *versions[:-1]]
        # What is a parent is a version, too: one object for both.
        self.parents = before if parents == before else parents
        self._source = source

    @property
    @abstractmethod
    def shapes(self) -> Shapes:
        """How each is passed on to a model."""

    @abstractmethod
    def parts(self, first: int, after: int) -> list[memoryview]:
        """Return what requests have of the messages at these places, as far as they are plain.

        Of an answer that is all of it, of a message of the user what is in it.
        """

    def read(self, version: Version) -> MessageAppended:
        """Return the message *version* of these."""
        return self._source.message(version)

    def branch_to(self, version: Version, *, begins: Version) -> Run:
        """Return the message *version*, and those from *begins* on that it hangs from in a row."""
        last = bisect_left(self.versions, version)
        bend = self._bends[bisect_right(self._bends, last) - 1]
        return Run(self, max(bend, bisect_left(self.versions, begins)), last + 1)

    def straight(self, first: int, after: int) -> Iterator[Run]:
        """Yield the messages at the places *first*…*after*, each hanging from the one before."""
        for bend in self._bends[bisect_right(self._bends, first) :]:
            if bend >= after:
                break
            yield Run(self, first, bend)
            first = bend
        yield Run(self, first, after)

    @cached_property
    def _bends(self) -> Sequence[int]:
        """The places of those that do not hang from the one before; the first is among them."""
        if self.parents[1:] == self.versions[:-1]:
            return (0,)
        pairs = zip(self.parents[1:], self.versions[:-1], strict=True)
        return [0, *(place for place, (up, before) in enumerate(pairs, 1) if up != before)]


class Bodies(Unread):
    """Messages of which the bodies are at hand, as JSON, and why each that is an answer ended."""

    def __init__(
        self,
        source: Source,
        versions: list[Version],
        parents: list[Version | None],
        models: Sequence[str | None],
        *,
        bodies: Sequence[bytes],
        stop_reasons: Sequence[str | None],
    ) -> None:
        super().__init__(source, versions, parents, models)
        self._bodies, self._stop_reasons = bodies, stop_reasons

    @cached_property
    def shapes(self) -> Shapes:  # noqa: D102
        return shapes(self._bodies, self._stop_reasons)

    def parts(self, first: int, after: int) -> list[memoryview]:  # noqa: D102
        pairs = zip(self._bodies[first:after], self.shapes.kinds[first:after], strict=True)
        return [
            memoryview(body) if kind >= ANSWER else memoryview(body)[INSIDE] for body, kind in pairs
        ]


class Run(msgspec.Struct, frozen=True, gc=False):
    """The messages at the places *first*…*after* of *unread*.

    In a stream of events it stands for those messages, which follow one another there; on a path,
    each hangs from the one before.
    """

    unread: Unread
    first: int
    after: int

    @classmethod
    def of(cls, message: MessageAppended) -> Run:
        """Return *message* alone."""
        unread = Bodies(
            _Read(message),
            [message.originator_version],
            [message.parent],
            [message.model],
            bodies=[message.message],
            stop_reasons=[message.stop_reason],
        )
        return cls(unread, 0, 1)

    @property
    def length(self) -> int:
        """How many there are."""
        return self.after - self.first

    @property
    def versions(self) -> list[Version]:
        """Their versions."""
        return self.unread.versions[self.first : self.after]

    @property
    def originator_version(self) -> Version:
        """The version of the first."""
        return self.unread.versions[self.first]

    @property
    def last_version(self) -> Version:
        """The version of the last."""
        return self.unread.versions[self.after - 1]

    @property
    def originator_id(self) -> UUID:
        """Which conversation they belong to."""
        return self.unread.read(self.originator_version).originator_id

    @property
    def timestamp(self) -> datetime:
        """When the first was recorded."""
        return self.unread.read(self.originator_version).timestamp

    @property
    def modified_on(self) -> datetime:
        """When the last was recorded."""
        return self.unread.read(self.last_version).timestamp

    def within(self, first: Version, last: Version) -> Run | None:
        """Return those with versions from *first* to *last*; None if there are none."""
        start = max(bisect_left(self.unread.versions, first), self.first)
        after = min(bisect_right(self.unread.versions, last), self.after)
        return Run(self.unread, start, after) if start < after else None


class _Read(msgspec.Struct, frozen=True, gc=False):
    """A message that has been read."""

    entry: MessageAppended

    def message(self, _version: Version) -> MessageAppended:
        """Return it."""
        return self.entry


Told: TypeAlias = "Event | Run"
"""What a stream of events consists of, if messages in it may be unread."""


def last_version(told: Told) -> Version:
    """Return the version of an event, or the last one of a run."""
    return told.last_version if isinstance(told, Run) else told.originator_version


def follow(told: Sequence[Told], first: Version, last: Version) -> bool:
    """Whether *told* are all events from *first* to *last*, in order."""
    for each in told:
        if each.originator_version != first:
            return False
        first = last_version(each) + 1
    return first == last + 1


def selected(told: Iterable[Told], first: Version, last: Version) -> Iterator[Told]:
    """Yield of *told* what has versions from *first* to *last*."""
    for each in told:
        if isinstance(each, Run):
            if within := each.within(first, last):
                yield within
        elif first <= each.originator_version <= last:
            yield each


class Entries(Mapping[Version, Entry]):
    """Entries by version, in order, of which those that are unread are read when they are taken."""

    def __init__(self, known: dict[Version, Entry | Unread]) -> None:
        self._known = known

    def __getitem__(self, version: Version) -> Entry:
        entry = self._known[version]
        if isinstance(entry, Unread):
            entry = self._known[version] = entry.read(version)
        return entry

    def __contains__(self, version: object) -> bool:
        return version in self._known

    def __iter__(self) -> Iterator[Version]:
        return iter(self._known)

    def __reversed__(self) -> Iterator[Version]:
        return reversed(self._known)

    def __len__(self) -> int:
        return len(self._known)
