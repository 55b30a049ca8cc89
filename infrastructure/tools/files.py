"""Paths as models write them, and files that are read safely and replaced in one step."""

from __future__ import annotations

import contextlib
import difflib
import errno
import hashlib
import os
import stat
import threading
from dataclasses import dataclass, field
from itertools import islice
from pathlib import Path
from typing import BinaryIO, Final, Self

from infrastructure.errors import ToolError
from infrastructure.safe_files import opened
from infrastructure.seals import is_key

# Reading, changing and replacing a file is one step: two edits of a turn must not undo each other.
CHANGING: Final = threading.Lock()

LARGEST: Final = 20_000_000
"""Bytes of a file that a tool still takes whole."""

_NAMES_LOOKED_AT: Final = 10_000


def resolve(path: str, cwd: Path) -> Path:
    """Return *path* from *cwd*, with ``~`` expanded."""
    if "\0" in path:
        raise ToolError("A path cannot contain a NUL character.")
    expanded = os.path.expanduser(path)  # noqa: PTH111 - Path.expanduser raises for unknown users
    # Names are UTF-8 on disk whatever the locale says (LC_ALL=C).
    return cwd / os.fsdecode(expanded.encode(errors="surrogateescape"))


def open_regular(path: Path) -> BinaryIO:
    """Open a regular file for reading; a pipe or a device would block or never end.

    Raises:
        ToolError: It is missing (with similar names), a directory, or not a regular file.
        OSError: It cannot be opened.
    """
    if is_key(path):
        raise ToolError(f"{path} is a key of Leftfold's own, which nobody is shown.")
    try:
        _refuse_irregular(path, path.stat().st_mode)
        return opened(path)
    except (FileNotFoundError, NotADirectoryError):
        raise ToolError(missing(path)) from None


@dataclass(frozen=True, slots=True)
class FileState:
    """A file as it is at one moment.

    Attributes:
        path: How it was named, from the working directory.
        target: The file itself, with all symbolic links followed.
        data: All that is in it; None if it is not there.
    """

    path: Path
    target: Path
    data: bytes | None = field(repr=False)

    @classmethod
    def now(cls, path: str, cwd: Path) -> Self:
        """Return the state of a file that may be written, or that may be created.

        Raises:
            ToolError: It is a directory, not a regular file, or too large to be compared.
            OSError: It cannot be read, or is read-only.
        """
        named = resolve(path, cwd)
        target = Path(os.path.realpath(named))
        try:
            _refuse_irregular(named, target.stat().st_mode)
        except FileNotFoundError:
            _refuse_if_closed(named, target)
            return cls(named, target, None)
        if not os.access(target, os.W_OK):
            raise PermissionError(errno.EACCES, "The file is read-only", str(named))
        with open_regular(target) as file:
            data = file.read(LARGEST + 1)
        if len(data) > LARGEST:
            raise ToolError(
                f"{named} is larger than {LARGEST // 1_000_000} MB; change it by a command."
            )
        return cls(named, target, data)

    @property
    def digest(self) -> str:
        """What tells the content of one state from that of another; "" if it is not there."""
        return "" if self.data is None else digest(self.data)


def digest(data: bytes) -> str:
    """Return what tells *data* from any other content of a file."""
    return hashlib.sha256(data).hexdigest()[:32]


def _refuse_irregular(path: Path, mode: int) -> None:
    if stat.S_ISDIR(mode):
        raise ToolError(f"{path} is a directory, not a file. List it instead.")
    if not stat.S_ISREG(mode):
        raise ToolError(f"{path} is not a regular file (a pipe, a socket or a device).")


def _refuse_if_closed(path: Path, target: Path) -> None:
    """Say in time that no file can be made at *target*."""
    folder = next(parent for parent in target.parents if parent.exists())
    if not folder.is_dir():
        raise NotADirectoryError(errno.ENOTDIR, f"{folder} is not a directory", str(path))
    if not os.access(folder, os.W_OK | os.X_OK):
        raise PermissionError(errno.EACCES, f"Nothing can be created in {folder}", str(path))


def missing(path: Path) -> str:
    """Say that *path* is not there, and which names near it are."""
    folder = path.parent
    if not folder.is_dir():
        while not folder.exists():
            folder = folder.parent
        return f"{path} does not exist. The part that does: {folder}"
    names: dict[str, str] = {}
    with contextlib.suppress(OSError), os.scandir(folder) as entries:
        names = {entry.name.casefold(): entry.name for entry in islice(entries, _NAMES_LOOKED_AT)}
    close = difflib.get_close_matches(path.name.casefold(), names, n=3)
    suggestion = f" Did you mean {' or '.join(names[name] for name in close)}?" if close else ""
    return f"{path} does not exist.{suggestion}"
