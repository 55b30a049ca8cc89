"""Finding what was said, called or printed: by the index, or where there is none by reading."""

from __future__ import annotations

from itertools import chain, islice
from typing import TYPE_CHECKING

from app.catalogue import plain_store, refused, rows, say_unreadable
from app.errors import UsageError
from app.i18n import _
from app.read_models import Progress, current, pages
from app.view.plain import complain
from domain.projections.texts import folded, texts
from infrastructure.errors import ReadModelError, StoreError
from infrastructure.jsonl import disk
from infrastructure.read_models.texts import Hit, Texts, Wanted, hits

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from app.application import Conversations


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
            return current(conversations, store, Texts, find)
        except ReadModelError as error:
            text = _("the index cannot be used, each log is read instead: {why}")
            complain(text.format(why=error))
    ids = [id_ for id_ in conversations.ids() if here is None or id_ in here]
    return _scanned(conversations, wanted, ids, limit)


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
    for event in chain.from_iterable(pages(conversations, conversation_id)):
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
