"""Finding what was said, called or printed: by the index, or where there is none by reading."""

from __future__ import annotations

from functools import partial
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from app.catalogue import refused, say_unreadable
from app.errors import UsageError
from app.i18n import _
from app.progress import Progress
from app.read_models import indexed
from domain.projections.texts import folded, texts
from domain.text import valid
from infrastructure.errors import StoreError
from infrastructure.read_models.texts import Hit, Texts, hits
from infrastructure.read_models.texts import conversations_with as having
from infrastructure.read_models.wanted import Wanted

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Collection, Iterator, Sequence
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


def wanted_of(texts: Sequence[str], *more: Any, **times: Any) -> Wanted:
    """Return what people look for; *more* and *times* as `Wanted` takes them.

    Raises:
        UsageError: there is nothing in one of the *texts* to look for.
    """
    return Wanted(parts([valid(text) for text in texts]), *more, **times)


def search(
    conversations: Conversations,
    wanted: Wanted,
    *,
    within: Collection[UUID] | None = None,
    limit: int,
) -> list[Hit]:
    """Return at most *limit* texts *within* conversations, or of all, the newest first.

    What is not in the index yet is read first. Without an index, everything is.
    """

    def find(connection: sqlite3.Connection) -> list[Hit]:
        found = hits(connection, wanted, lambda id_: within is None or id_ in within)
        return list(islice(found, limit))

    found = indexed(conversations, Texts, find, within)
    if found is None:
        return list(islice(_scanned(conversations, wanted, within), limit))
    return found


def conversations_with(
    conversations: Conversations, wanted: Wanted, within: Collection[UUID]
) -> Collection[UUID]:
    """Return the conversations, *within* these at least, in which a text is that is *wanted*."""
    find = partial(having, wanted=wanted)
    found = indexed(conversations, Texts, find, within)
    if found is None:
        return {hit.conversation for hit in _scanned(conversations, wanted, within)}
    return found


def _scanned(
    conversations: Conversations, wanted: Wanted, within: Collection[UUID] | None
) -> Iterator[Hit]:
    ids = [id_ for id_ in conversations.ids() if within is None or id_ in within]
    with Progress(_("reading the conversations")) as progress:
        for number, conversation_id in enumerate(ids):
            progress.tell(number, len(ids))
            try:
                yield from reversed(list(_hits_in(conversations, conversation_id, wanted)))
            except StoreError as error:
                say_unreadable([refused(conversation_id, error)])


def _hits_in(conversations: Conversations, conversation_id: UUID, wanted: Wanted) -> Iterator[Hit]:
    tools: dict[str | None, str | None] = {None: None}
    for event in chain.from_iterable(conversations.pages_of(conversation_id)):
        for text in texts(event):
            if text.tool is not None:
                tools[text.call] = text.tool
            tool = tools.get(text.call)
            is_meant = wanted.kind in (None, text.kind) and wanted.tool in (None, tool)
            if is_meant and text.failed >= wanted.failed and wanted.is_when(text.time):
                said = folded(text.text)
                if all(part in said for part in wanted.parts):
                    when = text.time.isoformat()
                    yield Hit(
                        conversation_id, text.version, when, text.kind, tool, text.failed, text.text
                    )
