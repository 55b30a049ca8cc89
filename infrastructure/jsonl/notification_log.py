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
    BrokenOrderError,
    NotificationFile,
    Record,
    packed,
)
from infrastructure.jsonl.unnumbered import NewRecords, Unnumbered, try_locks

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from pathlib import Path

    from infrastructure.jsonl.line import Line
    from infrastructure.jsonl.log_file import LogFile
    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.store import Store

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
        self.file = NotificationFile(store.path / ".index" / "notifications")
        self._unnumbered = Unnumbered(store, self.file)
        self.is_ready = False

    def close(self) -> None:
        """Close the file; the next use reads everything again."""
        self.file.close()
        self._start_over()

    def _start_over(self) -> None:
        self._unnumbered.forget()
        self.is_ready = False

    def be_there(self) -> None:
        """Have the file open for a save, which needs no other log; build it if there is none.

        Raises:
            ReadError: A log or the file cannot be read.
        """
        try:
            self._load()
            is_there = self.file.identity is not None
        except (BrokenOrderError, OSError):
            is_there = False
        if not is_there:
            self.catch_up()

    def _load(self) -> None:
        if self.file.load():
            self._start_over()

    # -- reading ---------------------------------------------------------------------------------

    def count(self) -> int:
        """Return how many records there are, which is the highest notification id."""
        self._be_current()
        return self.file.count

    def select(self, start: int, stop: int | None) -> Iterator[tuple[int, Record, Line]]:
        """Yield id, record and line for the ids from *start* to *stop*; deleted logs are skipped.

        Raises:
            ReadError: A log or the file cannot be read.
        """
        self._be_current()
        repaired = False
        start = max(start, 1)
        while start <= (last := self.file.count) and (stop is None or start <= stop):
            end = min(last, start + _READ_AT_ONCE - 1, last if stop is None else stop)
            if self._store.durable:
                self.file.make_safe(end)
            try:
                records = list(self.file.records(start, end))
                found = list(_with_lines(records, start, self._store, strict=not repaired))
            except BrokenOrderError:
                self._rebuild()
                repaired = True
                continue
            except OSError as error:
                raise ReadError(self.file.path, error) from error
            yield from found
            start = end + 1

    def versions_before(self, number: int) -> dict[bytes, int]:
        """Return the last version of each conversation among the ids below *number*.

        Raises:
            ReadError: A log or the file cannot be read.
        """
        self._be_current()
        try:
            records = list(self.file.records(1, number - 1)) if number > 1 else []
        except BrokenOrderError:
            self._rebuild()
            records = list(self.file.records(1, number - 1))
        return {record.conversation: record.version for record in records}

    def _be_current(self) -> None:
        try:
            if not self.is_ready:
                self.catch_up()
            elif self.file.has_changed():
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
            if behind and self.file.identity is None and not self.file.kept:
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
                with self._locked():
                    self._load()
                    added = self._unnumbered.of_all(free)
                    self.file.append([record for records in added.values() for record in records])
            except OSError as error:
                if error.errno not in READ_ONLY:
                    raise
                added = self._keep(free)
            for log, state in behind:
                if log.key in added:
                    self._unnumbered.are_none_of(log, state)

    def _keep(self, logs: Sequence[LogFile]) -> dict[bytes, list[Record]]:
        """Keep in memory what cannot be written; return it."""
        found = self._unnumbered.of_all(logs)
        self.file.keep([record for records in found.values() for record in records])
        return found

    def _rebuild(self) -> None:
        """Build the order again, under a new epoch, from the logs alone.

        If another process has done so meanwhile, its order is the order.
        """
        broken = self.file.identity
        try:
            with self._locked():
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
            self.close()
            self._keep(self._store.logs())
        self.is_ready = True

    def _write_anew(self) -> None:
        self.close()
        with self.file.written_anew() as fd:
            for log in self._store.logs():
                with try_locks([log]) as free, contextlib.suppress(StoreError):
                    for one in free:
                        disk.write_all(fd, b"".join(map(packed, self._unnumbered.of(one))))

    # -- writing ---------------------------------------------------------------------------------

    def add(self, saves: Sequence[NewRecords], records: list[Record]) -> list[int]:
        """Add the *records* of one save, whose locks are held; return their ids.

        The events are durable already: nothing here may say that they are not. What cannot be
        written is missing from the file until the next comparison, and then the answer is empty.
        """
        if len(saves) == 1 and (numbers := self._add_next(saves[0])):
            return numbers
        try:
            for _ in range(2):
                try:
                    with self._locked():
                        self._load()
                        return self._add(saves, records)
                except BrokenOrderError:
                    self._rebuild()
        except (OSError, StoreError):
            self.close()
        return []

    def _add_next(self, save: NewRecords) -> list[int]:
        """Add the events of a save to one log that go on from the last one that the file has.

        The lock of the log is held, and it is enough: only its holder writes records of that log.
        The answer is empty where it is not that simple.
        """
        try:
            last = self.file.last_of(save.log.key)
            if last is None or last.version != save.previous:
                return []
            first = self.file.append(save.records)
        except (OSError, BrokenOrderError):
            return []
        return list(range(first, first + len(save.records)))

    def _add(self, saves: Sequence[NewRecords], records: list[Record]) -> list[int]:
        missing: list[Record] = []
        for save in saves:
            last = self.file.last_of(save.log.key)
            if save.previous is not None and (last is None or last.version < save.previous):
                unnumbered, first = self._unnumbered.of(save.log), save.records[0].version
                missing += [record for record in unnumbered if record.version < first]
        unknown = [record for record in records if not self._knows(record)]
        first_id = self.file.append(missing + unknown) + len(missing)
        # What is known already is of another log of that name, or was written in spite of an error.
        return list(range(first_id, first_id + len(unknown))) if unknown == records else []

    def _knows(self, record: Record) -> bool:
        last = self.file.last_of(record.conversation)
        return last is not None and record.version <= last.version

    @contextlib.contextmanager
    def _locked(self) -> Iterator[None]:
        """Hold the lock of the folder, which may be deleted, and made again, at any time."""
        folder = self.file.path.parent
        while True:
            disk.make_inner_folder(folder)
            fd = disk.open_folder(folder)
            try:
                locks.acquire(fd, folder)
                if identity_of(disk.stat_fd(fd)) == _identity(folder):
                    yield
                    return
            finally:
                disk.close(fd)


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
