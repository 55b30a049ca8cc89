"""One log: append, roll back, create, fork, and the reading of what it holds.

An append is one write under the kernel lock, after what others wrote has been learned; what fails
is cut off again, and what cannot be cut is not believed. How lines are found is in `search`.
"""

from __future__ import annotations

import contextlib
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from zlib import crc32

from infrastructure.errors import (
    LogMissingError,
    LogReplacedError,
    NewerFormatError,
    ReadError,
    VersionConflictError,
    WriteError,
)
from infrastructure.jsonl import disk, locks, search
from infrastructure.jsonl import line as lines_

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from pathlib import Path
    from uuid import UUID

    from eventsourcing.persistence import StoredEvent

    from infrastructure.jsonl.line import Line, TrackingMark
    from infrastructure.jsonl.reader import Scan


Identity = tuple[int, int]


class Anchor(NamedTuple):
    """Where a version stands: the file, the bytes of its line and their checksum, and when.

    *end* is the offset behind the line's newline; *changed* when the file was last written, in
    nanoseconds.
    """

    device: int
    inode: int
    start: int
    end: int
    crc: int
    changed: int


class _Known(NamedTuple):
    """What an append has to know of the file, as of *size*."""

    size: int
    last: int | None
    sealed: bool
    unfinished: bool


