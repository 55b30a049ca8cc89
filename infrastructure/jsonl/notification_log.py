"""One order over the events of all logs: a derived file that can be deleted at any time.

``.index/notifications`` is a header of 32 bytes (magic and a random epoch) and a record of 32 bytes
for every event: conversation, byte offset, version, CRC-32 of the first 28 bytes. The number of a
record, counted from 1, is the notification id. Records are appended after the log, under its lock,
so they rise; where the system has put them is what numbers them. Only who adds what others left
out, or builds the file anew, takes the lock of the ``.index`` folder. Saving does not sync, because
what is missing is found again by comparing the logs' ends with the file; reading does, because an
id that somebody acted upon must never mean something else. Whatever does not fit makes it built
anew, with a new epoch; so does half a record, for to cut it might cut those of others.
"""

from __future__ import annotations

import contextlib
import errno
import struct
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID
from zlib import crc32

from infrastructure.errors import LogMissingError, NewerFormatError, ReadError, StoreError
from infrastructure.jsonl import disk, locks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from infrastructure.jsonl.line import Line
    from infrastructure.jsonl.log_file import LogFile
    from infrastructure.jsonl.store import Store

MAGIC: Final = b"leftfold-index/1"
RECORD: Final = struct.Struct(">16sQII")
SIZE: Final = RECORD.size
_BODY: Final = struct.Struct(">16sQI")
_READ_ONLY: Final = frozenset({errno.EACCES, errno.EROFS, errno.EPERM})
_LOCKED_AT_ONCE: Final = 128
_PIECE: Final = SIZE << 15


_State = tuple[int, int, int]

Place = tuple[int, int]
"""Offset and version of an event."""


class Record(NamedTuple):
    """Where one event is."""

    conversation: bytes
    offset: int
    version: int


class Unindexed(NamedTuple):
    """Events of one log that are not in the order yet, and what was there before them."""

    log: LogFile
    previous: int | None
    records: Sequence[Record]


class _BrokenError(Exception):
    """The file does not fit the logs, or itself."""


