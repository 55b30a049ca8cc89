"""Read models brought up to what the logs say now."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.catalogue import plain_store, refused, say_unreadable
from app.i18n import _
from app.progress import Progress
from app.view.plain import complain
from infrastructure.errors import ReadModelError
from infrastructure.jsonl import disk

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection
    from uuid import UUID

    from app.application import Conversations
    from domain.events import Event, Version
    from infrastructure.read_models.database import Result
    from infrastructure.read_models.follower import Follower


def indexed(
    conversations: Conversations,
    model: type[Follower],
    work: Callable[[sqlite3.Connection], Result],
    only: Collection[UUID] | None = None,
) -> Result | None:
    """Return what *work* makes of the tables of a *model*, in which is what the logs say now.

    *only* those logs are looked at, if they are given. None if each log has to be read instead; a
    person is told why.
    """
    store = plain_store(conversations)
    if store is None:
        complain(_("no index is kept beside encrypted or other logs: each one is read"))
        return None
    if not any(disk.files(store.path)):
        return None

    def read(conversation_id: UUID, since: Version, limit: int) -> list[Event]:
        return list(conversations.events_of(conversation_id, since=since, limit=limit))

    try:
        with Progress(_("reading the conversations")) as progress:
            found, unreadable = model(store, read).use(work, progress.tell, only)
    except ReadModelError as error:
        text = _("the index cannot be used, each log is read instead: {why}")
        complain(text.format(why=error))
        return None
    say_unreadable(refused(conversation_id, error) for conversation_id, error in unreadable)
    return found
