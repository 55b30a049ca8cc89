"""One log, written: append, roll back, create, fork.

An append is one write under the kernel lock, after what others wrote has been learned; what fails
is cut off again, and what cannot be cut is not believed.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from infrastructure.errors import (
    LogMissingError,
    LogReplacedError,
    NewerFormatError,
    VersionConflictError,
    WriteError,
)
from infrastructure.jsonl import disk, locks, search
from infrastructure.jsonl import line as lines_
from infrastructure.jsonl.log_reader import Identity, LogReader, Unsaved, identity_of
from infrastructure.jsonl.new_log import Copied, put_in_place
from infrastructure.jsonl.notification_file import Record
from infrastructure.jsonl.unnumbered import NewRecords

if TYPE_CHECKING:
    from collections.abc import Sequence
    from pathlib import Path
    from uuid import UUID

    from eventsourcing.persistence import StoredEvent

    from infrastructure.jsonl.line import TrackingMark


class _Known(msgspec.Struct, frozen=True, gc=False):
    """What an append has to know of the file, as of *size*."""

    size: int
    last: int | None
    sealed: bool = True
    unfinished: bool = False


class LogFile(LogReader):
    """The file of one conversation, to be appended to.

    Not thread-safe: its `Store` holds a lock. Between `begin` and `end` the kernel lock is held.

    Args:
        path: The file, which need not exist.
        conversation: Whose events it holds.
        durable: Whether an append waits for the disk.
    """

    def __init__(self, path: Path, conversation: UUID, *, durable: bool = True) -> None:
        super().__init__(path, conversation)
        self._path_bytes = bytes(path)
        self.durable = durable
        self.locking_works = True
        self._fd: int | None = None
        self._known: _Known | None = None
        self._size_before: int | None = None

    # -- appending -------------------------------------------------------------------------------

    @property
    def is_open(self) -> bool:
        """Whether a file descriptor is kept for the next append."""
        return self._fd is not None

    def begin(self, *, may_be_missing: bool = False) -> None:
        """Lock the file, if it is there, and learn what others appended to it.

        Raises:
            LogMissingError: There is no such file, and there should be.
            LogReplacedError: It is not the file it was.
            LockTimeoutError: Another process keeps the lock.
            WriteError: It cannot be opened, or what was not saved last time cannot be cut.
        """
        try:
            fd = self._fd if self._fd is not None else self._open()
            self.locking_works = locks.acquire(fd, self.path)
            try:
                self._refresh(fd)
            except BaseException:
                self.end()
                raise
        except LogMissingError:
            if not may_be_missing:
                raise
        except NewerFormatError as error:
            raise NewerFormatError(self.path, error.format) from None
        except OSError as error:
            self.close()
            raise WriteError(self.path, error) from error

    def end(self) -> None:
        """Unlock the file."""
        self._size_before = None
        if self._fd is not None and self.locking_works:
            try:
                disk.unlock(self._fd)
            except OSError:
                self.close()

    def check(self, events: Sequence[StoredEvent]) -> None:
        """Raise unless the versions of *events* rise from the last one of the file.

        Raises:
            VersionConflictError: They do not.
        """
        last = self._known.last if self._known else None
        for event in events:
            version = event.originator_version
            if last is not None and version <= last:
                raise VersionConflictError(self.conversation, version, last, path=self.path)
            last = version

    def append(
        self, events: Sequence[StoredEvent], tracking: TrackingMark | None = None
    ) -> NewRecords:
        """Append *events* by one write, or create the file with them. `sync` must follow.

        To create it, the caller holds the lock of the folder, and `begin` did not find the file.

        Raises:
            WriteError: Nothing of it was kept.
        """
        known, fd = self._known, self._fd
        if known is None or fd is None:
            return self._create(events, tracking)
        base = (known.last or 0) if known.unfinished else None
        lines = encoded(events, base=base, tracking=tracking)
        seal = b"" if known.sealed else b"\n"
        self._size_before = known.size
        try:
            disk.write_all(fd, seal + b"".join(lines))
        except OSError as error:
            self.roll_back()
            raise WriteError(self.path, error) from error
        return self._records(events, lines, known.size + len(seal))

    def _records(
        self, events: Sequence[StoredEvent], lines: Sequence[bytes], start: int
    ) -> NewRecords:
        """Know the *lines* of *events*, written from *start* on; return where they are."""
        previous, records = self._known.last if self._known else None, []
        for event, line in zip(events, lines, strict=True):
            records.append(Record(self.key, start, event.originator_version))
            start += len(line)
        self._known = _Known(start, events[-1].originator_version)
        return NewRecords(self, previous, records)

    def sync(self) -> None:
        """Wait until what was written is on the disk.

        Raises:
            WriteError: It is not; nothing of it was kept, and the next append opens the file again.
        """
        if not self.durable:
            return
        assert self._fd is not None
        try:
            disk.sync_data(self._fd)
        except OSError as error:
            self.roll_back()
            raise WriteError(self.path, error) from error

    def roll_back(self) -> None:
        """Cut the file to what it was at `begin`, and forget all that was known of it."""
        fd, before = self._fd, self._size_before
        if fd is not None and before is not None:
            if before == 0:  # it was created by this append
                with contextlib.suppress(OSError):
                    disk.remove(self.path)
                self._identity = None
            else:
                self._cut(fd, before)
        self.close()
        self._size_before = None

    def _cut(self, fd: int, size: int) -> None:
        """Cut the bytes that were not saved; if that fails, ignore them, and cut next time."""
        with contextlib.suppress(OSError):
            try:
                disk.truncate(fd, size)
            except OSError:
                status = disk.stat_fd(fd)
                self._unsaved = Unsaved(identity_of(status), size, status.st_size)
            else:
                disk.sync_data(fd)

    def _create(
        self,
        events: Sequence[StoredEvent],
        tracking: TrackingMark | None = None,
        *,
        base: int | None = None,
        copied: Copied | None = None,
    ) -> NewRecords:
        lines = encoded(events, base=base, tracking=tracking)
        start = self._put_in_place(b"".join(lines), copied)
        self._size_before = 0
        return self._records(events, lines, start)

    def fork_from(
        self, parent: LogFile, cut: int, extra: Sequence[StoredEvent], *, base: int | None
    ) -> None:
        """Create the file with the bytes of *parent* up to *cut*, but its own header, and *extra*.

        The caller holds the lock of the folder and has seen that the file is not there.

        Raises:
            WriteError: Nothing of it was kept.
        """
        with parent.reading() as (fd, size):
            start = search.header_end(fd, size)
            self._create(extra, base=base, copied=Copied(fd, start, max(cut - start, 0)))

    def replace(self, lines: bytes) -> None:
        """Write all of the file again, with *lines*; the caller holds the lock of the folder.

        Raises:
            WriteError: The file is as it was.
        """
        self.forget()
        self._put_in_place(lines)

    def _put_in_place(self, lines: bytes, copied: Copied | None = None) -> int:
        new = put_in_place(self.path, self.conversation, lines, durable=self.durable, copied=copied)
        self.locking_works = new.locking_works
        self._adopt(new.fd, new.identity)
        return new.start

    def close(self) -> None:
        """Close the file and forget what was known of it, but not which file it was."""
        fd, self._fd, self._known = self._fd, None, None
        if fd is not None:
            disk.close(fd)

    def forget(self) -> None:
        """Close the file and forget which it was: whatever is there next time is fine."""
        self.close()
        self._identity = None

    def _open(self) -> int:
        try:
            fd = disk.open_append(self.path)
        except FileNotFoundError:
            if self._identity is not None:
                raise LogReplacedError(self.path) from None
            raise LogMissingError(self.path) from None
        try:
            identity = identity_of(disk.stat_fd(fd))
            if self._identity not in (None, identity):
                self._identity = None  # it is another file: said once, then believed
                raise LogReplacedError(self.path)
            if self.durable:  # the process that made it may have died before it did
                disk.sync_folder(self.path.parent)
        except BaseException:
            disk.close(fd)
            raise
        self._adopt(fd, identity)
        return fd

    def _adopt(self, fd: int, identity: Identity) -> None:
        self._fd = fd
        self._identity = identity
        self._header_checked = None

    def _refresh(self, fd: int) -> None:
        """Learn what others appended to the open file, if it is still the one at its path."""
        try:
            status = disk.stat(self._path_bytes)
        except FileNotFoundError:
            self.close()
            raise LogReplacedError(self.path) from None
        if (status.st_dev, status.st_ino) != self._identity:
            self.close()
            self._identity = None
            raise LogReplacedError(self.path)
        size = status.st_size
        if self._unsaved is not None:
            size = self._believed(status)
            if size < status.st_size:
                disk.truncate(fd, size)
            self._unsaved = None
        known = self._known
        if known is None or known.size != size:
            self._check_header(fd, identity_of(status))
            self._known = _learn(fd, size, known, sparse=self.sparse)


def _learn(fd: int, size: int, known: _Known | None, *, sparse: bool) -> _Known:
    """Return what is known of the file now; if the new bytes are in order, no others are read."""
    scan = None
    if known is not None and known.sealed and not known.unfinished and known.size < size:
        scan = search.scan(fd, known.size, size, previous=known.last, sparse=sparse)
    if scan is None or not (scan.clean and scan.lines):
        scan = search.from_end(fd, size, limit=1, sparse=sparse)
    return _Known(size, scan.last, sealed=scan.sealed, unfinished=scan.unfinished)


def encoded(
    events: Sequence[StoredEvent],
    *,
    base: int | None = None,
    tracking: TrackingMark | None = None,
) -> list[bytes]:
    """Return the lines of one save."""
    count = len(events)
    if count == 1 and base is None and tracking is None:
        (event,) = events
        return [lines_.encode(event.originator_version, event.topic, event.state)]
    return [
        lines_.encode(
            event.originator_version,
            event.topic,
            event.state,
            batch=(number, count) if count > 1 else None,
            base=base if number == 1 else None,
            tracking=tracking if number == count else None,
        )
        for number, event in enumerate(events, 1)
    ]