class NotificationLog:
    """The order of a store's events. Not thread-safe: its `Store` holds a lock.

    Attributes:
        epoch: Changes whenever ids get a new meaning; read models compare it.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = store.path / ".index"
        self.path = self._folder / "notifications"
        self._path_text = str(self.path)
        self._fd: int | None = None
        self._identity = (0, 0)
        self._size = 0
        self._folder_fd: int | None = None
        self._folder_identity = (0, 0)
        self._forget()

    def _forget(self) -> None:
        self.epoch = b"\0" * 16
        self._file_count = 0
        self._synced_count = 0
        self._extra = b""  # records that could not be written: the store is read-only
        self._last: dict[bytes, Record] = {}
        self._compared: dict[bytes, _State] = {}
        self.is_ready = False
        if self._fd is not None:
            disk.close(self._fd)
            self._fd = None

    def close(self) -> None:
        """Close the files; the next use reads everything anew."""
        self._forget()
        if self._folder_fd is not None:
            disk.close(self._folder_fd)
            self._folder_fd = None

    # -- reading ---------------------------------------------------------------------------------

    def count(self) -> int:
        """Return how many records there are, which is the highest notification id."""
        self._be_current()
        return self.known_count

    def has_changed(self) -> bool:
        """Return whether another process wrote records: two system calls, nothing is read."""
        try:
            status = disk.stat(self.path)
        except OSError:
            return self._fd is not None
        if self._fd is None:
            return True
        same = (status.st_dev, status.st_ino) == self._identity
        return not same or status.st_size // SIZE - 1 != self._file_count

    def select(self, start: int, stop: int | None) -> Iterator[tuple[int, Record, Line]]:
        """Yield id, record and line for the ids from *start* to *stop*; deleted logs are skipped.

        Raises:
            ReadError: A log or the file cannot be read.
        """
        self._be_current()
        repaired = False
        start = max(start, 1)
        while start <= self.known_count and (stop is None or start <= stop):
            end = min(self.known_count, start + 255, stop if stop is not None else self.known_count)
            self._make_safe(end)
            try:
                found = list(self._lines(start, end, strict=not repaired))
            except _BrokenError:
                self._rebuild()
                repaired = True
                continue
            except OSError as error:
                raise ReadError(self.path, error) from error
            yield from found
            start = end + 1

    def _make_safe(self, end: int) -> None:
        """Sync the records up to *end*, which somebody is about to read."""
        if not self._store.durable or self._fd is None:
            return
        if self._synced_count < min(end, self._file_count):
            try:
                disk.sync_data(self._fd)
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise ReadError(self.path, error) from error
            self._synced_count = self._file_count

    def _lines(self, start: int, end: int, *, strict: bool) -> Iterator[tuple[int, Record, Line]]:
        records = list(_unpacked(self._bytes(start, end)))
        first = 0
        while first < len(records):
            after = first + 1
            while after < len(records) and _follows(records[after - 1], records[after]):
                after += 1
            run = records[first:after]
            log = self._store.log(UUID(bytes=run[0].conversation))
            with contextlib.suppress(LogMissingError, NewerFormatError):
                lines = log.lines_at([(record.offset, record.version) for record in run])
                for number, (record, line) in enumerate(zip(run, lines, strict=True)):
                    if line is not None:
                        yield start + first + number, record, line
                    elif strict:
                        raise _BrokenError
            first = after

    @property
    def known_count(self) -> int:
        """How many records are known here, without a look at the disk."""
        return self._file_count + len(self._extra) // SIZE

    def _bytes(self, start: int, end: int) -> bytes:
        """Return the records with the ids from *start* to *end*."""
        data = b""
        if start <= self._file_count and self._fd is not None:
            last = min(end, self._file_count)
            data = disk.read(self._fd, (last - start + 1) * SIZE, start * SIZE)
        first = max(start - 1 - self._file_count, 0)
        return data + self._extra[first * SIZE : max(end - self._file_count, 0) * SIZE]

    def _be_current(self) -> None:
        try:
            if not self.is_ready:
                self.catch_up()
            elif self.has_changed():
                if self._extra:
                    self._forget()
                self._load()
                if not self.is_ready:  # it is another file
                    self.catch_up()
        except _BrokenError:
            self._rebuild()
        except OSError as error:
            raise ReadError(self.path, error) from error

    # -- what the file says ----------------------------------------------------------------------

    def _load(self) -> None:
        """Open the file if need be, and read what others wrote.

        Raises:
            _BrokenError: The file is not what it should be.
        """
        try:
            status = disk.stat(self.path)
        except FileNotFoundError:
            self._forget()
            return
        if self._fd is None or (status.st_dev, status.st_ino) != self._identity:
            self._forget()
            disk.require_folder(self._folder)
            self._fd = _open(self.path)
            status = disk.stat_fd(self._fd)
            self._identity = status.st_dev, status.st_ino
            head = disk.read(self._fd, SIZE, 0)
            if head[:16] != MAGIC or len(head) != SIZE:
                raise _BrokenError
            self.epoch = head[16:]
        size = self._size = status.st_size
        if size // SIZE - 1 < self._file_count:
            raise _BrokenError
        while (position := (self._file_count + 1) * SIZE) + SIZE <= size:
            data = disk.read(self._fd, min(_PIECE, size - position), position)
            for record in _unpacked(data[: len(data) // SIZE * SIZE]):
                self._last[record.conversation] = record
                self._file_count += 1

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the folder, which may be made, deleted and made anew at any time."""
        while True:
            if self._folder_fd is None:
                disk.make_inner_folder(self._folder)
                self._folder_fd = disk.open_folder(self._folder)
                status = disk.stat_fd(self._folder_fd)
                self._folder_identity = status.st_dev, status.st_ino
            locked = locks.acquire(self._folder_fd, self._folder)
            if self._folder_identity == _identity(self._folder):
                break
            disk.close(self._folder_fd)
            self._folder_fd = None
        try:
            yield
        finally:
            if locked and self._folder_fd is not None:
                disk.unlock(self._folder_fd)

    def _load_for_writing(self) -> None:
        """Know the file as it is; the lock is held.

        Raises:
            _BrokenError: There is none, or it is not what it should be.
        """
        self._load()
        if self._fd is None or self._size % SIZE:
            raise _BrokenError

    # -- what the logs say -----------------------------------------------------------------------

    def catch_up(self) -> None:
        """Find the events that the file does not have.

        They are added to the file in the order of file names, then versions. Where the store is
        read-only they are kept in memory, in the same order. A log whose lock another process has
        is left to it.
        """
        try:
            self._load()
            behind = self._behind()
            self.is_ready = True
            if behind and self._fd is None and not self._extra:
                self._rebuild()
                return
            self._add_all_missing(behind)
        except _BrokenError:
            self._rebuild()
        except OSError as error:
            raise ReadError(self.path, error) from error

    def _behind(self) -> list[tuple[LogFile, _State]]:
        """Return the logs, by name, that may have events that are not in the file."""
        behind = []
        for conversation, status in self._store.entries():
            key = conversation.bytes
            state = (status.st_ino, status.st_size, status.st_mtime_ns)
            if self._compared.get(key) == state:
                continue
            log = self._store.log(conversation)
            with contextlib.suppress(StoreError):
                if self._is_behind(log, self._last.get(key), status.st_size):
                    behind.append((log, state))
                else:
                    self._compared[key] = state
        return behind

    def _is_behind(self, log: LogFile, last: Record | None, size: int) -> bool:
        if last is None:
            return True
        (line,) = log.lines_at([(last.offset, last.version)])
        if line is None:
            raise _BrokenError
        return size > line.end + 1

    def _missing(self, log: LogFile) -> list[Record]:
        key = log.conversation.bytes
        last = self._last.get(key)
        try:
            lines = log.read(gt=last.version if last else None)
        except NewerFormatError:
            return []
        return [Record(key, line.offset, line.version) for line in lines]

    def _add_all_missing(self, behind: Sequence[tuple[LogFile, _State]]) -> None:
        for first in range(0, len(behind), _LOCKED_AT_ONCE):
            self._add_missing(behind[first : first + _LOCKED_AT_ONCE])

    def _add_missing(self, behind: Sequence[tuple[LogFile, _State]]) -> None:
        with _try_locks([log for log, _ in behind]) as free:
            try:
                with self._locked():
                    self._load_for_writing()
                    compared = self._missing_of(free)
                    self._append([record for records in compared.values() for record in records])
            except OSError as error:
                if error.errno not in _READ_ONLY:
                    raise
                compared = self._keep(free)
            for log, state in behind:
                key = log.conversation.bytes
                if key in compared:
                    self._compared[key] = state

    def _missing_of(self, logs: Sequence[LogFile]) -> dict[bytes, list[Record]]:
        """Return what is missing of each log; one that cannot be read must not hide the others."""
        found = {}
        for log in logs:
            with contextlib.suppress(ReadError):
                found[log.conversation.bytes] = self._missing(log)
        return found

    def _keep(self, logs: Sequence[LogFile]) -> dict[bytes, list[Record]]:
        """Keep in memory what cannot be written; return it."""
        found = self._missing_of(logs)
        for key, records in found.items():
            self._extra += b"".join(map(_packed, records))
            if records:
                self._last[key] = records[-1]
        return found

    def _rebuild(self) -> None:
        """Build the order anew, under a new epoch, from the logs alone.

        If another process has done so meanwhile, its order is the order.
        """
        broken = self._identity if self._fd is not None else None
        try:
            with self._locked():
                is_done = _identity(self.path) not in (None, broken) and self._is_loaded()
                if not is_done:
                    self._write_anew()
                    self._load()
            if is_done:
                self.catch_up()
            else:  # who saved meanwhile has written to the old file
                with contextlib.suppress(_BrokenError):
                    self._add_all_missing(self._behind())
        except OSError as error:
            if error.errno not in _READ_ONLY:
                raise ReadError(self.path, error) from error
            self._forget()
            self._keep(self._store.logs())
        self.is_ready = True

    def _is_loaded(self) -> bool:
        try:
            self._load()
        except _BrokenError:
            return False
        return True

    def _write_anew(self) -> None:
        self._forget()
        temporary = self.path.with_name(f".notifications.{disk.random_bytes(6).hex()}.tmp")
        fd = disk.create(temporary)
        try:
            disk.write_all(fd, MAGIC + disk.random_bytes(16))
            for log in self._store.logs():
                with _try_locks([log]) as free, contextlib.suppress(StoreError):
                    for one in free:
                        disk.write_all(fd, b"".join(map(_packed, self._missing(one))))
            disk.rename(temporary, self.path)
        except BaseException:
            disk.remove(temporary)
            raise
        finally:
            disk.close(fd)

    # -- writing ---------------------------------------------------------------------------------

    def add_next(self, key: bytes, previous: int | None, places: Sequence[Place]) -> list[int]:
        """Add the events of a save to one log that go on from the last one that the file has.

        The lock of the log is held, and no other is needed: by it nobody else writes of that log.
        The answer is empty where it is not that simple; `add` is for that.
        """
        last = self._last.get(key)
        if last is None or last.version != previous or self._fd is None:
            return []
        records = [Record(key, offset, version) for offset, version in places]
        try:
            first = self._append(records)
            status = disk.stat(self._path_text)
        except (OSError, _BrokenError):
            return []
        if (status.st_dev, status.st_ino) != self._identity:  # it was built anew meanwhile
            return []
        return list(range(first, first + len(records)))

    def add(self, saves: Sequence[Unindexed]) -> dict[tuple[bytes, int], int]:
        """Add the events of one save, whose locks are held; return the ids by key and version.

        The events are durable already: nothing here may say that they are not. What cannot be
        written is missing from the file until the next comparison, and from the answer.
        """
        try:
            for _ in range(2):
                try:
                    with self._locked():
                        self._load_for_writing()
                        return self._add(saves)
                except _BrokenError:
                    self._rebuild()
        except (OSError, StoreError):
            self._forget()
        return {}

    def _add(self, saves: Sequence[Unindexed]) -> dict[tuple[bytes, int], int]:
        early: list[Record] = []
        late: list[Record] = []
        known: list[Record] = []
        for log, previous, records in saves:
            last = self._last.get(log.conversation.bytes)
            if previous is not None and (last is None or last.version < previous):
                first = records[0].version
                early += [record for record in self._missing(log) if record.version < first]
            for record in records:
                is_known = last is not None and record.version <= last.version
                (known if is_known else late).append(record)
        first_id = self._append(early + late) + len(early)
        ids = {(record[0], record[2]): first_id + i for i, record in enumerate(late)}
        if known:
            wanted = {(record.conversation, record.version) for record in known}
            for number, record in enumerate(_unpacked(self._bytes(1, self._file_count)), 1):
                if (record.conversation, record.version) in wanted:
                    ids[record.conversation, record.version] = number
        return ids

    def _append(self, records: Sequence[Record]) -> int:
        """Append *records* by one write; return the id of the first.

        Raises:
            _BrokenError: The file is not what it was.
        """
        if not records:
            return self._file_count + 1
        assert self._fd is not None
        disk.write_all(self._fd, b"".join(map(_packed, records)))
        last, torn = divmod(disk.position(self._fd), SIZE)
        first = last - len(records)
        if torn or first <= self._file_count:
            raise _BrokenError
        for record in records:
            self._last[record.conversation] = record
        if first == self._file_count + 1:  # else others came between; they are read next time
            self._file_count += len(records)
        return first


