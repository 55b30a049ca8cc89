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
from eventsourcing.persistence import IntegrityError, Tracking

from infrastructure.errors import ReadError, WriteError
from infrastructure.jsonl import disk, locks

if TYPE_CHECKING:
    from collections.abc import Iterator

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
        self._forget()

    def _forget(self, identity: tuple[int, int] = (0, 0)) -> None:
        """Forget what was read: the file is another one now, that of *identity*."""
        self._identity = identity
        self._read_to = 0
        self._positions: dict[str, int] = {}

    def position(self, name: str) -> int | None:
        """Return how far *name* has come, or None."""
        try:
            with self._locked(disk.open_read(self.path)) as fd:
                self._read(fd)
        except FileNotFoundError:
            self._forget()
        except OSError as error:
            raise ReadError(self.path, error) from error
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
        position = Position(tracking.application_name, tracking.notification_id)
        try:
            disk.make_folder(self.path.parent, durable=self._store.durable)
            with self._locked(disk.open_or_create(self.path)) as fd:
                size = self._read(fd)
                if size == 0 and self._store.durable:
                    disk.sync_folder(self.path.parent)
                known = self._positions.get(position.name)
                if known is not None and known >= position.notification_id:
                    raise IntegrityError(
                        f"{position.name!r} has come to {known}, "
                        f"so {position.notification_id} is not new"
                    )
                if conversation is None:
                    self._write(fd, position)
                    yield
                    return
                self._write(fd, position._replace(conversation=str(conversation), version=version))
                try:
                    yield
                except BaseException:
                    with contextlib.suppress(OSError):
                        disk.truncate(fd, size)
                    self._forget()
                    raise
                with contextlib.suppress(OSError):  # the mark of the event says so already
                    self._write(fd, position, sync=False)
        except OSError as error:
            raise WriteError(self.path, error) from error

    @contextlib.contextmanager
    def _locked(self, fd: int) -> Iterator[int]:
        """Hold the lock of *fd*, and close it."""
        try:
            locks.acquire(fd, self.path)
            yield fd
        finally:
            disk.close(fd)

    def _write(self, fd: int, position: Position, *, sync: bool = True) -> None:
        """Append *position* to what was read, which is sealed first if its end is torn."""
        payload = msgspec.json.encode(position)
        row = b'{"position":%s,"crc":"%08x"}\n' % (payload, zlib.crc32(payload))
        size = disk.stat_fd(fd).st_size
        seal = b"" if size == self._read_to else b"\n"
        try:
            disk.write_all(fd, seal + row)
            if sync and self._store.durable:
                disk.sync_data(fd)
        except OSError:
            with contextlib.suppress(OSError):
                disk.truncate(fd, size)
            self._forget()
            raise
        self._read_to = size + len(seal + row)
        if position.conversation is None:
            self._positions[position.name] = position.notification_id

    def _read(self, fd: int) -> int:
        """Read what was appended since; return the size of the file."""
        status = disk.stat_fd(fd)
        identity = status.st_dev, status.st_ino
        if identity != self._identity or status.st_size < self._read_to:
            self._forget(identity)
        data = disk.read(fd, status.st_size - self._read_to, self._read_to)
        for row in data.split(b"\n"):  # a last one without its newline counts, if it is whole
            position = _position(row)
            if position is not None and self._counts(position):
                known = self._positions.get(position.name, position.notification_id)
                self._positions[position.name] = max(known, position.notification_id)
        self._read_to += data.rfind(b"\n") + 1
        return status.st_size

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
