"""The file ``.index/notifications``: a header, and a record for every event of a store.

The header of 32 bytes is a magic and a random epoch. A record of 32 bytes is conversation, byte
offset, version, and the CRC-32 of these 28 bytes. Its number, counted from 1, is the notification
id: where the system has put an appended record is what numbers it. What the file should say is
`notification_log`'s.
"""

from __future__ import annotations

import contextlib
import errno
import struct
from typing import TYPE_CHECKING, Final
from zlib import crc32

import msgspec

from infrastructure.errors import ReadError
from infrastructure.jsonl import disk
from infrastructure.jsonl.log_reader import Identity, identity_of

if TYPE_CHECKING:
    import os
    from collections.abc import Iterator, Sequence
    from pathlib import Path

MAGIC: Final = b"leftfold-index/1"
RECORD: Final = struct.Struct(">16sQII")
SIZE: Final = RECORD.size
READ_ONLY: Final = frozenset({errno.EACCES, errno.EROFS, errno.EPERM})
"""What the system says where nothing can be written."""
_BODY: Final = struct.Struct(">16sQI")
_AT_ONCE: Final = 1 << 15
"""Records that are read together: a megabyte."""
_LOOKS_EVERY: Final = 64
"""How many appends it may take until it is noticed that the file was moved away."""


class Record(msgspec.Struct, frozen=True, gc=False):
    """Where one event is."""

    conversation: bytes
    offset: int
    version: int


class BrokenOrderError(Exception):
    """The file does not fit the logs, or itself."""


class NotificationFile:
    """The records that are in the file, read as far as somebody asks for them.

    Where nothing can be written, further ones are kept in memory.

    Attributes:
        epoch: Changes whenever ids get a new meaning; read models compare it.
        count: How many records there are.
        kept: Those that are in no file, packed.
    """

    def __init__(self, path: Path) -> None:
        self.path = path
        self._path_bytes = bytes(path)
        self._fd: int | None = None
        self.close()

    def close(self) -> None:
        """Close the file, and forget what was known of it."""
        self.epoch = b"\0" * 16
        self.count = 0
        self._last: dict[bytes, Record | None] = {}  # of each conversation that was asked for
        self._unread = 0  # how many records, from the first one on, nobody has read
        self.kept = b""
        self.identity: Identity | None = None
        self._links = 0
        self._size = 0
        self._appends = 0
        self._synced_count = 0
        if self._fd is not None:
            disk.close(self._fd)
            self._fd = None

    def has_changed(self) -> bool:
        """Return whether another process wrote records: two system calls, nothing is read."""
        try:
            status = disk.stat(self._path_bytes)
        except OSError:
            return self._fd is not None
        is_same = identity_of(status) == self.identity
        return not is_same or status.st_size // SIZE - 1 != self._written

    @property
    def _written(self) -> int:
        """How many of the known records are in the file."""
        return self.count - len(self.kept) // SIZE

    # -- reading ---------------------------------------------------------------------------------

    def load(self) -> bool:
        """Know how many records there are; return whether it is not the file of before.

        Raises:
            BrokenOrderError: It is no file of ours, was cut, or a new record of it is damaged.
        """
        try:
            status = disk.stat(self.path)
        except FileNotFoundError:
            self.close()
            return True
        is_new = identity_of(status) != self.identity or (bool(self.kept) and self.has_changed())
        if is_new:
            status = self._open()
        assert self._fd is not None
        size, self._size, self._links = status.st_size, status.st_size, status.st_nlink
        count = size // SIZE - 1
        if count < self.count:
            raise BrokenOrderError
        if is_new:
            self._unread = count
        else:
            self._last |= self._lasts(self.count, count)
        self.count = count
        return is_new

    def know_all(self) -> None:
        """Read all records: the last one of each conversation will be asked for.

        Raises:
            BrokenOrderError: One of them is damaged.
        """
        later = {key: last for key, last in self._last.items() if last is not None}
        self._last = {**self._lasts(0, self._unread), **later}
        self._unread = 0

    def last_of(self, conversation: bytes) -> Record | None:
        """Return the last record of *conversation*.

        Raises:
            BrokenOrderError: It is damaged.
        """
        if conversation not in self._last:
            self._last[conversation] = self._last_unread(conversation)
        return self._last[conversation]

    def _lasts(self, first: int, last: int) -> dict[bytes, Record | None]:
        """Return the last record of each conversation among those after *first*, up to *last*."""
        found: dict[bytes, Record | None] = {}
        for start in range(first + 1, last + 1, _AT_ONCE):
            for record in unpacked(self._read(start, min(start + _AT_ONCE - 1, last))):
                found[record.conversation] = record
        return found

    def _last_unread(self, conversation: bytes) -> Record | None:
        """Look for the last record of *conversation* from the end: it costs what reading costs."""
        for end in range(self._unread, 0, -_AT_ONCE):
            start = max(end - _AT_ONCE + 1, 1)
            data = self._read(start, end)
            place = data.rfind(conversation)
            while place >= 0 and place % SIZE:  # these bytes, but of no id
                place = data.rfind(conversation, 0, place + len(conversation) - 1)
            if place >= 0:
                return next(unpacked(data[place : place + SIZE]))
        return None

    def _open(self) -> os.stat_result:
        self.close()
        disk.require_folder(self.path.parent)
        self._fd = _opened(self.path)
        status = disk.stat_fd(self._fd)
        self.identity = identity_of(status)
        head = disk.read(self._fd, SIZE, 0)
        if head[: len(MAGIC)] != MAGIC or len(head) != SIZE:
            raise BrokenOrderError
        self.epoch = head[len(MAGIC) :]
        return status

    def records(self, first: int, last: int) -> Iterator[Record]:
        """Yield the records with the ids from *first* to *last*, as far as they go.

        Raises:
            BrokenOrderError: One of them is damaged.
        """
        written = self._written
        start = max(first - 1 - written, 0) * SIZE
        kept = self.kept[start : max(last - written, 0) * SIZE]
        return unpacked(self._read(first, min(last, written)) + kept)

    def _read(self, first: int, last: int) -> bytes:
        """Return the records of the file with the ids from *first* to *last*, packed."""
        if self._fd is None or first > last:
            return b""
        return disk.read(self._fd, (last - first + 1) * SIZE, first * SIZE)

    # -- writing ---------------------------------------------------------------------------------

    def append(self, records: Sequence[Record]) -> int:
        """Append *records* by one write; return the id of the first.

        Raises:
            BrokenOrderError: There is no file, it is not what it was, or half a record is at its
                end: to cut it might cut others'.
        """
        if self._fd is None or self._size % SIZE:
            raise BrokenOrderError
        if not records:
            return self.count + 1
        data = b"".join(map(packed, records))
        disk.write_all(self._fd, data)
        last, torn = divmod(self._end_after(data), SIZE)
        first = last - len(records)
        if torn or first <= self.count:
            raise BrokenOrderError
        for record in records:
            self._last[record.conversation] = record
        if first == self.count + 1:  # else others came between; they are read next time
            self.count += len(records)
        return first

    def _end_after(self, data: bytes) -> int:
        """Return where *data*, which was just appended, ends.

        Raises:
            BrokenOrderError: The file is not the one at its path any more.
        """
        assert self._fd is not None
        status = disk.stat_fd(self._fd)
        # A file that was replaced or deleted has lost a name; one that was moved away has not. To
        # look at its path costs twice as much as to look at it by its descriptor.
        self._appends += 1
        if self._appends % _LOOKS_EVERY == 0:
            is_there = identity_of(disk.stat(self._path_bytes)) == self.identity
        else:
            is_there = status.st_nlink == self._links
        if not is_there:
            raise BrokenOrderError
        end = (self.count + 1) * SIZE + len(data)
        return end if status.st_size == end else disk.position(self._fd)  # others came between

    def keep(self, records: Sequence[Record]) -> None:
        """Add *records* in memory only."""
        self.kept += b"".join(map(packed, records))
        self.count += len(records)
        for record in records:
            self._last[record.conversation] = record

    def make_safe(self, last: int) -> None:
        """Wait until the records up to *last* are on the disk: they are about to be read.

        Raises:
            ReadError: They cannot be made so.
        """
        if self._fd is None or self._synced_count >= min(last, self.count):
            return
        try:
            disk.sync_data(self._fd)
        except OSError as error:
            if error.errno not in READ_ONLY:
                raise ReadError(self.path, error) from error
        self._synced_count = self.count

    @contextlib.contextmanager
    def written_anew(self) -> Iterator[int]:
        """Put a file with a new epoch in its place; what is written to the descriptor is in it."""
        self.close()
        temporary = self.path.with_name(f".notifications.{disk.random_bytes(6).hex()}.tmp")
        fd = disk.create(temporary)
        try:
            disk.write_all(fd, MAGIC + disk.random_bytes(16))
            yield fd
            disk.rename(temporary, self.path)
        except BaseException:
            disk.remove(temporary)
            raise
        finally:
            disk.close(fd)


