"""The trash: the folder ``.trash`` of a store, where logs that were deleted stay until a purge.

Into it and out of it is one rename, so after a crash a log is in one of the two places, whole. What
is purged goes last of all that is its conversation's: a purge that a crash cut short is seen, and
can be done again.
"""

from __future__ import annotations

import contextlib
import itertools
import re
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from infrastructure.errors import LogExistsError, LogMissingError, ReadError, WriteError
from infrastructure.jsonl import disk, locks
from infrastructure.jsonl.store import LOG_NAME, SNAPSHOTS, SUFFIX, TRASH

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from infrastructure.jsonl.store import Store

_PURGED: Final = ".purged"
"""The file that names the conversations that were purged: that their logs are gone is no damage."""

_NAME: Final = re.compile(LOG_NAME + r"(\.[0-9]+)?")


class Trashed(NamedTuple):
    """A thing in the trash.

    Attributes:
        path: Where it is.
        conversation: Whose log it is; None: it is no log of ours, whatever it is.
        size: Its bytes.
        deleted: When it came here, which was its last change. A copy of a trash is as old as it is.
    """

    path: Path
    conversation: UUID | None
    size: int
    deleted: datetime


def put(store: Store, conversation: UUID) -> Path:
    """Move a log into the trash, and return where it is now; nothing is lost.

    Raises:
        LogMissingError: There is no such log.
        LeaseHeldError: Somebody has the conversation open.
        WriteError: It is where it was.
    """
    with store.lock, store.folder_locked(), locks.Lease.acquire(store.path, conversation):
        log = store.log(conversation)
        if not log.exists():
            raise LogMissingError(log.path)
        store.let_go(log)
        folder = store.path / TRASH
        with _writing(log.path):
            disk.make_inner_folder(folder, durable=store.durable)
            taken = {entry.name for entry in disk.files(folder)}
            name = f"{conversation}{SUFFIX}"
            names = (name if n == 0 else f"{name}.{n}" for n in itertools.count())
            target = folder / next(name for name in names if name not in taken)
            _move(store, log.path, target)
    return target


def contents(store: Store) -> list[Trashed]:
    """Return what is in the trash, the last deleted first.

    Raises:
        ReadError: It cannot be looked into.
    """
    folder = store.path / TRASH
    found = []
    try:
        disk.require_folder(folder)
        for entry in disk.files(folder):
            if entry.name == _PURGED:
                continue
            with contextlib.suppress(FileNotFoundError):
                status = entry.stat(follow_symlinks=False)
                name = _NAME.fullmatch(entry.name)
                is_log = name is not None and disk.is_ours(status)
                conversation = UUID(name[1]) if name and is_log else None
                deleted = datetime.fromtimestamp(status.st_ctime, UTC)
                found.append(Trashed(folder / entry.name, conversation, status.st_size, deleted))
    except OSError as error:
        raise ReadError(folder, error) from error
    return sorted(found, key=lambda one: (one.deleted, one.path.name), reverse=True)


def restore(store: Store, trashed: Trashed) -> Path:
    """Move a log back into the store, and return where it is now.

    Raises:
        LogExistsError: There is a log of that conversation; nothing was done.
        LogMissingError: It is not in the trash any more.
        WriteError: It is where it was.
    """
    assert trashed.conversation is not None
    with store.lock, store.folder_locked():
        log = store.log(trashed.conversation)
        if log.exists():
            raise LogExistsError(f"{log.path}: there is a log already", path=log.path)
        store.let_go(log)
        with _writing(trashed.path):
            disk.require_folder(trashed.path.parent)
            disk.close(disk.open_read(trashed.path))
            _move(store, trashed.path, log.path)
    store.announce()
    return log.path


def purge(store: Store, trashed: Trashed) -> None:
    """Erase a thing in the trash for good; with the last of a conversation go its snapshots.

    Raises:
        WriteError: It is there still, or was a folder: that is left alone.
    """
    folder = trashed.path.parent
    with store.lock, store.folder_locked(), _writing(trashed.path):
        disk.require_folder(folder)
        if trashed.conversation is not None and not _is_elsewhere(store, trashed):
            _note_purged(store, trashed.conversation)
            disk.require_folder(store.path / SNAPSHOTS)
            disk.remove(store.path / SNAPSHOTS / f"{trashed.conversation}{SUFFIX}")
        disk.remove(trashed.path)
        if store.durable:
            disk.sync_folder(folder)


def is_deleted(store: Store, conversation: UUID) -> bool:
    """Whether a log that is not in the store was deleted on purpose: it is here, or purged."""
    folder = store.path / TRASH
    if any(folder.glob(f"{conversation}{SUFFIX}*")):
        return True
    with contextlib.suppress(OSError):
        return str(conversation).encode() in disk.contents(folder / _PURGED).split()
    return False


def _is_elsewhere(store: Store, trashed: Trashed) -> bool:
    """Whether there is another log of the same conversation, in the store or here."""
    assert trashed.conversation is not None
    others = (one for one in contents(store) if one.path != trashed.path)
    return store.log(trashed.conversation).exists() or any(
        one.conversation == trashed.conversation for one in others
    )


def _note_purged(store: Store, conversation: UUID) -> None:
    fd = disk.open_or_create(store.path / TRASH / _PURGED)
    try:
        disk.write_all(fd, f"{conversation}\n".encode())
        if store.durable:
            disk.sync_data(fd)
    finally:
        disk.close(fd)


def _move(store: Store, source: Path, target: Path) -> None:
    disk.rename(source, target)
    if store.durable:  # where it is first, so that it is never in neither
        disk.sync_folder(target.parent)
        disk.sync_folder(source.parent)


@contextlib.contextmanager
def _writing(path: Path) -> Iterator[None]:
    try:
        yield
    except FileNotFoundError as error:
        raise LogMissingError(path) from error
    except OSError as error:
        raise WriteError(path, error) from error