class LogFile:
    """The file of one conversation.

    Not thread-safe: its `Store` holds a lock. Between `begin` and `end` the kernel lock is held.

    Args:
        path: The file, which need not exist.
        conversation: Whose events it holds; the file's name, not its header, says so.
        durable: Whether an append waits for the disk.
    """

    def __init__(self, path: Path, conversation: UUID, *, durable: bool = True) -> None:
        self.path = path
        self._path_text = str(path)
        self.conversation = conversation
        self.durable = durable
        self.locking_works = True
        self._fd: int | None = None
        self._identity: Identity | None = None
        self._known: _Known | None = None
        self._undo: int | None = None
        self._doubt: tuple[Identity, int, int] | None = None
        self._header_checked: Identity | None = None

    # -- reading ---------------------------------------------------------------------------------

    def scan(self) -> Scan:
        """Read all of the file: what `verify` reports from.

        Raises:
            LogMissingError: There is no such file.
        """
        with self._reading() as (fd, size):
            return search.scan(fd, 0, size)

    def read(
        self,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> list[Line]:
        """Return the lines that are believed, with versions in ``(gt, lte]``.

        The arguments are those of the library's `select_events`. No log, no lines.
        """
        try:
            with self._reading() as (fd, size):
                if desc and limit is not None and lte is None:
                    found = search.from_end(fd, size, gt=gt, limit=limit).lines
                    return search.selected(found, gt, lte, desc=desc, limit=limit)
                lower = search.lower(gt, lte, desc=desc, limit=limit)
                upper = search.upper(gt, lte, desc=desc, limit=limit)
                found = search.between(fd, size, lower, upper)
                chosen = search.selected(found, gt, lte, desc=desc, limit=limit)
                stopped = upper != lte and bool(found) and found[-1].end + 1 < size
                if (lower != gt or stopped) and len(chosen) < (limit or 0):  # versions are missing
                    found = search.between(fd, size, gt, lte)
                    chosen = search.selected(found, gt, lte, desc=desc, limit=limit)
                return chosen
        except LogMissingError:
            return []

    def last(self) -> int | None:
        """Return the last version, or None if there is none."""
        found = self.read(desc=True, limit=1)
        return found[0].version if found else None

    def lines_at(self, places: Sequence[tuple[int, int]]) -> list[Line | None]:
        """Return the lines at *places*, pairs of offset and version; None where it is not so.

        Raises:
            LogMissingError: There is no such file.
        """
        with self._reading() as (fd, size):
            return search.lines_at(fd, size, places)

    def newest_of(self, topics: Sequence[str]) -> list[Line]:
        """Return the newest line of each of *topics* that is there."""
        try:
            with self._reading() as (fd, size):
                newest = search.newest_of(fd, size, topics)
        except LogMissingError:
            return []
        found = []
        for topic in filter(newest.__contains__, topics):
            lines = self.read(gt=newest[topic] - 1, lte=newest[topic])
            if not lines or lines[-1].topic != topic:  # it is not believed: an older one may be
                lines = [line for line in self.read() if line.topic == topic]
            found += lines[-1:]
        return found

    def cut_after(self, version: int) -> tuple[int, Line | None]:
        """Return where the events up to *version* end, newline included, and the last of them.

        Raises:
            LogMissingError: There is no such file.
        """
        with self._reading() as (fd, size):
            return search.cut_after(fd, size, version)

    def anchor(self, version: int) -> Anchor | None:
        """Return where *version* stands; None if it is not there."""
        try:
            with self._reading() as (fd, size):
                end, line = search.cut_after(fd, size, version)
                if line is None or line.version != version:
                    return None
                status = disk.stat_fd(fd)
                data = disk.read(fd, end - line.offset, line.offset)
        except LogMissingError:
            return None
        at = (line.offset, end, crc32(data), status.st_mtime_ns)
        return Anchor(status.st_dev, status.st_ino, *at)

    def holds(self, anchor: Anchor) -> bool:
        """Whether the line of *anchor* stands where it stood, in the same file.

        A file that did not grow must not have been written either: then somebody changed what is
        before it.
        """
        try:
            with self._reading() as (fd, size):
                status = disk.stat_fd(fd)
                if (status.st_dev, status.st_ino) != (anchor.device, anchor.inode):
                    return False
                if size == anchor.end and status.st_mtime_ns != anchor.changed:
                    return False
                data = disk.read(fd, anchor.end - anchor.start, anchor.start)
                return size >= anchor.end and crc32(data) == anchor.crc
        except LogMissingError:
            return False

    @contextlib.contextmanager
    def _reading(self) -> Iterator[tuple[int, int]]:
        try:
            fd = disk.open_read(self.path)
        except FileNotFoundError:
            raise LogMissingError(self.path) from None
        except OSError as error:
            raise ReadError(self.path, error) from error
        try:
            status = disk.stat_fd(fd)
            identity = _identity(status)
            self._check_header(fd, identity)
            if self._identity is None:  # what was read is what will be appended to
                self._identity = identity
            yield fd, self._undoubted(status)
        except NewerFormatError as error:
            raise NewerFormatError(self.path, error.format) from None
        except OSError as error:
            raise ReadError(self.path, error) from error
        finally:
            disk.close(fd)

    def _check_header(self, fd: int, identity: Identity) -> None:
        """Refuse a newer format before any part of the file is read."""
        if self._header_checked != identity:
            lines_.header(disk.read(fd, search.PROBE, 0).partition(b"\n")[0])
            self._header_checked = identity

    # -- appending -------------------------------------------------------------------------------

    def exists(self) -> bool:
        """Return whether the file is there."""
        try:
            disk.stat(self.path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ReadError(self.path, error) from error
        return True

    @property
    def last_known(self) -> int | None:
        """The last version, as of `begin`."""
        return self._known.last if self._known else None

    @property
    def was_there(self) -> bool:
        """Whether this process has had the file open, be it only to read it."""
        return self._identity is not None

    @property
    def is_open(self) -> bool:
        """Whether a file descriptor is kept for the next append."""
        return self._fd is not None

    def begin(self) -> None:
        """Lock the file and learn what others appended to it.

        Raises:
            LogReplacedError: It is not the file it was.
            LockTimeoutError: Another process keeps the lock.
            WriteError: What was not saved last time can still not be cut.
        """
        try:
            fd = self._fd if self._fd is not None else self._open()
            self.locking_works = locks.acquire(fd, self.path)
            try:
                self._refresh(fd)
            except BaseException:
                self.end()
                raise
        except NewerFormatError as error:
            raise NewerFormatError(self.path, error.format) from None
        except OSError as error:
            self.close()
            if self._doubt is not None:
                raise WriteError(self.path, error) from error
            raise ReadError(self.path, error) from error

    def end(self) -> None:
        """Unlock the file."""
        self._undo = None
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
        last = self.last_known
        for event in events:
            version = event.originator_version
            if last is not None and version <= last:
                raise VersionConflictError(self.conversation, version, last, path=self.path)
            last = version

    def write(
        self, events: Sequence[StoredEvent], tracking: TrackingMark | None = None
    ) -> list[int]:
        """Append *events* by one write; return the offsets of their lines. `sync` must follow.

        Raises:
            WriteError: Nothing of it was kept.
        """
        known, fd = self._known, self._fd
        assert known is not None
        assert fd is not None
        base = (known.last or 0) if known.unfinished else None
        lines = encoded(events, base=base, tracking=tracking)
        seal = b"" if known.sealed else b"\n"
        self._undo = known.size
        try:
            disk.write_all(fd, seal + b"".join(lines))
        except OSError as error:
            self.roll_back()
            raise WriteError(self.path, error) from error
        offsets, size = _offsets(lines, known.size + len(seal))
        self._known = _Known(size, events[-1].originator_version, sealed=True, unfinished=False)
        return offsets

    def sync(self) -> None:
        """Wait until what was written is on the disk.

        Raises:
            WriteError: It is not; nothing of it was kept, and the file is opened anew next time.
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
        fd, undo = self._fd, self._undo
        if fd is not None and undo is not None:
            if undo == 0:  # it was created by this append
                with contextlib.suppress(OSError):
                    disk.remove(self.path)
                self._identity = None
            else:
                self._cut(fd, undo)
        self.close()
        self._undo = None

    def _cut(self, fd: int, size: int) -> None:
        """Cut what was not saved; what cannot be cut is not believed here, and cut next time."""
        with contextlib.suppress(OSError):
            try:
                disk.truncate(fd, size)
            except OSError:
                status = disk.stat_fd(fd)
                self._doubt = _identity(status), size, status.st_size
            else:
                disk.sync_data(fd)

    def _undoubted(self, status: os.stat_result) -> int:
        """Return how much of the file may be believed: all, unless its end was not saved."""
        if self._doubt is not None:
            identity, start, end = self._doubt
            if (identity, end) == (_identity(status), status.st_size):
                return start
        return status.st_size

    def create(
        self,
        events: Sequence[StoredEvent],
        tracking: TrackingMark | None = None,
        *,
        base: int | None = None,
        prefix: tuple[int, int, int] | None = None,
    ) -> list[int]:
        """Create the file with *events* in it; return the offsets of their lines.

        The caller holds the lock of the folder and has seen that the file is not there. *prefix* is
        a descriptor, an offset and a length: bytes of another log that go between.

        Raises:
            WriteError: Nothing of it was kept.
        """
        lines = encoded(events, base=base, tracking=tracking)
        start = self._create(b"".join(lines), prefix)
        offsets, size = _offsets(lines, start)
        last = events[-1].originator_version
        self._known = _Known(size, last, sealed=True, unfinished=False)
        self._undo = 0
        return offsets

    def _create(self, body: bytes, prefix: tuple[int, int, int] | None = None) -> int:
        """Put the file in place, locked, in one step; return where *body* starts in it."""
        head = lines_.encode_header(str(self.conversation), _now())
        fd, temporary = None, self.path
        try:
            name = f".{self.conversation}.{disk.random_bytes(6).hex()}.tmp"
            temporary = self.path.with_name(name)
            fd = disk.create(temporary)
            identity = _identity(disk.stat_fd(fd))
            self.locking_works = locks.acquire(fd, temporary)
            start = self._fill(fd, head, body, prefix)
            if self.durable:
                disk.sync(fd)
            disk.rename(temporary, self.path)
            if self.durable:
                disk.sync_folder(self.path.parent)
        except BaseException as error:
            if fd is not None:
                _discard(fd, temporary, self.path)
            if isinstance(error, OSError):
                raise WriteError(self.path, error) from error
            raise
        self._adopt(fd, identity)
        return start

    def fork_from(
        self, parent: LogFile, cut: int, extra: Sequence[StoredEvent], *, base: int | None
    ) -> None:
        """Create the file with the bytes of *parent* up to *cut*, but its own header.

        Raises:
            WriteError: Nothing of it was kept.
        """
        with parent._reading() as (fd, size):
            start = search.header_end(fd, size)
            self.create(extra, base=base, prefix=(fd, start, max(cut - start, 0)))

    def rewrite_with(self, events: Sequence[StoredEvent]) -> None:
        """Write a derived file anew, with *events* at their places among those that are there.

        Raises:
            VersionConflictError: A version is there already.
            WriteError: The file is as it was.
        """
        lines = {line.version: (line.version, line.topic, line.state) for line in self.read()}
        for event in events:
            if event.originator_version in lines:
                version = event.originator_version
                raise VersionConflictError(self.conversation, version, version, path=self.path)
            lines[event.originator_version] = (event.originator_version, event.topic, event.state)
        self.forget()
        body = b"".join(lines_.encode(*lines[version]) for version in sorted(lines))
        self._create(body)

    def close(self) -> None:
        """Close the file and forget what was known of it, but not which file it was."""
        fd, self._fd, self._known = self._fd, None, None
        if fd is not None:
            disk.close(fd)

    def forget(self) -> None:
        """Close the file and forget which it was: whatever is there next time is fine."""
        self.close()
        self._identity = None

    @staticmethod
    def _fill(fd: int, head: bytes, tail: bytes, prefix: tuple[int, int, int] | None) -> int:
        """Write the first bytes of a new file; return where *tail* starts."""
        if prefix is None:
            disk.write_all(fd, head + tail)
            return len(head)
        source, offset, length = prefix
        disk.write_all(fd, head)
        disk.copy(source, fd, length, offset)
        seal = b""
        if length and disk.read(source, 1, offset + length - 1) != b"\n":
            seal = b"\n"
        disk.write_all(fd, seal + tail)
        return len(head) + length + len(seal)

    def _open(self) -> int:
        try:
            fd = disk.open_append(self.path)
        except FileNotFoundError:
            if self._identity is not None:
                raise LogReplacedError(self.path) from None
            raise LogMissingError(self.path) from None
        try:
            identity = _identity(disk.stat_fd(fd))
            if self._identity not in (None, identity):
                self._identity = None  # it is another file: said once, then believed
                raise LogReplacedError(self.path)
            if self.durable:  # whoever made it may not have lived to do so
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
            status = disk.stat(self._path_text)
        except FileNotFoundError:
            self.close()
            raise LogReplacedError(self.path) from None
        if (status.st_dev, status.st_ino) != self._identity:
            self.close()
            self._identity = None
            raise LogReplacedError(self.path)
        size = status.st_size
        if self._doubt is not None:
            size = self._undoubted(status)
            if size < status.st_size:
                disk.truncate(fd, size)
            self._doubt = None
        known = self._known
        if known is None or known.size != size:
            self._check_header(fd, _identity(status))
            self._known = self._learn(fd, size, known)

    @staticmethod
    def _learn(fd: int, size: int, known: _Known | None) -> _Known:
        scan = None
        if known is not None and known.sealed and not known.unfinished and known.size < size:
            scan = search.scan(fd, known.size, size, previous=known.last)
        if scan is None or not (scan.clean and scan.lines):
            scan = search.from_end(fd, size, limit=1)
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


def _now() -> str:
    now = datetime.now(UTC)
    return now.strftime("%Y-%m-%dT%H:%M:%S.%fZ")


def _identity(status: os.stat_result) -> Identity:
    return status.st_dev, status.st_ino


def _discard(fd: int, *paths: Path) -> None:
    """Remove whichever of *paths* is the open file, and close it."""
    for path in paths:
        with contextlib.suppress(OSError):
            if _identity(disk.stat(path)) == _identity(disk.stat_fd(fd)):
                disk.remove(path)
    disk.close(fd)


def _offsets(lines: Sequence[bytes], start: int) -> tuple[list[int], int]:
    offsets = []
    for line in lines:
        offsets.append(start)
        start += len(line)
    return offsets, start
