"""Read models brought up to what the logs say now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.catalogue import refused, say_unreadable
from app.i18n import _
from app.progress import Progress

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection
    from uuid import UUID

    from app.application import Conversations
    from domain.events import Event, Version
    from infrastructure.jsonl.store import Store
    from infrastructure.read_models.database import Result
    from infrastructure.read_models.follower import Follower


def current(
    conversations: Conversations,
    store: Store,
    model: type[Follower],
    work: Callable[[sqlite3.Connection], Result],
    only: Collection[UUID] | None = None,
) -> Result:
    """Return what *work* makes of the tables of a *model*, in which is what the logs say now.

    *only* those logs are looked at, if they are given.

    Raises:
        ReadModelError: they cannot be used.
    """

    def read(conversation_id: UUID, since: Version, limit: int) -> list[Event]:
        return list(conversations.events_of(conversation_id, since=since, limit=limit))

    with Progress(_("reading the conversations")) as progress:
        found, unreadable = model(store, read).use(work, progress.tell, only)
    say_unreadable(refused(conversation_id, error) for conversation_id, error in unreadable)
    return found
