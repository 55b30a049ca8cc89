"""Messages of a log that nobody has looked at: where they hang, and what a request has of them.

To replay a long conversation, and to ask with it, takes no more. The rest stays bytes until
somebody looks: then a message becomes an entry like any other.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Protocol

import msgspec

from domain.events import Entry, MessageAppended, Version

if TYPE_CHECKING:
    from datetime import datetime
    from uuid import UUID


class Source(Protocol):
    """Where messages come from."""

    def message(self, version: Version) -> MessageAppended:
        """Return the message *version*."""


class Unread(msgspec.Struct, frozen=True, gc=False):
    """A message that can be made of its *source*; it stands in a stream of events for that one."""

    originator_version: Version
    parent: Version | None
    message: msgspec.Raw
    model: str | None
    stop_reason: str | None
    source: Source

    @property
    def originator_id(self) -> UUID:
        """Which conversation it belongs to."""
        return self.read().originator_id

    @property
    def timestamp(self) -> datetime:
        """When it was recorded."""
        return self.read().timestamp

    def read(self) -> MessageAppended:
        """Return the message."""
        return self.source.message(self.originator_version)


MESSAGES = (MessageAppended, Unread)
"""Messages, read or not: a tuple, for a union is made anew by each `isinstance`."""


class Entries(Mapping[Version, Entry]):
    """Entries by version, in order, of which those that are unread are read when they are taken."""

    def __init__(self, known: dict[Version, Entry | Unread]) -> None:
        self._known = known

    def __getitem__(self, version: Version) -> Entry:
        entry = self._known[version]
        if isinstance(entry, Unread):
            entry = self._known[version] = entry.read()
        return entry

    def __contains__(self, version: object) -> bool:
        return version in self._known

    def __iter__(self) -> Iterator[Version]:
        return iter(self._known)

    def __reversed__(self) -> Iterator[Version]:
        return reversed(self._known)

    def __len__(self) -> int:
        return len(self._known)
