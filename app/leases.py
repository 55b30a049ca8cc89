"""Leases: one program at a time goes on with a conversation, where conversations have them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from infrastructure.jsonl import locks

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations


class Lease(Protocol):
    """The right to go on with a conversation, held by one program at a time."""

    def release(self) -> None:
        """Give it back; a second time does nothing."""


@runtime_checkable
class Leasing(Protocol):
    """A recorder that gives leases."""

    def lease(self, conversation_id: UUID) -> Lease:
        """Take the lease of a conversation without waiting."""

    def end_leases(self) -> None:
        """Give back all that were taken."""


def lease(conversations: Conversations, conversation_id: UUID) -> Lease | None:
    """Take the lease of a conversation; None where the persistence module has none.

    Raises:
        LeaseHeldError: another program has it.
    """
    if conversations.store is not None:
        return locks.Lease.acquire(conversations.store.path, conversation_id)
    if isinstance(conversations.recorder, Leasing):
        return conversations.recorder.lease(conversation_id)
    return None