@contextlib.contextmanager
def _try_locks(logs: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Hold the locks of those of *logs* that nobody appends to just now."""
    held: list[int] = []
    free = []
    try:
        for log in logs:
            try:
                fd = disk.open_read(log.path)
            except OSError:
                continue
            held.append(fd)
            try:
                if disk.try_lock(fd):
                    free.append(log)
            except disk.LocksUnsupportedError:
                free.append(log)
        yield free
    finally:
        for fd in held:
            disk.close(fd)


def _open(path: Path) -> int:
    try:
        return disk.open_append(path)
    except OSError as error:
        if error.errno not in _READ_ONLY:
            raise
        return disk.open_read(path)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        status = disk.stat(path)
    except FileNotFoundError:
        return None
    return status.st_dev, status.st_ino


def _follows(before: Record, record: Record) -> bool:
    return record.conversation == before.conversation and record.offset > before.offset


def _packed(record: Record) -> bytes:
    body = _BODY.pack(*record)
    return body + crc32(body).to_bytes(4, "big")


def _unpacked(data: bytes) -> Iterator[Record]:
    view = memoryview(data)
    place = 0
    for conversation, offset, version, crc in RECORD.iter_unpack(data):
        if crc32(view[place : place + 28]) != crc:
            raise _BrokenError
        place += SIZE
        yield Record(conversation, offset, version)
