"""How far a reader of notifications has come: one durable file of positions for the whole store.

A position that belongs to events is written first, naming the last of them, and counts only if that
event is in its log and carries the same position; then, once the events are saved, unconditionally.
So events and position are atomic across a crash, with no log ever searched.
"""

from __future__ import annotations

import contextlib
import zlib
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import msgspec
from eventsourcing.persistence import IntegrityError

from infrastructure.errors import ReadError, StoreError, WriteError
from infrastructure.jsonl import disk, locks

if TYPE_CHECKING:
    from collections.abc import Iterator

    from eventsourcing.persistence import Tracking

    from infrastructure.jsonl.store import Store


class Position(NamedTuple):
    """A reader's name, the id it has come to, and the event that it depends on, if any."""

    name: str
    notification_id: int
    conversation: str | None = None
    version: int | None = None


class _Row(msgspec.Struct):
    position: Position
    crc: str


_decode: Final = msgspec.json.Decoder(_Row).decode


class TrackingLog:
    """The positions of a store's readers. Not thread-safe: its `Store` holds a lock."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.path = store.path / ".tracking.jsonl"
        self._fd: int | None = None
        self._forget()

    def _forget(self) -> None:
        self._read_to = 0
        self._positions: dict[str, int] = {}

    def close(self) -> None:
        """Close the file."""
        fd, self._fd = self._fd, None
        self._forget()
        if fd is not None:
            disk.close(fd)

    def position(self, name: str) -> int | None:
        """Return how far *name* has come, or None."""
        try:
            fd = disk.open_read(self.path)
        except FileNotFoundError:
            self.close()
            return None
        except OSError as error:
            raise ReadError(self.path, error) from error
        try:
            locks.acquire(fd, self.path)
            self._read(fd)
        except OSError as error:
            raise ReadError(self.path, error) from error
        finally:
            disk.close(fd)
        return self._positions.get(name)

    @contextlib.contextmanager
    def advancing(
        self, tracking: Tracking, conversation: UUID | None = None, version: int | None = None
    ) -> Iterator[None]:
        """Record *tracking*, together with the event that is saved inside the ``with``, if any.

        Raises:
            IntegrityError: The reader has come that far, or farther, already.
            WriteError: Nothing of it was kept.
        """
        fd = self._open()
        locked = False
        try:
            locked = locks.acquire(fd, self.path)
            self._read(fd)
            known = self._positions.get(tracking.application_name)
            if known is not None and known >= tracking.notification_id:
                raise IntegrityError(
                    f"{tracking.application_name!r} has come to {known}, "
                    f"so {tracking.notification_id} is not new"
                )
            position = Position(tracking.application_name, tracking.notification_id)
            if conversation is None:
                self._write(fd, position, sync=True)
                yield
                return
            size = self._read_to
            self._write(fd, position._replace(conversation=str(conversation), version=version))
            try:
                yield
            except BaseException:
                with contextlib.suppress(OSError):
                    disk.truncate(fd, size)
                self.close()
                raise
            with contextlib.suppress(StoreError):  # the mark of the event says so already
                self._write(fd, position, sync=False)
        except OSError as error:
            self.close()
            raise WriteError(self.path, error) from error
        finally:
            if locked and self._fd is not None:
                disk.unlock(self._fd)

    def _open(self) -> int:
        try:
            if self._fd is not None and self._is_same(self._fd):
                return self._fd
            self.close()
            disk.make_folder(self.path.parent, durable=self._store.durable)
            self._fd = disk.open_or_create(self.path)
            if self._store.durable:
                disk.sync_folder(self.path.parent)
        except OSError as error:
            self.close()
            raise WriteError(self.path, error) from error
        return self._fd

    def _is_same(self, fd: int) -> bool:
        try:
            there, here = disk.stat(self.path), disk.stat_fd(fd)
        except FileNotFoundError:
            return False
        return (there.st_dev, there.st_ino) == (here.st_dev, here.st_ino)

    def _write(self, fd: int, position: Position, *, sync: bool = True) -> None:
        """Append *position*; the file ends with a newline."""
        payload = msgspec.json.encode(position)
        row = b'{"position":%s,"crc":"%08x"}\n' % (payload, zlib.crc32(payload))
        try:
            disk.write_all(fd, row)
            if sync and self._store.durable:
                disk.sync_data(fd)
        except OSError as error:
            with contextlib.suppress(OSError):
                disk.truncate(fd, self._read_to)
            self.close()
            raise WriteError(self.path, error) from error
        self._read_to += len(row)
        if position.conversation is None:
            self._positions[position.name] = position.notification_id

    def _read(self, fd: int) -> None:
        """Read what was appended since, and seal a torn end if *fd* is for writing."""
        size = disk.stat_fd(fd).st_size
        if size < self._read_to:
            self._forget()
        data = disk.read(fd, size - self._read_to, self._read_to)
        complete = data.rfind(b"\n") + 1
        for row in data.split(b"\n"):  # a last one without its newline counts, if it is whole
            position = _position(row)
            if position is not None and self._counts(position):
                known = self._positions.get(position.name, position.notification_id)
                self._positions[position.name] = max(known, position.notification_id)
        self._read_to += complete
        if complete < len(data) and fd == self._fd:
            disk.write_all(fd, b"\n")
            self._read_to = size + 1

    def _counts(self, position: Position) -> bool:
        if position.conversation is None or position.version is None:
            return True
        if self._positions.get(position.name, -1) >= position.notification_id:
            return False
        log = self._store.log(UUID(position.conversation))
        lines = log.read(gt=position.version - 1, lte=position.version)
        mark = (position.name, position.notification_id)
        return any(line.version == position.version and line.tracking == mark for line in lines)


def _position(row: bytes) -> Position | None:
    try:
        found = _decode(row)
    except (msgspec.MsgspecError, ValueError):
        return None
    if found.crc != f"{zlib.crc32(msgspec.json.encode(found.position)):08x}":
        return None
    return found.position
