"""Seals: what shows that something was recorded here, by the program of this very person.

A log is data, and may come from anywhere: copied in, synced, written by hand. Some of what it says
would make the program act: an "always", a queued prompt, a call that waits, a directory in which
tools run. That counts only with a seal that agrees. A seal is a code over what it vouches for, made
with a key that is in no log. The domain knows neither the key nor the code: `Seals` is handed in.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Protocol, TypeVar

import msgspec

from domain.events import ApprovalDecided, MessageAppended, PromptQueued, Started

if TYPE_CHECKING:
    from domain.snapshot import ConversationSnapshot

    Sealed = ApprovalDecided | MessageAppended | PromptQueued | Started | ConversationSnapshot

Event = TypeVar("Event", bound="Sealed")


class Seals(Protocol):
    """Makes seals, and tells whether one is its own."""

    def seal(self, vouched_for: bytes) -> str:
        """Return the seal of what is *vouched_for*."""

    def agrees(self, vouched_for: bytes, seal: str) -> bool:
        """Whether *seal* was made here, of exactly this."""


class OfThisRun:
    """The seals of a run without a key: only what this very program recorded counts.

    An event that is read from a log was not recorded here, however the log was opened. Nothing is
    written into the events; their digests are kept in memory.
    """

    def __init__(self) -> None:
        self._vouched_for: set[bytes] = set()

    def seal(self, vouched_for: bytes) -> str:
        """Remember it; return none."""
        self._vouched_for.add(sha256(vouched_for).digest())
        return ""

    def agrees(self, vouched_for: bytes, seal: str) -> bool:  # noqa: ARG002
        """Whether it was recorded here."""
        return sha256(vouched_for).digest() in self._vouched_for


NO_KEY = OfThisRun()


def sealed(event: Event, seals: Seals) -> Event:
    """Return *event* with its seal."""
    return msgspec.structs.replace(event, seal=seals.seal(_vouched_for(event)))


def is_sealed(event: Sealed, seals: Seals) -> bool:
    """Whether *event* was recorded here, as it is, at this place of this conversation."""
    return seals.agrees(_vouched_for(event), event.seal)


def is_own_directory(cwd: str, seal: str, seals: Seals) -> bool:
    """Whether a conversation was begun here in the directory *cwd*: the seal of its `Started`."""
    return seals.agrees(_directory(cwd), seal)


def _vouched_for(event: Sealed) -> bytes:
    """Return what the seal of *event* vouches for: where it stands, and all that it says.

    The seal of a directory vouches for the directory alone: a fork or a recovered conversation
    works where its source has worked.
    """
    if isinstance(event, Started):
        return _directory(event.cwd)
    bare = msgspec.structs.replace(event, seal="")
    return f"{event.TOPIC}\0".encode() + msgspec.json.encode(bare)


def _directory(cwd: str) -> bytes:
    return b"Started\0" + cwd.encode()
