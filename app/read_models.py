"""Read models brought up to what the logs say now; and how far that is."""

from __future__ import annotations

import sys
import time
from typing import TYPE_CHECKING, Self

from app.catalogue import refused, say_unreadable
from app.i18n import _
from app.terminal import is_told

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator
    from uuid import UUID

    from app.application import Conversations
    from domain.events import Event, Version
    from infrastructure.jsonl.store import Store
    from infrastructure.read_models.database import Result
    from infrastructure.read_models.follower import Follower

_PAGE = 500
_SILENT = 1.0
"""Seconds for which nothing is said of how far something is."""


def current(
    conversations: Conversations,
    store: Store,
    model: type[Follower],
    work: Callable[[sqlite3.Connection], Result],
) -> Result:
    """Return what *work* makes of the tables of a *model*, in which is what the logs say now.

    Raises:
        ReadModelError: they cannot be used.
    """

    def read(conversation_id: UUID, since: Version, limit: int) -> list[Event]:
        return list(conversations.events_of(conversation_id, since=since, limit=limit))

    with Progress(_("reading the conversations")) as progress:
        found, unreadable = model(store, read).use(work, progress.tell)
    say_unreadable(refused(conversation_id, error) for conversation_id, error in unreadable)
    return found


def pages(conversations: Conversations, conversation_id: UUID) -> Iterator[list[Event]]:
    """Yield the events of a conversation in pieces: not all of them are there at once."""
    since: Version | None = 1
    while since is not None:
        page = list(conversations.events_of(conversation_id, since=since, limit=_PAGE))
        yield page
        since = page[-1].originator_version + 1 if len(page) == _PAGE else None


class Progress:
    """Says on stderr, if it is a terminal, how far *what* is, from the second second on."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._is_shown = False

    def tell(self, done: int, total: int) -> None:
        """Say that *done* of *total* is done."""
        if is_told() and time.monotonic() - self._begun > _SILENT:
            self._is_shown = True
            share = done / total if total else 1
            sys.stderr.write(f"\r{self._what}: {share:4.0%} ")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_shown:
            sys.stderr.write("\r\033[K")
