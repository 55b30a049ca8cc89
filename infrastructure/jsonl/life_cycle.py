"""What becomes of whole logs: a copy to go on from, and other events in place of its own."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

from infrastructure.errors import (
    InvalidEventError,
    LockTimeoutError,
    LogExistsError,
    StoreError,
    VersionConflictError,
)
from infrastructure.jsonl import disk
from infrastructure.jsonl.log_file import encoded
from infrastructure.jsonl.store import Store, as_uuid
from infrastructure.jsonl.unnumbered import try_locks

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from eventsourcing.persistence import StoredEvent


def fork(
    store: Store,
    source: UUID,
    upto_version: int,
    new: UUID,
    extra: Sequence[StoredEvent],
) -> None:
    """Create the log *new*: the bytes of *source* up to a version, then the *extra* events.

    The source is only read, and without a lock: the lines that are copied are whole already.
    Damaged bytes are copied as they are.

    Raises:
        LogMissingError: There is no *source*.
        LogExistsError: There is a *new* already.
        InvalidEventError: The events do not go on from *upto_version*.
    """
    with store.lock, store.folder_locked():
        parent, child = store.log(source), store.log(new)
        if child.exists():
            raise LogExistsError(f"{child.path}: there is a log already", path=child.path)
        cut, line = parent.cut_after(upto_version)
        last = line.version if line else 0
        if not extra or any(as_uuid(event.originator_id) != new for event in extra):
            raise InvalidEventError(f"a fork needs an event of {new} that says so")
        if extra[0].originator_version <= last:
            raise InvalidEventError(f"a fork's own events come after version {last}")
        # A batch that is cut in two looks unfinished; "base" says that it is not.
        in_batch = line is not None and line.batch is not None and len(set(line.batch)) > 1
        try:
            child.fork_from(parent, cut, extra, base=last if in_batch else None)
        finally:
            child.end()
            store.limit_open_files([child])
    store.announce()


def supersede(store: Store, conversation: UUID, events: Sequence[StoredEvent], last: int) -> None:
    """Put *events* in place of those of a log that ends with version *last*, in one step.

    Whoever calls this has seen to it that what stood there stands in another log.

    Raises:
        LockTimeoutError: Another process writes to it, or it is gone.
        VersionConflictError: It does not end there: another program has gone on with it.
        WriteError: The log is as it was.
    """
    with store.lock, store.folder_locked():
        log = store.log(conversation)
        with try_locks([log]) as free:  # until the new file is in place: nobody appends meanwhile
            if not free:
                raise LockTimeoutError(f"{log.path}: locked by another process", path=log.path)
            found = log.last() or 0
            if found != last:
                raise VersionConflictError(conversation, last + 1, found, path=log.path)
            try:
                log.replace(b"".join(line for event in events for line in encoded([event])))
            finally:
                log.end()
        store.limit_open_files([log])
        with contextlib.suppress(StoreError, OSError):  # derived: the next reader builds it again
            store.notifications.close()
            disk.remove(store.notifications.file.path)
            store.notifications.catch_up()
    store.announce()
