"""What becomes of whole logs: a copy to go on from."""

from __future__ import annotations

from typing import TYPE_CHECKING

from infrastructure.errors import InvalidEventError, LogExistsError
from infrastructure.jsonl.store import Store, as_uuid

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
