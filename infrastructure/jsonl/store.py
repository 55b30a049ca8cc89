"""A folder of logs: which there are, saving to several at once, forking, looking into one."""

from __future__ import annotations

import contextlib
import os
import re
import threading
from operator import itemgetter
from typing import TYPE_CHECKING, Final
from uuid import UUID

from infrastructure.errors import (
    InvalidIdError,
    ReadError,
    StoreError,
    WriteError,
)
from infrastructure.jsonl import disk, locks
from infrastructure.jsonl.log_file import LogFile
from infrastructure.jsonl.log_reader import state_of
from infrastructure.jsonl.notification_log import NotificationLog
from infrastructure.jsonl.tracking import TrackingLog

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence
    from pathlib import Path

    from eventsourcing.persistence import StoredEvent, Tracking

    from infrastructure.jsonl.line import TrackingMark
    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.notification_file import Record
    from infrastructure.jsonl.reader import Scan
    from infrastructure.jsonl.unnumbered import NewRecords

SUFFIX: Final = ".jsonl"
TRASH: Final = ".trash"
SNAPSHOTS: Final = ".snapshots"
_OPEN_FILES: Final = 64
LOG_NAME: Final = "([0-9a-f]{8}(?:-[0-9a-f]{4}){3}-[0-9a-f]{12})" + re.escape(SUFFIX)
"""What the name of a log looks like; the group is the id of its conversation."""
_NAME: Final = re.compile(LOG_NAME)


