"""A new log, put in place whole and locked: by a temporary file and a rename."""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple

from infrastructure.errors import WriteError
from infrastructure.jsonl import disk, locks
from infrastructure.jsonl.line import encode_header
from infrastructure.jsonl.log_reader import Identity, identity_of

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID


class Copied(NamedTuple):
    """Bytes of another log that go between the header and the first line of the new one."""

    fd: int
    offset: int
    length: int


class NewLog(NamedTuple):
    """The file that was put in place: open and locked; its lines start at *start*."""

    fd: int
    identity: Identity
    start: int
    locking_works: bool


def put_in_place(
    path: Path, conversation: UUID, lines: bytes, *, durable: bool, copied: Copied | None = None
) -> NewLog:
    """Make the log *path* of *conversation* with *lines* in it, in place of what is there.

    Raises:
        WriteError: Nothing was made, and *path* is as it was.
    """
    now = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")
    head = encode_header(str(conversation), now)
    fd, temporary = None, path
    try:
        temporary = path.with_name(f".{conversation}.{disk.random_bytes(6).hex()}.tmp")
        fd = disk.create(temporary)
        identity = identity_of(disk.stat_fd(fd))
        locking_works = locks.acquire(fd, temporary)
        start = _fill(fd, head, lines, copied)
        if durable:
            disk.sync(fd)
        disk.rename(temporary, path)
        if durable:
            disk.sync_folder(path.parent)
    except BaseException as error:
        if fd is not None:
            _discard(fd, temporary, path)
        if isinstance(error, OSError):
            raise WriteError(path, error) from error
        raise
    return NewLog(fd, identity, start, locking_works)


def _fill(fd: int, head: bytes, lines: bytes, copied: Copied | None) -> int:
    """Write the first bytes of a new file; return where *lines* start."""
    if copied is None:
        disk.write_all(fd, head + lines)
        return len(head)
    source, offset, length = copied
    disk.write_all(fd, head)
    disk.copy(source, fd, length, offset)
    seal = b""
    if length and disk.read(source, 1, offset + length - 1) != b"\n":
        seal = b"\n"
    disk.write_all(fd, seal + lines)
    return len(head) + length + len(seal)


def _discard(fd: int, *paths: Path) -> None:
    """Remove whichever of *paths* is the open file, and close it."""
    for path in paths:
        with contextlib.suppress(OSError):
            if identity_of(disk.stat(path)) == identity_of(disk.stat_fd(fd)):
                disk.remove(path)
    disk.close(fd)
