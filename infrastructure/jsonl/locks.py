"""Kernel locks: the short one of an append, and the lease of an open conversation.

Both are ``flock``, so they die with their holder; that a file exists locks nothing (case F6).
"""

from __future__ import annotations

import contextlib
import os
import socket
import time
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final, Self

import msgspec

from infrastructure.errors import LeaseHeldError, LockTimeoutError, WriteError
from infrastructure.jsonl import disk

if TYPE_CHECKING:
    from pathlib import Path
    from uuid import UUID

PATIENCE: Final = 10.0
_FIRST_PAUSE: Final = 0.0002
_LONGEST_PAUSE: Final = 0.02


def acquire(fd: int, path: Path, *, patience: float = PATIENCE) -> bool:
    """Take the lock of *fd*, waiting *patience* seconds at most (case F7: never hang).

    Returns:
        True, or False where the file system has no locks: the caller goes on, and says so.

    Raises:
        LockTimeoutError: Another process kept the lock.
    """
    try:
        if disk.try_lock(fd):
            return True
        deadline = time.monotonic() + patience
        pause = _FIRST_PAUSE
        while time.monotonic() < deadline:
            time.sleep(pause)
            if disk.try_lock(fd):
                return True
            pause = min(pause * 1.5, _LONGEST_PAUSE)
    except disk.LocksUnsupportedError:
        return False
    raise LockTimeoutError(f"{path}: locked by another process for {patience:g} s", path=path)


class Lease:
    """The right to go on with a conversation, held by one program at a time.

    It is separate from the append lock: reading, and a single append by another program, stay
    possible. What the file says about its holder is a hint for people.
    """

    def __init__(self, path: Path, fd: int) -> None:
        self.path = path
        self._fd: int | None = fd

    @classmethod
    def acquire(cls, store: Path, conversation: UUID, *, program: str = "leftfold") -> Self:
        """Take the lease of *conversation* without waiting.

        Raises:
            LeaseHeldError: Another program has it; the error says who.
            WriteError: The store cannot be written to.
        """
        path = store / ".leases" / str(conversation)
        try:
            disk.make_inner_folder(path.parent)
            fd = disk.open_or_create(path)
        except OSError as error:
            raise WriteError(path, error) from error
        try:
            # Where there are no locks, everybody gets the lease: refusing would lock people out.
            with contextlib.suppress(disk.LocksUnsupportedError):
                if not disk.try_lock(fd):
                    raise LeaseHeldError(conversation, _holder(fd), path=path)
            _sign(fd, program)
        except BaseException:
            disk.close(fd)
            raise
        return cls(path, fd)

    def release(self) -> None:
        """Give the lease back; a second time does nothing."""
        fd, self._fd = self._fd, None
        if fd is not None:
            try:
                _say(fd, b"")
                with contextlib.suppress(OSError):  # closing is not enough:
                    disk.unlock(fd)  # a program that is being started has the descriptor yet
            finally:
                disk.close(fd)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.release()


def _sign(fd: int, program: str) -> None:
    holder = {
        "pid": os.getpid(),
        "host": socket.gethostname(),
        "program": program,
        "since": datetime.now(UTC).isoformat(timespec="seconds"),
    }
    _say(fd, msgspec.json.encode(holder))


def _say(fd: int, data: bytes) -> None:
    """Write *data* as the text of a lease: a hint, which may fail.

    A file with a second name may belong to another program: it is locked, but not written to.
    """
    with contextlib.suppress(OSError):
        if disk.stat_fd(fd).st_nlink == 1:
            disk.truncate(fd, 0)
            disk.write(fd, data)


def _holder(fd: int) -> dict[str, str | int]:
    try:
        return msgspec.json.decode(disk.read(fd, 4096, 0), type=dict[str, str | int])
    except (OSError, msgspec.MsgspecError):
        return {}