class Store:
    """A folder of logs. Making one touches nothing; the folder appears with the first event.

    Thread-safe within a process; several stores, and processes, on one folder are fine.

    Args:
        path: The folder.
        durable: Whether a save waits for the disk.
        sparse: Versions are missing in its logs, as a rule: they are derived.

    Attributes:
        locking_works: False once the file system turned out to have no locks.
        listeners: Set whenever this store has saved something.
    """

    def __init__(self, path: Path, *, durable: bool = True, sparse: bool = False) -> None:
        self.path = path
        self.durable = durable
        self.sparse = sparse
        self.locking_works = True
        self.lock = threading.RLock()
        self.listeners: set[threading.Event] = set()
        self.notifications = NotificationLog(self)
        self.tracking = TrackingLog(self)
        self._logs: dict[UUID | str, LogFile] = {}

    def close(self) -> None:
        """Close every file. The store can still be used: it opens them again."""
        with self.lock:
            for log in self._logs.values():
                log.close()
            self._logs.clear()
            self.notifications.close()

    # -- what there is ---------------------------------------------------------------------------

    def path_of(self, conversation: UUID) -> Path:
        """Return the path of a conversation's log, whether it exists or not."""
        return self.path / f"{conversation}{SUFFIX}"

    def log(self, conversation: UUID) -> LogFile:
        """Return the log of *conversation*, whether it exists or not."""
        log = self._logs.get(conversation)
        if log is None:
            log = LogFile(self.path_of(conversation), conversation, durable=self.durable)
            log.sparse = self.sparse
            self._logs[conversation] = log
        return log

    def parts(self, events: Iterable[StoredEvent]) -> list[tuple[LogFile, list[StoredEvent]]]:
        """Return the logs that *events* go to, by id, each with its own."""
        parts: dict[LogFile, list[StoredEvent]] = {}
        for event in events:
            id_ = event.originator_id
            log = self._logs.get(id_) or self.log(as_uuid(id_))
            parts.setdefault(log, []).append(event)
        return sorted(parts.items())

    def ids(self) -> list[UUID]:
        """Return the ids of all logs, newest first (a UUIDv7 begins with its time)."""
        return [UUID(text) for text, _ in reversed(self._named())]

    def entries(self) -> Iterator[tuple[UUID, os.stat_result]]:
        """Yield the ids of all logs by name, each with the status of its file."""
        for text, entry in self._named():
            with contextlib.suppress(FileNotFoundError):
                yield UUID(text), entry.stat(follow_symlinks=False)

    def states(self, ids: Iterable[str] | None = None) -> dict[str, State]:
        """Return the states of the logs of *ids*, or of all, by id: the cheapest look at them."""
        folder, suffix = os.fsencode(self.path), SUFFIX.encode()
        names = self._names() if ids is None else ids
        found = {}
        for name in names:
            with contextlib.suppress(FileNotFoundError):
                found[name] = state_of(disk.stat(b"%b/%b%b" % (folder, name.encode(), suffix)))
        return found

    def logs(self) -> list[LogFile]:
        """Return all logs by name."""
        return [self.log(UUID(text)) for text, _ in self._named()]

    def _names(self) -> list[str]:
        """Return the ids of all logs, in any order."""
        try:
            found = map(_NAME.fullmatch, disk.names(self.path))
            return [name[1] for name in found if name]
        except OSError as error:
            raise ReadError(self.path, error) from error

    def _named(self) -> list[tuple[str, os.DirEntry[str]]]:
        try:
            named = ((_NAME.fullmatch(entry.name), entry) for entry in disk.files(self.path))
            found = [(name[1], entry) for name, entry in named if name]
        except OSError as error:
            raise ReadError(self.path, error) from error
        return sorted(found, key=itemgetter(0))

    def inspect(self, conversation: UUID) -> Scan:
        """Read all of a log and say what is in it.

        Raises:
            LogMissingError: There is no such log.
        """
        with self.lock:
            return self.log(conversation).scan()

    # -- saving ----------------------------------------------------------------------------------

    def insert(
        self,
        events: Sequence[StoredEvent],
        tracking: Tracking | None = None,
        *,
        number: bool = False,
    ) -> list[int]:
        """Save *events*, of one conversation or several: all or nothing.

        Returns:
            Their notification ids, if they are to be numbered. Nothing if their order could not be
            written down: the next reader makes that good.

        Raises:
            IntegrityError: A version, or the tracking position, is not new; nothing was written.
            WriteError: Nothing of it was kept.
        """
        with self.lock:
            if number and self.notifications.file.identity is None:
                with contextlib.suppress(StoreError):  # derived: no reason not to save
                    self.notifications.be_there()
            numbers = self._save(events, tracking, number=number)
            if self.listeners:
                self.announce()
        return numbers

    def has_news(self, *, catch_up: bool = False) -> bool:
        """Return whether another process saved something since notifications were last read.

        Args:
            catch_up: Compare the logs themselves with the order, not only the order's size.
        """
        with self.lock:
            known = self.notifications.file.count
            if catch_up:
                self.notifications.catch_up()
            return self.notifications.file.count != known or self.notifications.file.has_changed()

    def announce(self) -> None:
        """Wake who listens: something was saved."""
        for listener in tuple(self.listeners):
            listener.set()

    def _save(
        self, events: Sequence[StoredEvent], tracking: Tracking | None, *, number: bool
    ) -> list[int]:
        """Save; if asked to, *number* the events while the locks of their logs are held."""
        parts = self.parts(events)
        if not parts:
            if tracking is not None:
                with self.tracking.advancing(tracking):
                    pass
            return []
        closed = [log for log, _ in parts if not log.is_open]
        if not closed:
            return self._save_to(parts, events, tracking, number=number)
        try:
            if all(log.exists() for log in closed):
                return self._save_to(parts, events, tracking, number=number)
            with self.folder_locked():
                return self._save_to(parts, events, tracking, number=number, creating=True)
        finally:
            self.limit_open_files(closed)

    def _save_to(
        self,
        parts: Sequence[tuple[LogFile, Sequence[StoredEvent]]],
        events: Sequence[StoredEvent],
        tracking: Tracking | None,
        *,
        number: bool,
        creating: bool = False,
    ) -> list[int]:
        """Save *parts*, which are the *events* by log; *creating*: some of the logs are missing."""
        try:
            for log, _ in parts:
                log.begin(may_be_missing=creating)
            for log, added in parts:
                log.check(added)
            saves = self._write(parts, tracking)
            if not number:
                return []
            in_order = saves[0].records if len(saves) == 1 else _in_order(saves, events)
            return self.notifications.add(saves, in_order)
        finally:
            for log, _ in parts:
                log.end()
                self.locking_works = self.locking_works and log.locking_works

    def _write(
        self, parts: Sequence[tuple[LogFile, Sequence[StoredEvent]]], tracking: Tracking | None
    ) -> list[NewRecords]:
        """Write to each log, which is locked, and the position of *tracking*, or nothing at all."""
        if tracking is None:
            return _written(parts, None)
        last, added = parts[-1]
        mark = (tracking.application_name, tracking.notification_id)
        version = added[-1].originator_version
        with self.tracking.advancing(tracking, last.conversation, version):
            return _written(parts, mark)

    @contextlib.contextmanager
    def folder_locked(self) -> Iterator[None]:
        """Hold the lock of the folder: no other process creates a log in it."""
        try:
            disk.make_folder(self.path, durable=self.durable)
            fd = disk.open_folder(self.path)
        except OSError as error:
            raise WriteError(self.path, error) from error
        try:
            if not locks.acquire(fd, self.path):
                self.locking_works = False
            yield
        finally:
            disk.close(fd)

    def limit_open_files(self, used: Sequence[LogFile]) -> None:
        """Keep the files that were opened last open, up to a bound."""
        for log in used:
            self._logs[log.conversation] = self._logs.pop(log.conversation)
        opened = [log for log in self._logs.values() if log.is_open]
        for log in opened[: max(len(opened) - _OPEN_FILES, 0)]:
            log.close()

    def let_go(self, log: LogFile) -> None:
        """Close *log*, and forget it: its file goes elsewhere."""
        log.close()
        del self._logs[log.conversation]


def as_uuid(originator_id: UUID | str) -> UUID:
    """Return an originator id as the UUID that it is.

    Raises:
        InvalidIdError: It is none.
    """
    if isinstance(originator_id, UUID):
        return originator_id
    try:
        return UUID(originator_id)
    except (ValueError, AttributeError, TypeError):
        raise InvalidIdError(f"{originator_id!r} is not a UUID; a store knows UUIDs only") from None


def _written(
    parts: Sequence[tuple[LogFile, Sequence[StoredEvent]]], mark: TrackingMark | None
) -> list[NewRecords]:
    """Write to all of the logs, which are locked, or to none; the last line gets the *mark*."""
    last, _ = parts[-1]
    try:
        saves = [log.append(added, mark if log is last else None) for log, added in parts]
        for log, _ in parts:
            log.sync()
    except BaseException:
        for log, _ in parts:
            log.roll_back()
        raise
    return saves


def _in_order(saves: Sequence[NewRecords], events: Sequence[StoredEvent]) -> list[Record]:
    """Return the records of *saves* in the order of their *events*."""
    queues = {save.log.conversation: iter(save.records) for save in saves}
    return [next(queues[as_uuid(event.originator_id)]) for event in events]
