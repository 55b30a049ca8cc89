"""Snapshots, in files like logs. They are derived: never synced, and a doubtful one is none.

A snapshot is anchored: it holds only as long as the log has, at the same place of the same file,
the very line that it had when the snapshot was taken.
"""

from __future__ import annotations

from contextlib import suppress
from dataclasses import replace
from itertools import chain, repeat
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from zlib import crc32

import msgspec
from eventsourcing.persistence import StoredEvent

from infrastructure.errors import LogMissingError, ReadError, StoreError, VersionConflictError
from infrastructure.jsonl import disk, search
from infrastructure.jsonl.line import Line, encode
from infrastructure.jsonl.recorders import JSONLAggregateRecorder
from infrastructure.jsonl.store import Store, as_uuid

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from infrastructure.jsonl.log_file import LogFile
    from infrastructure.jsonl.log_reader import LogReader


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


class _Anchored(msgspec.Struct):
    """A snapshot as it is stored: its state, and the place in the log that it was taken at."""

    anchor: Anchor | None
    state: bytes
    columns: bytes = b""
    seal: str = ""


class Kept(msgspec.Struct, frozen=True):
    """What the caller keeps with a snapshot, of the lines before it, and a seal of that."""

    columns: bytes = b""
    seal: str = ""


class JSONLSnapshotRecorder(JSONLAggregateRecorder):
    """Snapshots of conversations. Unlike events they may be taken in any order of versions.

    Args:
        store: The folder of the snapshots.
        logs: The store whose logs they are of; None: they hold without a log.
    """

    def __init__(self, store: Store, logs: Store | None = None) -> None:
        super().__init__(store)
        self._logs = logs

    def insert_events(  # noqa: D102 - the contract is the library's
        self, stored_events: Sequence[StoredEvent], *, kept: Sequence[Kept] = (), **_: Any
    ) -> Sequence[int] | None:
        self._require_folder()
        pairs = zip(stored_events, chain(kept, repeat(Kept())), strict=False)
        insert_unordered(self.store, [self._anchored(*pair) for pair in pairs])
        return None

    def select_events(  # noqa: D102
        self, originator_id: UUID | str, *, limit: int | None = None, **wanted: Any
    ) -> Sequence[StoredEvent]:
        found: list[StoredEvent | None] = []
        with suppress(StoreError):
            self._require_folder()
            for most in (limit, None):  # all of them, if a doubtful one is among the first
                lines = self.select_lines(originator_id, limit=most, **wanted)
                found = [self._checked(originator_id, line) for line in lines]
                if all(found):
                    break
        return [stored for stored in found if stored is not None][:limit]

    def select_kept(self, originator_id: UUID | str, **wanted: Any) -> list[Kept]:
        """Return what is kept with the snapshots that `select_events` would look at."""
        found = []
        with suppress(StoreError):
            self._require_folder()
            for line in self.select_lines(originator_id, **wanted):
                with suppress(msgspec.MsgspecError):
                    found.append(_read_kept(line.raw))
        return found

    def _require_folder(self) -> None:
        """Raise `ReadError` if the folder leads elsewhere: a store may be copied in."""
        try:
            disk.require_folder(self.store.path)
        except OSError as error:
            raise ReadError(self.store.path, error) from error

    def _anchored(self, stored: StoredEvent, kept: Kept) -> StoredEvent:
        anchor = None
        if self._logs is not None:
            with self._logs.lock:
                log = self._logs.log(as_uuid(stored.originator_id))
                anchor = anchor_of(log, stored.originator_version)
        anchored = _Anchored(anchor, stored.state, kept.columns, kept.seal)
        return replace(stored, state=msgspec.json.encode(anchored))

    def _checked(self, originator_id: UUID | str, line: Line) -> StoredEvent | None:
        """Return the snapshot of *line*; None if it is damaged, or of another log."""
        if not line.crc_ok:
            return None
        try:
            anchored = _read_anchored(line.raw)
        except msgspec.MsgspecError:
            return None
        if self._logs is not None:
            with self._logs.lock:
                if not holds(self._logs.log(as_uuid(originator_id)), anchored.anchor):
                    return None
        return StoredEvent(originator_id, line.version, line.topic, anchored.state)


_read_anchored: Final = msgspec.json.Decoder(_Anchored).decode
_read_kept: Final = msgspec.json.Decoder(Kept).decode


def anchor_of(log: LogReader, version: int) -> Anchor | None:
    """Return where *version* stands in *log*; None if it is not there."""
    try:
        with log.reading() as (fd, size):
            end, line = search.cut_after(fd, size, version)
            if line is None or line.version != version:
                return None
            status = disk.stat_fd(fd)
            data = disk.read(fd, end - line.offset, line.offset)
    except LogMissingError:
        return None
    at = (line.offset, end, crc32(data), status.st_mtime_ns)
    return Anchor(status.st_dev, status.st_ino, *at)


def holds(log: LogReader, anchor: Anchor | None) -> bool:
    """Whether the line of *anchor* stands in *log* where it stood, in the same file.

    A file that has been written, but has not grown, was changed before the anchor.
    """
    if anchor is None:
        return False
    try:
        with log.reading() as (fd, size):
            status = disk.stat_fd(fd)
            if (status.st_dev, status.st_ino) != (anchor.device, anchor.inode):
                return False
            if size == anchor.end and status.st_mtime_ns != anchor.changed:
                return False
            data = disk.read(fd, anchor.end - anchor.start, anchor.start)
            return size >= anchor.end and crc32(data) == anchor.crc
    except LogMissingError:
        return False


def insert_unordered(store: Store, events: Sequence[StoredEvent]) -> None:
    """Save *events* of derived files in *store*: their versions need not rise, only be new.

    A file that already has higher versions is written again, in order, by temp file and rename.

    Raises:
        IntegrityError: A version is there already; nothing was written.
        WriteError: Nothing of it was kept.
    """
    with store.lock:
        late = []
        for log, group in store.parts(events):
            last = log.last()
            if last is None or group[0].originator_version > last:
                late += group
            else:
                with store.folder_locked():
                    _rewrite(log, group)
            log.forget()  # a derived file may be deleted or replaced at any time
        store.insert(late)


def _rewrite(log: LogFile, events: Sequence[StoredEvent]) -> None:
    """Write *log* again, with *events* at their places among those that are there."""
    lines = {line.version: (line.version, line.topic, line.state) for line in log.read()}
    for event in events:
        version = event.originator_version
        if version in lines:
            raise VersionConflictError(log.conversation, version, version, path=log.path)
        lines[version] = (version, event.topic, event.state)
    log.replace(b"".join(encode(*lines[version]) for version in sorted(lines)))