def _opened(path: Path) -> int:
    try:
        return disk.open_append(path)
    except OSError as error:
        if error.errno not in READ_ONLY:
            raise
        return disk.open_read(path)


def packed(record: Record) -> bytes:
    """Return *record* as it stands in the file."""
    body = _BODY.pack(record.conversation, record.offset, record.version)
    return body + crc32(body).to_bytes(4, "big")


def inspected(path: Path) -> tuple[list[Record | None], bool]:
    """Return the records of the file *path*, None for a damaged one, and whether the last is torn.

    Raises:
        BrokenOrderError: It is no file of ours.
        OSError: It is not there, or cannot be read.
    """
    disk.require_folder(path.parent)
    data = disk.contents(path)
    if data[: len(MAGIC)] != MAGIC or len(data) < SIZE:
        raise BrokenOrderError
    places = range(SIZE, len(data) - SIZE + 1, SIZE)
    return [_record(data[place : place + SIZE]) for place in places], len(data) % SIZE > 0


def _record(data: bytes) -> Record | None:
    try:
        return next(unpacked(data))
    except BrokenOrderError:
        return None


def unpacked(data: bytes) -> Iterator[Record]:
    """Yield the records of *data*.

    Raises:
        BrokenOrderError: One of them is damaged.
    """
    view = memoryview(data)
    place = 0
    for conversation, offset, version, crc in RECORD.iter_unpack(data):
        if crc32(view[place : place + _BODY.size]) != crc:
            raise BrokenOrderError
        place += SIZE
        yield Record(conversation, offset, version)
