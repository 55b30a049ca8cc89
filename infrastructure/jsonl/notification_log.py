"""One order over the events of all logs: a derived file that can be deleted at any time.

Records are appended after the log, under its lock, so they rise. The lock of the ``.index`` folder
is taken only to add what others left out, or to build the file again. Saving does not sync, because
what is missing is found by comparing the ends of the logs with the file. Reading does, because an
id that a reader has acted on must never mean another event. A file that does not fit the logs, or
ends in half a record, is built again, with a new epoch.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final
from uuid import UUID

from infrastructure.errors import LogMissingError, NewerFormatError, ReadError, StoreError
from infrastructure.jsonl import disk, locks
from infrastructure.jsonl.log_reader import identity_of
from infrastructure.jsonl.notification_file import (
    READ_ONLY,
    SIZE,
    BrokenOrderError,
    NotificationFile,
    Record,
    packed,
    unpacked,
)
from infrastructure.jsonl.unnumbered import Unnumbered, try_locks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from infrastructure.jsonl.line import Line
    from infrastructure.jsonl.log_file import LogFile
    from infrastructure.jsonl.store import Store
    from infrastructure.jsonl.unnumbered import NewRecords, State

_LOCKED_AT_ONCE: Final = 128
_READ_AT_ONCE: Final = 256


class NotificationLog:
    """The order of a store's events. Not thread-safe: its `Store` holds a lock.

    Attributes:
        file: Where it is written.
        is_ready: Whether the file was compared with the logs.
    """

    def __init__(self, store: Store) -> None:
        self._store = store
        self._folder = _IndexFolder(store.path / ".index")
        self.file = NotificationFile(self._folder.path / "notifications")
        self._unnumbered = Unnumbered(store, self.file)
        self._forget()

    def _forget(self) -> None:
        self.file.close()
        self._start_over()

    def _start_over(self) -> None:
        self._unnumbered.forget()
        self._unwritten = b""  # packed records: the store is read-only
        self.is_ready = False

    def _load(self) -> None:
        if self.file.load():
            self._start_over()

    def close(self) -> None:
        """Close the files; the next use reads everything again."""
        self._forget()
        self._folder.close()

    # -- reading ---------------------------------------------------------------------------------

    def count(self) -> int:
        """Return how many records there are, which is the highest notification id."""
        self._be_current()
        return self.known_count

    @property
    def known_count(self) -> int:
        """How many records are known here, without a look at the disk."""
        return self.file.count + len(self._unwritten) // SIZE

    def select(self, start: int, stop: int | None) -> Iterator[tuple[int, Record, Line]]:
        """Yield id, record and line for the ids from *start* to *stop*; deleted logs are skipped.

        Raises:
            ReadError: A log or the file cannot be read.
        """
        self._be_current()
        repaired = False
        start = max(start, 1)
        while start <= self.known_count and (stop is None or start <= stop):
            last = self.known_count if stop is None else min(self.known_count, stop)
            end = min(last, start + _READ_AT_ONCE - 1)
            if self._store.durable:
                self.file.make_safe(end)
            try:
                records = list(unpacked(self._packed(start, end)))
                found = list(_with_lines(records, start, self._store, strict=not repaired))
            except BrokenOrderError:
                self._rebuild()
                repaired = True
                continue
            except OSError as error:
                raise ReadError(self.file.path, error) from error
            yield from found
            start = end + 1

    def _packed(self, first: int, last: int) -> bytes:
        """Return the records with the ids from *first* to *last*, also those of no file."""
        written = self.file.count
        start, end = max(first - 1 - written, 0), max(last - written, 0)
        return self.file.records(first, last) + self._unwritten[start * SIZE : end * SIZE]

    def _be_current(self) -> None:
        try:
            if not self.is_ready:
                self.catch_up()
            elif self.file.has_changed():
                if self._unwritten:
                    self._forget()
                self._load()
                if not self.is_ready:  # it is another file
                    self.catch_up()
        except BrokenOrderError:
            self._rebuild()
        except OSError as error:
            raise ReadError(self.file.path, error) from error

    # -- what the logs say -----------------------------------------------------------------------

    def catch_up(self) -> None:
        """Find the events that the file does not have.

        They are added to the file in the order of file names, then versions. Where the store is
        read-only they are kept in memory, in the same order. A log whose lock another process has
        is left to it.
        """
        try:
            self._load()
            behind = self._unnumbered.logs()
            self.is_ready = True
            if behind and not self.file.is_open and not self._unwritten:
                self._rebuild()
                return
            self._add_all_missing(behind)
        except BrokenOrderError:
            self._rebuild()
        except OSError as error:
            raise ReadError(self.file.path, error) from error

    def _add_all_missing(self, behind: Sequence[tuple[LogFile, State]]) -> None:
        for first in range(0, len(behind), _LOCKED_AT_ONCE):
            self._add_missing(behind[first : first + _LOCKED_AT_ONCE])

    def _add_missing(self, behind: Sequence[tuple[LogFile, State]]) -> None:
        with try_locks([log for log, _ in behind]) as free:
            try:
                with self._folder.locked():
                    self._load()
                    self.file.require_whole()
                    added = self._unnumbered.of_all(free)
                    self.file.append([record for records in added.values() for record in records])
            except OSError as error:
                if error.errno not in READ_ONLY:
                    raise
                added = self._keep(free)
            for log, state in behind:
                if log.conversation.bytes in added:
                    self._unnumbered.are_none_of(log, state)

    def _keep(self, logs: Sequence[LogFile]) -> dict[bytes, list[Record]]:
        """Keep in memory what cannot be written; return it."""
        found = self._unnumbered.of_all(logs)
        for key, records in found.items():
            self._unwritten += b"".join(map(packed, records))
            if records:
                self.file.last[key] = records[-1]
        return found

    def _rebuild(self) -> None:
        """Build the order again, under a new epoch, from the logs alone.

        If another process has done so meanwhile, its order is the order.
        """
        broken = self.file.identity
        try:
            with self._folder.locked():
                is_done = False
                if _identity(self.file.path) not in (None, broken):
                    with contextlib.suppress(BrokenOrderError):
                        self._load()
                        is_done = True
                if not is_done:
                    self._write_anew()
                    self._load()
            if is_done:
                self.catch_up()
            else:  # a save in the meantime has written to the old file
                with contextlib.suppress(BrokenOrderError):
                    self._add_all_missing(self._unnumbered.logs())
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise ReadError(self.file.path, error) from error
            self._forget()
            self._keep(self._store.logs())
        self.is_ready = True

    def _write_anew(self) -> None:
        self._forget()
        with self.file.written_anew() as fd:
            for log in self._store.logs():
                with try_locks([log]) as free, contextlib.suppress(StoreError):
                    for one in free:
                        disk.write_all(fd, b"".join(map(packed, self._unnumbered.of(one))))

    # -- writing ---------------------------------------------------------------------------------

    def add(self, saves: Sequence[NewRecords]) -> list[int]:
        """Add the events of one save, whose locks are held; return their ids, in order.

        The events are durable already: nothing here may say that they are not. What cannot be
        written is missing from the file until the next comparison, and then the answer is empty.
        """
        if not saves:
            return []
        if len(saves) == 1 and (numbers := self._add_next(saves[0])):
            return numbers
        try:
            for _ in range(2):
                try:
                    with self._folder.locked():
                        self._load()
                        self.file.require_whole()
                        return self._add(saves)
                except BrokenOrderError:
                    self._rebuild()
        except (OSError, StoreError):
            self._forget()
        return []

    def _add_next(self, save: NewRecords) -> list[int]:
        """Add the events of a save to one log that go on from the last one that the file has.

        The lock of the log is held, and it is enough: only its holder writes records of that log.
        The answer is empty where it is not that simple.
        """
        last = self.file.last.get(save.log.conversation.bytes)
        if last is None or last.version != save.previous or not self.file.is_open:
            return []
        try:
            first = self.file.append(save.records)
            if not self.file.is_in_place():  # it was built again meanwhile
                return []
        except (OSError, BrokenOrderError):
            return []
        return list(range(first, first + len(save.records)))

    def _add(self, saves: Sequence[NewRecords]) -> list[int]:
        early: list[Record] = []
        late: list[Record] = []
        known: set[Record] = set()
        for log, previous, records in saves:
            last = self.file.last.get(log.conversation.bytes)
            if previous is not None and (last is None or last.version < previous):
                first = records[0].version
                early += [record for record in self._unnumbered.of(log) if record.version < first]
            for record in records:
                if last is not None and record.version <= last.version:
                    known.add(record)
                else:
                    late.append(record)
        first_id = self.file.append(early + late) + len(early)
        ids = {record: first_id + place for place, record in enumerate(late)}
        if known:
            written = unpacked(self._packed(1, self.file.count))
            ids |= {record: id_ for id_, record in enumerate(written, 1) if record in known}
        found = [ids.get(record) for save in saves for record in save.records]
        return [number for number in found if number is not None] if all(found) else []


class _IndexFolder:
    """The folder ``.index`` and its lock."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._fd: int | None = None
        self._identity = (0, 0)

    def close(self) -> None:
        if self._fd is not None:
            disk.close(self._fd)
            self._fd = None

    @contextlib.contextmanager
    def locked(self) -> Iterator[None]:
        """Hold the lock of the folder, which may be deleted, and made again, at any time."""
        while True:
            if self._fd is None:
                disk.make_inner_folder(self.path)
                self._fd = disk.open_folder(self.path)
                self._identity = identity_of(disk.stat_fd(self._fd))
            is_locked = locks.acquire(self._fd, self.path)
            if self._identity == _identity(self.path):
                break
            self.close()
        try:
            yield
        finally:
            if is_locked and self._fd is not None:
                disk.unlock(self._fd)


def _identity(path: Path) -> tuple[int, int] | None:
    try:
        return identity_of(disk.stat(path))
    except FileNotFoundError:
        return None


def _with_lines(
    records: Sequence[Record], first: int, store: Store, *, strict: bool
) -> Iterator[tuple[int, Record, Line]]:
    """Yield *records*, whose ids begin with *first*, with their ids and lines; deleted are skipped.

    Raises:
        BrokenOrderError: A log is there, but not the line of a record, if that is asked for.
    """
    number = first
    for run in _runs(records):
        log = store.log(UUID(bytes=run[0].conversation))
        with contextlib.suppress(LogMissingError, NewerFormatError):
            lines = log.lines_at([(record.offset, record.version) for record in run])
            for place, (record, line) in enumerate(zip(run, lines, strict=True), number):
                if line is not None:
                    yield place, record, line
                elif strict:
                    raise BrokenOrderError
        number += len(run)


def _runs(records: Sequence[Record]) -> Iterator[list[Record]]:
    """Yield *records* in pieces that can be read from one log, forwards."""
    run: list[Record] = []
    for record in records:
        if run and (record.conversation != run[-1].conversation or record.offset <= run[-1].offset):
            yield run
            run = []
        run.append(record)
    if run:
        yield run
