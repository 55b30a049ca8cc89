"""What is in the trash, as people see it: what it was, which of it is meant, what a purge takes."""

from __future__ import annotations

import re
import shutil
from itertools import chain
from typing import TYPE_CHECKING, NamedTuple

from app.catalogue import plain_store
from app.errors import AmbiguousIdError, AppError, UsageError
from app.i18n import _
from app.outputs import InTrash, Purged, Restored, TrashKind
from app.places import OUTPUTS, side_files
from app.references import SHORTEST
from domain.projections.catalogue import CATALOGUED, row
from infrastructure.errors import StoreError
from infrastructure.jsonl import disk, trash
from infrastructure.jsonl.log_reader import LogReader
from infrastructure.jsonl.store import Store

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path
    from uuid import UUID

    from app.application import Conversations

_HEAD = 16
_CHUNK = 1 << 20
_NAMED = re.compile(OUTPUTS.encode() + rb"/([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})")
"""How a log names the folder of the side files of a conversation."""
_OVERLAP = 64
"""Bytes of a chunk that are read again with the next one: more than such a name has."""


class Item(NamedTuple):
    """A thing in the trash, and what is said of it."""

    thing: trash.Trashed
    shown: InTrash


def store_of(conversations: Conversations) -> Store:
    """Return the store, which has a trash.

    Raises:
        AppError: it is another persistence module, which has none.
    """
    if conversations.store is None:
        raise AppError(_("this persistence module has no trash"))
    return conversations.store


def items(conversations: Conversations) -> list[Item]:
    """Return what is in the trash, the last deleted first."""
    return [_item(conversations, thing) for thing in trash.contents(store_of(conversations))]


def _item(conversations: Conversations, thing: trash.Trashed) -> Item:
    title = _title(conversations, thing)
    readable: TrashKind = "conversation" if title is not None else "damaged"
    shown = InTrash(
        id=thing.conversation,
        kind=readable if thing.conversation is not None else "foreign",
        deleted=thing.deleted,
        title=thing.path.name if title is None else title,
        bytes=thing.size,
        path=str(thing.path),
    )
    return Item(thing, shown)


def _title(conversations: Conversations, thing: trash.Trashed) -> str | None:
    """Return the title of a conversation; None if nothing of it can be read."""
    if thing.conversation is None:
        return None
    log = LogReader(thing.path, thing.conversation)
    try:
        lines = {
            line.version: line for line in [*log.read(limit=_HEAD), *log.newest_of(CATALOGUED)]
        }
        in_order = [lines[version] for version in sorted(lines)]
        events = list(conversations.events.of_lines(thing.conversation, in_order))
    except StoreError:
        return None
    return row(events).title if events else None


def meant(found: Sequence[Item], wanted: str) -> list[Item]:
    """Return what *wanted* means: a file's name, a part of an id, or a title.

    More than one only if all are of the same conversation.

    Raises:
        AppError: nothing is.
        AmbiguousIdError: several conversations are.
    """
    part = wanted.lower() if len(wanted) >= SHORTEST else "-"
    matches = (
        [item for item in found if item.thing.path.name == wanted]
        or [item for item in found if item.shown.id and _has_part(str(item.shown.id), part)]
        or [item for item in found if item.shown.id and item.shown.title == wanted]
    )
    if not matches:
        text = _("nothing in the trash matches {wanted!r}; `leftfold trash list` shows what is")
        raise AppError(text.format(wanted=wanted))
    ids = list(dict.fromkeys(item.shown.id for item in matches if item.shown.id))
    if len(ids) > 1:
        raise AmbiguousIdError(wanted, ids)
    return matches


def _has_part(text: str, part: str) -> bool:
    return text.startswith(part) or text.endswith(part)


def restore(conversations: Conversations, found: Sequence[Item], wanted: str) -> Restored:
    """Bring back the log that *wanted* means.

    Raises:
        UsageError: it is no log, or is there several times.
        StoreError: there is a log of it in the store, or it cannot be moved.
    """
    match meant(found, wanted):
        case [item] if item.shown.id is not None:
            path = trash.restore(store_of(conversations), item.thing)
            return Restored(id=item.shown.id, path=str(path))
        case [item]:
            text = _("{name} is no conversation: move it yourself")
            raise UsageError(text.format(name=item.thing.path.name))
        case several:
            names = ", ".join(item.thing.path.name for item in several)
            text = _("{wanted} is in the trash several times, say which by its name: {names}")
            raise UsageError(text.format(wanted=wanted, names=names))


def purge(conversations: Conversations, home: Path, chosen: Sequence[Item]) -> Iterator[Purged]:
    """Erase the *chosen* things for good, one after the other, with all that belongs to them.

    Side files that another log names, of a fork above all, stay.

    Raises:
        StoreError: one of them cannot be erased.
    """
    store = store_of(conversations)
    kept = _needed(conversations, home, chosen)
    for item in chosen:
        stays = False
        if item.shown.id is not None:
            folder = side_files(home, item.shown.id)
            stays = folder.is_dir() and item.shown.id in kept
            if folder.is_dir() and not stays:
                shutil.rmtree(folder)
        trash.purge(store, item.thing)
        yield Purged(
            id=item.shown.id, path=item.shown.path, bytes=item.shown.bytes, side_files_kept=stays
        )


def _needed(conversations: Conversations, home: Path, chosen: Sequence[Item]) -> set[UUID]:
    """Return of which of the *chosen* conversations the side files are needed by other logs.

    In doubt they are: where a log cannot be read, or is encrypted.
    """
    ids = {item.shown.id for item in chosen if item.shown.id is not None}
    ids = {id_ for id_ in ids if side_files(home, id_).is_dir()}
    if not ids or plain_store(conversations) is None:
        return ids
    needed = {str(id_).encode() for id_ in ids}
    gone = {item.thing.path for item in chosen}
    named: set[bytes] = set()
    try:
        for log in _logs(store_of(conversations), home):
            if log.path not in gone:
                named |= needed & set(_names(log))
    except StoreError:
        return ids
    return {id_ for id_ in ids if str(id_).encode() in named}


def _logs(store: Store, home: Path) -> Iterator[LogReader]:
    """Yield the logs that may name side files of the *home*: also those in its own store."""
    own = Store(home / "conversations")
    for one in (store,) if own.path == store.path else (store, own):
        thrown = trash.contents(one)
        in_trash = (
            LogReader(thing.path, thing.conversation) for thing in thrown if thing.conversation
        )
        yield from chain(one.logs(), in_trash)


def _names(log: LogReader) -> Iterable[bytes]:
    """Yield of which conversations a log names the side files."""
    with log.reading() as (fd, size):
        for start in range(0, size, _CHUNK):
            yield from _NAMED.findall(disk.read(fd, _CHUNK + _OVERLAP, start))
