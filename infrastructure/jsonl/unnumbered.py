"""The events of the logs that have no notification id yet."""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING

import msgspec

from infrastructure.errors import NewerFormatError, ReadError, StoreError
from infrastructure.jsonl import disk
from infrastructure.jsonl.log_reader import state_of
from infrastructure.jsonl.notification_file import BrokenOrderError, NotificationFile, Record

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from infrastructure.jsonl.log_file import LogFile
    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.store import Store


class NewRecords(msgspec.Struct, frozen=True):
    """Events of one log that are not in the order yet, and the last version before them."""

    log: LogFile
    previous: int | None
    records: list[Record]


class Unnumbered:
    """What the logs of *store* have that *file* has not.

    A log is not read again as long as it is as it was when it was compared.
    """

    def __init__(self, store: Store, file: NotificationFile) -> None:
        self._store = store
        self._file = file
        self.forget()

    def forget(self) -> None:
        """Compare each log again."""
        self._compared: dict[bytes, State] = {}

    def are_none_of(self, log: LogFile, state: State) -> None:
        """Remember that *log* has none, as long as its state is *state*."""
        self._compared[log.key] = state

    def logs(self) -> list[tuple[LogFile, State]]:
        """Return the logs, by name, that may have events that are not in the file."""
        self._file.know_all()
        behind = []
        for conversation, status in self._store.entries():
            key = conversation.bytes
            state = state_of(status)
            if self._compared.get(key) == state:
                continue
            log = self._store.log(conversation)
            with contextlib.suppress(StoreError):
                if self._is_behind(log, self._file.last_of(key), status.st_size):
                    behind.append((log, state))
                else:
                    self.are_none_of(log, state)
        return behind

    def _is_behind(self, log: LogFile, last: Record | None, size: int) -> bool:
        if last is None:
            return True
        (line,) = log.lines_at([(last.offset, last.version)])
        if line is None:
            raise BrokenOrderError
        return size > line.end + 1

    def of(self, log: LogFile) -> list[Record]:
        """Return the records that are missing of *log*."""
        key = log.key
        last = self._file.last_of(key)
        try:
            lines = log.read(gt=last.version if last else None)
        except NewerFormatError:
            return []
        return [Record(key, line.offset, line.version) for line in lines]

    def of_all(self, logs: Sequence[LogFile]) -> dict[bytes, list[Record]]:
        """Return what is missing of each log; one that cannot be read must not hide the others."""
        found = {}
        for log in logs:
            with contextlib.suppress(ReadError):
                found[log.key] = self.of(log)
        return found


@contextlib.contextmanager
def try_locks(logs: Sequence[LogFile]) -> Iterator[list[LogFile]]:
    """Hold the locks of those of *logs* that no other process holds."""
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
