"""Files of a project, read without being led anywhere: it may come from anybody.

A link in a repository may name any file of the person who clones it, and one in a shared folder any
file that its maker likes; a pipe never ends, a device never stops.
"""

from __future__ import annotations

import errno
import os
import stat
from pathlib import Path
from typing import BinaryIO

_CALMLY = os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class NotTrustedError(OSError):
    """A file that is not taken for the project's, or for one at all; *why* is for people."""

    def __init__(self, why: str) -> None:
        super().__init__(errno.EPERM, why)
        self.why = why


def opened(path: Path) -> BinaryIO:
    """Open the regular file *path* for reading; it never blocks.

    Raises:
        NotTrustedError: it is a pipe, a device, a folder …
        OSError: it is not there, or cannot be read.
    """
    fd = os.open(path, _CALMLY)
    if stat.S_ISREG(os.fstat(fd).st_mode):
        return os.fdopen(fd, "rb")
    os.close(fd)
    raise NotTrustedError("it is no regular file")


def beginning(path: Path, most_bytes: int) -> tuple[bytes, int]:
    """Return the first *most_bytes* of a regular file, and its size; raises as `opened` does."""
    with opened(path) as file:
        return file.read(most_bytes), os.fstat(file.fileno()).st_size


def whole(path: Path, most_bytes: int) -> bytes:
    """Return the regular file *path*; it never blocks.

    Raises:
        NotTrustedError: it is no regular file, or larger than *most_bytes*.
        OSError: it is not there, or cannot be read.
    """
    data, _ = beginning(path, most_bytes + 1)
    if len(data) > most_bytes:
        raise NotTrustedError(f"it is larger than {most_bytes:,} bytes")
    return data


def require_trusted(path: Path, inside: Path) -> None:
    """Make sure that *path* is a regular file of this user's, or root's, *inside* a folder.

    Raises:
        NotTrustedError: it is not: what is wrong with it.
        OSError: it is not there, or cannot be looked at.
    """
    if not is_own(os.lstat(path)):
        raise NotTrustedError("it belongs to somebody else")
    real = Path(os.path.realpath(path, strict=True))
    if Path(os.path.realpath(inside)) not in real.parents:
        raise NotTrustedError(f"it lies outside of {inside}")
    status = os.lstat(real)
    if not stat.S_ISREG(status.st_mode):
        raise NotTrustedError("it is no regular file")
    if not is_own(status):
        raise NotTrustedError("it belongs to somebody else")
    if status.st_nlink > 1 and not is_own(os.lstat(real.parent)):
        raise NotTrustedError("somebody else may have given one of your files this name")


def is_own(status: os.stat_result) -> bool:
    """Whether a file is this user's, or root's."""
    return status.st_uid in (0, os.geteuid())


def reason_of(error: OSError) -> str:
    """Return what the system says of an error, in its words."""
    return error.strerror or str(error)
