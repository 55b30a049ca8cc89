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
import stat as modes
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

_COPIED_AT_ONCE = 1 << 18  # what fits the cache

_NO_LOCKS_HERE = frozenset({errno.ENOLCK, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS})

_NO_FOLDER_SYNC = frozenset({errno.EINVAL, errno.ENOTSUP, errno.EACCES})


_SAFELY = os.O_CLOEXEC | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY

_LARGE, _MOSTLY = 64 << 20, 100
"""A large file of which not a hundredth is on the disk was never written: it is holes, and
is not read. A file that the file system compresses has more on the disk than that."""

_NO_FILE = {
    errno.ELOOP: "it is a symbolic link, and left alone",
    errno.EMLINK: "it is a symbolic link, and left alone",  # what BSDs say of it
    errno.ENXIO: "it is no regular file, and left alone",
}
"""What `open` says of a link, and of a socket or a pipe without a reader."""


class LocksUnsupportedError(OSError):
    """This file system has no kernel locks (some NFS, case F7)."""


class NotOurFileError(OSError):
    """Something in a store that is no regular file, or no folder, of this user: it is left alone.

    A store may be copied in from anywhere. A link in it names a file that its owner never meant,
    a pipe would never answer, and what belongs to somebody else changes when they please.
    """


def open_read(path: Path) -> int:
    """Open *path*, a regular file of this user, for reading only.

    Raises:
        NotOurFileError: It is something else.
    """
    return _opened(path, os.O_RDONLY)


def open_append(path: Path) -> int:
    """Open the existing *path*, a regular file of this user, to read it and write at its end.

    Raises:
        NotOurFileError: It is something else.
    """
    return _opened(path, os.O_RDWR | os.O_APPEND)


def open_folder(path: Path) -> int:
    """Open the folder *path*. It may be a link: where the store is, its person decides."""
    return os.open(path, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)


def _opened(path: Path, flags: int) -> int:
    try:
        fd = os.open(path, flags | _SAFELY)
    except OSError as error:
        if error.errno in _NO_FILE:
            raise NotOurFileError(error.errno, _NO_FILE[error.errno]) from error
        raise
    try:
        status = os.fstat(fd)
        if not modes.S_ISREG(status.st_mode):
            raise NotOurFileError(errno.EINVAL, _NO_FILE[errno.ENXIO])
        if status.st_size > _LARGE and status.st_blocks * 512 < status.st_size // _MOSTLY:
            raise NotOurFileError(errno.EFBIG, "it is all holes, and left alone")
        _require_ours(status)
    except BaseException:
        close(fd)
        raise
    return fd


def is_ours(status: os.stat_result) -> bool:
    """Return whether *status* is of a regular file of this user."""
    return modes.S_ISREG(status.st_mode) and status.st_uid == os.geteuid()


def _require_ours(status: os.stat_result) -> None:
    if status.st_uid != os.geteuid():
        raise NotOurFileError(errno.EPERM, "it belongs to somebody else, and is left alone")


def create(path: Path) -> int:
    """Create *path*, which must not exist, with mode 0600 whatever the umask; append only."""
    fd = os.open(path, os.O_RDWR | os.O_APPEND | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600)
    os.fchmod(fd, 0o600)
    return fd


def open_or_create(path: Path) -> int:
    """Open *path* as `open_append` does, or create it."""
    try:
        return create(path)
    except FileExistsError:
        return open_append(path)


def close(fd: int) -> None:
    """Close *fd*; an error on closing is no news, for all that matters was synced."""
    with contextlib.suppress(OSError):
        os.close(fd)


def read(fd: int, length: int, offset: int) -> bytes:
    """Read *length* bytes at *offset*; fewer only at the end of the file."""
    parts = []
    while length > 0 and (data := os.pread(fd, length, offset)):
        parts.append(data)
        length -= len(data)
        offset += len(data)
    return b"".join(parts)


def contents(path: Path) -> bytes:
    """Return all bytes of *path*, a regular file of this user.

    Raises:
        NotOurFileError: It is something else.
    """
    fd = open_read(path)
    try:
        return read(fd, stat_fd(fd).st_size, 0)
    finally:
        close(fd)


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


def stat(path: Path | bytes) -> os.stat_result:
    """Return the status of *path*, of a link itself; bytes cost less."""
    return os.lstat(path)


def position(fd: int) -> int:
    """Return where the last write to *fd* ended, which has no place of its own (append only)."""
    return os.lseek(fd, 0, os.SEEK_CUR)


def stat_fd(fd: int) -> os.stat_result:
    """Return the status of the open file."""
    return os.fstat(fd)


def rename(source: Path, target: Path) -> None:
    """Give *source* the name *target* in one step."""
    os.replace(source, target)  # noqa: PTH105


def link(source: Path, target: Path) -> None:
    """Give *source* the name *target* as well, which must not exist: the first one wins."""
    os.link(source, target)


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


def require_folder(path: Path) -> None:
    """Make sure that *path*, a folder inside a store, is one of this user, or is not there.

    Raises:
        NotOurFileError: It is a link, or something else.
    """
    try:
        status = os.lstat(path)
    except FileNotFoundError:
        return
    if not modes.S_ISDIR(status.st_mode):
        raise NotOurFileError(errno.ENOTDIR, f"{path.name} is no folder, and left alone")
    _require_ours(status)


def make_inner_folder(path: Path, *, durable: bool = False) -> None:
    """Create *path*, a folder inside a store, as `make_folder` does.

    Raises:
        NotOurFileError: It is there, and is a link, or something else.
    """
    make_folder(path, durable=durable)
    require_folder(path)


def sync_folder(path: Path) -> None:
    """Make the names in the folder *path* durable, where the system lets us."""
    try:
        fd = open_folder(path)
        try:
            sync(fd)
        finally:
            close(fd)
    except OSError as error:
        if error.errno not in _NO_FOLDER_SYNC:
            raise


def names(folder: Path) -> list[str]:
    """Return the names in *folder*; none if it does not exist. It costs a sixth of `files`."""
    try:
        return os.listdir(folder)  # noqa: PTH208 - names are all that is wanted
    except FileNotFoundError:
        return []


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
