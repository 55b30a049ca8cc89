"""Finding what was said, called or printed: by the index, or where there is none by reading."""

from __future__ import annotations

import sys
import time
from itertools import islice
from typing import TYPE_CHECKING, Self

from app.catalogue import plain_store, refused, rows, say_unreadable
from app.errors import UsageError
from app.i18n import _
from app.terminal import is_told
from app.view.plain import complain
from domain.projections.texts import folded, texts
from infrastructure.errors import ReadModelError, StoreError
from infrastructure.jsonl import disk
from infrastructure.read_models.texts import Hit, Texts, Wanted, hits

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence
    from uuid import UUID

    from app.application import Conversations
    from domain.events import Event, Version
    from infrastructure.jsonl.store import Store
    from infrastructure.read_models.database import Result

_PAGE = 500
_SILENT = 1.0
"""Seconds for which nothing is said of how far something is."""


def parts(wanted: Sequence[str]) -> tuple[str, ...]:
    """Return what people look for as it is compared.

    Raises:
        UsageError: there is nothing in one of them to look for.
    """
    found = tuple(folded(part) for part in wanted)
    if not all(found):
        raise UsageError(_("there is nothing to look for in an empty text"))
    return found


def search(
    conversations: Conversations, wanted: Wanted, *, cwd: str | None, limit: int
) -> list[Hit]:
    """Return at most *limit* texts of the conversations of *cwd*, or of all, the newest first.

    What is not in the index yet is read first. Without an index, everything is.
    """
    here = None if cwd is None else {row.id for row in rows(conversations, cwd=cwd)}

    def find(connection: sqlite3.Connection) -> list[Hit]:
        found = hits(connection, wanted, lambda id_: here is None or id_ in here)
        return list(islice(found, limit))

    store = plain_store(conversations)
    if store is None:
        complain(_("no index is kept beside encrypted or other logs: each one is read"))
    elif any(disk.files(store.path)):
        try:
            return indexed(conversations, store, find)
        except ReadModelError as error:
            text = _("the index cannot be used, each log is read instead: {why}")
            complain(text.format(why=error))
    ids = [id_ for id_ in conversations.ids() if here is None or id_ in here]
    return _scanned(conversations, wanted, ids, limit)


def indexed(
    conversations: Conversations, store: Store, work: Callable[[sqlite3.Connection], Result]
) -> Result:
    """Return what *work* makes of the index, in which is what the logs say now.

    Raises:
        ReadModelError: it cannot be used.
    """

    def read(conversation_id: UUID, since: Version, limit: int) -> list[Event]:
        return list(conversations.events_of(conversation_id, since=since, limit=limit))

    with Progress(_("reading the conversations")) as progress:
        found, unreadable = Texts(store, read).use(work, progress.tell)
    say_unreadable(refused(conversation_id, error) for conversation_id, error in unreadable)
    return found


def _scanned(
    conversations: Conversations, wanted: Wanted, ids: Sequence[UUID], limit: int
) -> list[Hit]:
    found: list[Hit] = []
    with Progress(_("reading the conversations")) as progress:
        for number, conversation_id in enumerate(ids):
            progress.tell(number, len(ids))
            try:
                here = list(_hits_in(conversations, conversation_id, wanted))
            except StoreError as error:
                say_unreadable([refused(conversation_id, error)])
                continue
            found += reversed(here)
            if len(found) >= limit:
                break
    return found[:limit]


def _hits_in(conversations: Conversations, conversation_id: UUID, wanted: Wanted) -> Iterator[Hit]:
    tools: dict[str | None, str | None] = {None: None}
    for event in _events(conversations, conversation_id):
        for text in texts(event):
            if text.tool is not None:
                tools[text.call] = text.tool
            tool = tools.get(text.call)
            is_meant = wanted.kind in (None, text.kind) and wanted.tool in (None, tool)
            if is_meant and text.failed >= wanted.failed:
                said = folded(text.text)
                if all(part in said for part in wanted.parts):
                    when = text.time.isoformat()
                    yield Hit(
                        conversation_id, text.version, when, text.kind, tool, text.failed, text.text
                    )


def _events(conversations: Conversations, conversation_id: UUID) -> Iterator[Event]:
    since: Version | None = 1
    while since is not None:
        page = list(conversations.events_of(conversation_id, since=since, limit=_PAGE))
        yield from page
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
