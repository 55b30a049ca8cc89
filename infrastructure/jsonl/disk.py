"""The only module that touches the disk: the seam for fault tests.

Callers write ``disk.write(fd, data)``, so a test can replace any function here by one that fails;
and all system calls go through ``os`` and ``fcntl`` of this module, so a test can replace those.
Nothing here decides anything; ``OSError`` passes through, for the caller knows which file it was.
File descriptors are close-on-exec (Python's default), so no child keeps a lock alive (case Z14).
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COPIED_AT_ONCE = 1 << 18  # what fits the cache

_NO_LOCKS_HERE = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})

_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES})


class LocksUnsupportedError(OSError):
    """This file system has no kernel locks (some NFS, case F7)."""


def open_read(path: Path) -> int:
    """Open *path* for reading only."""
    return os.open(path, os.O_RDONLY | os.O_CLOEXEC)


def open_append(path: Path) -> int:
    """Open the existing *path* for reading and for writing at its end."""
    return os.open(path, os.O_RDWR | os.O_APPEND | os.O_CLOEXEC)


def create(path: Path) -> int:
    """Create *path*, which must not exist, with mode 0600 whatever the umask; append only."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def close(fd: int) -> None:
    """Close *fd*; an error on closing is no news, for all that matters was synced."""
    try:
        os.close(fd)
    except OSError:
        return


def read(fd: int, length: int, offset: int) -> bytes:
    """Read *length* bytes at *offset*; fewer only at the end of the file."""
    data = os.pread(fd, length, offset)
    if len(data) == length or not data:
        return data
    parts = [data]
    missing = length - len(data)
    while missing > 0:
        data = os.pread(fd, missing, offset + length - missing)
        if not data:
            break
        parts.append(data)
        missing -= len(data)
    return b"".join(parts)


def write(fd: int, data: bytes) -> int:
    """Write *data* by one system call; return how many bytes went out."""
    return os.write(fd, data)


def write_all(fd: int, data: bytes) -> None:
    """Write *data* by one system call, or raise: a short write is a failure (case Z8)."""
    written = write(fd, data)
    if written != len(data):
        text = f"short write, {written} of {len(data)} bytes (disk full?)"
        raise OSError(errno.ENOSPC, text)


def copy(source: int, target: int, length: int, offset: int) -> None:
    """Append *length* bytes of *source* from *offset* on to *target*."""
    while length > 0:
        data = read(source, min(length, _COPIED_AT_ONCE), offset)
        if not data:
            raise OSError(errno.EIO, "the file became shorter while it was copied")
        write_all(target, data)
        length -= len(data)
        offset += len(data)


def sync_data(fd: int) -> None:
    """Make the bytes of *fd* durable (``fdatasync``)."""
    os.fdatasync(fd)


def sync(fd: int) -> None:
    """Make *fd* durable with its metadata (``fsync``); for folders too."""
    os.fsync(fd)


def truncate(fd: int, size: int) -> None:
    """Cut *fd* to *size* bytes."""
    os.ftruncate(fd, size)


def stat(path: Path | str) -> os.stat_result:
    """Return the status of *path*; a text costs less."""
    return os.stat(path)  # noqa: PTH116 - the seam, and half the price of Path.stat


def position(fd: int) -> int:
    """Return where the last write to *fd* ended, which has no place of its own (append only)."""
    return os.lseek(fd, 0, os.SEEK_CUR)


def stat_fd(fd: int) -> os.stat_result:
    """Return the status of the open file."""
    return os.fstat(fd)


def rename(source: Path, target: Path) -> None:
    """Give *source* the name *target* in one step."""
    os.replace(source, target)  # noqa: PTH105


def remove(path: Path) -> None:
    """Remove *path*; that it is gone already is fine."""
    with contextlib.suppress(FileNotFoundError):
        os.unlink(path)  # noqa: PTH108


def make_folder(path: Path, *, durable: bool = False) -> None:
    """Create *path* and its missing parents, each 0700 whatever the umask (case Z11).

    Args:
        path: The folder.
        durable: Whether the names of those that are made are safe when this returns.
    """
    if path.is_dir():
        return
    make_folder(path.parent, durable=durable)
    try:
        os.mkdir(path, 0o700)  # noqa: PTH102
    except FileExistsError:
        return
    os.chmod(path, 0o700)  # noqa: PTH101
    if durable:
        sync_folder(path.parent)


def sync_folder(path: Path) -> None:
    """Make the names in the folder *path* durable, where the system lets us."""
    try:
        fd = open_read(path)
        try:
            sync(fd)
        finally:
            close(fd)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def files(folder: Path) -> Iterator[os.DirEntry[str]]:
    """Yield the entries of *folder*; none if it does not exist."""
    try:
        with os.scandir(folder) as entries:
            yield from entries
    except FileNotFoundError:
        return


def try_lock(fd: int) -> bool:
    """Take the exclusive kernel lock of *fd* without waiting; False if another has it.

    Raises:
        LocksUnsupportedError: The file system cannot lock.
    """
    try:
        fcntl.flock(fd, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    except OSError as error:
        if error.errno in _NO_LOCKS_HERE:
            raise LocksUnsupportedError(error.errno, error.strerror) from error
        raise
    return True


def unlock(fd: int) -> None:
    """Give the kernel lock back."""
    fcntl.flock(fd, fcntl.LOCK_UN)


def random_bytes(count: int) -> bytes:
    """Return *count* bytes from the system's randomness, for names and epochs."""
    return os.urandom(count)
