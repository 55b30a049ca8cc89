"""A file's content replaced in one step, or in place where a file is more than its bytes (R13).

A new file takes the place of the old one by a rename, so that a reader, or a crash, sees the old
content or the new one. Where that cannot be, or would lose something (another name of the same
file, its owner, its attributes, a mount), the old file is written in place, and a copy of it is
kept until that is done.
"""

from __future__ import annotations

import errno
import os
import secrets
import stat
import tempfile
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infrastructure.errors import ToolError
from infrastructure.safe_files import reason_of

if TYPE_CHECKING:
    from infrastructure.tools.files import FileState

_CANNOT_RENAME: Final = {
    errno.EACCES, errno.EBUSY, errno.ENAMETOOLONG, errno.ENOTSUP, errno.EPERM, errno.EROFS,
    errno.EXDEV,
}  # fmt: skip
_CANNOT_LINK: Final = {errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS, errno.EMLINK}
"""What file systems without links say (FAT, some network and container ones)."""


def replace(old: FileState, data: bytes) -> None:
    """Write *data* over *old*; parents are created. Nobody else may be writing it here.

    Raises:
        ToolError: Somebody else has made it meanwhile; or it broke off, and the old content could
            not be put back: a copy is named.
        OSError: It cannot be written, and is as it was; the error names the path of the call.
    """
    try:
        if old.data is None:
            old.target.parent.mkdir(parents=True, exist_ok=True)
            _rename_over(old.target, data, None)
            return
        before = old.target.stat()
        if before.st_nlink > 1 or not _renamed(old.target, data, before):
            _write_in_place(old.target, old.data, data)
    except FileExistsError as error:
        raise ToolError(
            f"{old.path} was made by somebody else meanwhile; read it first."
        ) from error
    except OSError as error:
        raise OSError(error.errno, reason_of(error), str(old.path)) from error


def _renamed(target: Path, data: bytes, before: os.stat_result) -> bool:
    """Replace *target* by a new file that has all that it has, if that can be."""
    try:
        _rename_over(target, data, before)
    except OSError as error:
        if error.errno not in _CANNOT_RENAME:
            raise
        return False
    return True


def _rename_over(target: Path, data: bytes, before: os.stat_result | None) -> None:
    # Not derived from the name, which may already be as long as names get.
    temporary = target.parent / f".leftfold-{secrets.token_hex(8)}.tmp"
    descriptor = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666)
    try:
        with os.fdopen(descriptor, "wb") as file:
            if before is not None:
                _take_over(descriptor, target, before)
            file.write(data)
            file.flush()
            os.fsync(descriptor)
        if before is not None or not _linked(temporary, target):
            temporary.replace(target)
    finally:
        temporary.unlink(missing_ok=True)


def _linked(temporary: Path, target: Path) -> bool:
    """Give a new file the name *target*, which only a link never takes from another file.

    False where there are no links: then the name is reserved, and the file may be moved to it.
    """
    try:
        os.link(temporary, target)
    except OSError as error:
        if error.errno not in _CANNOT_LINK:
            raise
        os.close(os.open(target, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o666))
        return False
    return True


def _take_over(descriptor: int, target: Path, before: os.stat_result) -> None:
    """Give a new file the owner, the mode and the attributes of *target*: all of them, or raise."""
    now = os.fstat(descriptor)
    if (now.st_uid, now.st_gid) != (before.st_uid, before.st_gid):
        os.fchown(descriptor, before.st_uid, before.st_gid)
    os.fchmod(descriptor, stat.S_IMODE(before.st_mode))
    if not hasattr(os, "listxattr"):  # macOS
        return
    names: list[str] = []
    with suppress(OSError):  # a file system without attributes
        names = os.listxattr(target)
    for name in names:
        value = os.getxattr(target, name)
        with suppress(OSError):
            if os.getxattr(descriptor, name) == value:
                continue
        os.setxattr(descriptor, name, value)


def _write_in_place(target: Path, old: bytes, data: bytes) -> None:
    """Write *data* into the file itself; if that breaks off, put *old* back."""
    descriptor = os.open(target, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    try:
        copy = _copy_of(target, old)
        try:
            _fill(descriptor, data)
        except BaseException as error:
            try:
                _fill(descriptor, old)
            except OSError:
                why = f"{target} could not be written whole ({error}). What was in it: {copy}"
                raise ToolError(why) from error
            copy.unlink(missing_ok=True)
            raise
        copy.unlink(missing_ok=True)
    finally:
        os.close(descriptor)


def _fill(descriptor: int, data: bytes) -> None:
    rest, place = memoryview(data), 0
    while rest:
        written = os.pwrite(descriptor, rest, place)
        rest, place = rest[written:], place + written
    os.ftruncate(descriptor, len(data))
    os.fsync(descriptor)


def _copy_of(target: Path, data: bytes) -> Path:
    """Return a copy that outlives a crash: beside the file, or where temporary files are."""
    for folder in (target.parent, Path(tempfile.gettempdir())):
        with suppress(OSError):
            descriptor, name = tempfile.mkstemp(prefix=".leftfold-", suffix=".copy", dir=folder)
            with os.fdopen(descriptor, "wb") as file:
                file.write(data)
                file.flush()
                os.fsync(descriptor)
            return Path(name)
    raise OSError(errno.ENOSPC, "There is no room for a copy while it is written in place")
