"""One log, read: which of its lines are believed, and where they stand.

How they are found without reading all of the file is in `search`.
"""

from __future__ import annotations

import contextlib
from typing import TYPE_CHECKING, Final, NamedTuple, TypeAlias

from infrastructure.errors import LogMissingError, NewerFormatError, ReadError
from infrastructure.jsonl import disk, one_pass, search
from infrastructure.jsonl import line as lines_

if TYPE_CHECKING:
    import os
    from collections.abc import Generator, Iterable, Iterator, Sequence
    from pathlib import Path
    from uuid import UUID

    from infrastructure.jsonl.line import Line
    from infrastructure.jsonl.one_pass import Decoder, Lines
    from infrastructure.jsonl.reader import Scan

Identity: TypeAlias = "tuple[int, int]"
"""Device and inode of a file."""


State: TypeAlias = "tuple[int, int, int]"
"""Inode, size and time of the last change of a log: as long as they are the same, it is."""


_SMALL: Final = 4 * 1024 * 1024


class Unsaved(NamedTuple):
    """Bytes that could not be cut off the end of a file: as long as nothing follows, they are none.

    They begin at *start*, and *end* is the size of the file.
    """

    identity: Identity
    start: int
    end: int


class LogReader:
    """The file of one conversation, as far as it is only read. Not thread-safe.

    Args:
        path: The file, which need not exist.
        conversation: Whose events it holds; the file's name, not its header, says so.

    Attributes:
        sparse: Whether versions are missing in it, as a rule: a derived file may have some only.
    """

    def __init__(self, path: Path, conversation: UUID) -> None:
        self.path = path
        self.conversation = conversation
        self.key = conversation.bytes  # what it is called in the order
        self.sparse = False
        self._identity: Identity | None = None
        self._unsaved: Unsaved | None = None
        self._header_checked: Identity | None = None

    def __lt__(self, other: LogReader) -> bool:
        """Logs are locked in the order of their ids."""
        return self.key < other.key

    def exists(self) -> bool:
        """Return whether the file is there."""
        try:
            disk.stat(self.path)
        except FileNotFoundError:
            return False
        except OSError as error:
            raise ReadError(self.path, error) from error
        return True

    def is_small(self) -> bool:
        """Return whether all of the file may be in memory at once; one that is missing is."""
        try:
            return disk.stat(self.path).st_size <= _SMALL
        except FileNotFoundError:
            return True
        except OSError as error:
            raise ReadError(self.path, error) from error

    @property
    def was_there(self) -> bool:
        """Whether this process has had the file open, be it only to read it."""
        return self._identity is not None

    def scan(self) -> Scan:
        """Read all of the file: what `verify` reports from.

        Raises:
            LogMissingError: There is no such file.
        """
        with self.reading() as (fd, size):
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
            with self.reading() as (fd, size):
                if desc and limit is not None and lte is None:
                    end = search.from_end(fd, size, gt=gt, limit=limit, sparse=self.sparse)
                    found = end.lines
                    return search.selected(found, gt, lte, desc=desc, limit=limit)
                lower = search.lower_bound(gt, lte, desc=desc, limit=limit)
                upper = search.upper_bound(gt, lte, desc=desc, limit=limit)
                found = search.between(fd, size, lower, upper, sparse=self.sparse)
                chosen = search.selected(found, gt, lte, desc=desc, limit=limit)
                stopped = upper != lte and bool(found) and found[-1].end + 1 < size
                if (lower != gt or stopped) and len(chosen) < (limit or 0):  # versions are missing
                    found = search.between(fd, size, gt, lte, sparse=self.sparse)
                    chosen = search.selected(found, gt, lte, desc=desc, limit=limit)
                return chosen
        except LogMissingError:
            return []

    def read_once(self, decoder: Decoder, *, gt: int | None, lte: int | None) -> Generator[Lines]:
        """Yield the lines with versions in ``(gt, lte]``, and some around them, by one pass.

        Raises:
            NotAsWrittenError: Only `read` can tell them. What was yielded is not to be believed.
        """
        with contextlib.suppress(LogMissingError), self.reading() as (fd, size):
            start = search.seek(fd, size, gt) if gt is not None else 0
            if start is None:
                raise one_pass.NotAsWrittenError
            yield from one_pass.read(fd, start, size, decoder, lte=lte)

    def pieces(self, places: Iterable[tuple[int, int]]) -> Generator[bytes]:
        """Yield the bytes at *places*, pairs of offset and length, as far as they are believed."""
        with contextlib.suppress(LogMissingError), self.reading() as (fd, size):
            for offset, length in places:
                yield disk.read(fd, max(min(length, size - offset), 0), offset)

    def last(self) -> int | None:
        """Return the last version, or None if there is none."""
        found = self.read(desc=True, limit=1)
        return found[0].version if found else None

    def lines_at(self, places: Sequence[tuple[int, int]]) -> list[Line | None]:
        """Return the lines at *places*, pairs of offset and version; None where it is not so.

        Raises:
            LogMissingError: There is no such file.
        """
        with self.reading() as (fd, size):
            return search.lines_at(fd, size, places)

    def newest_of(self, topics: Sequence[str]) -> list[Line]:
        """Return the newest line of each of *topics* that is there."""
        try:
            with self.reading() as (fd, size):
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
        with self.reading() as (fd, size):
            return search.cut_after(fd, size, version)

    @contextlib.contextmanager
    def reading(self) -> Iterator[tuple[int, int]]:
        """Open the file for reading; yield its descriptor, and how many bytes may be believed.

        Raises:
            LogMissingError: There is no such file.
            NewerFormatError: A newer version wrote it.
            ReadError: It cannot be read.
        """
        try:
            fd = disk.open_read(self.path)
        except FileNotFoundError:
            raise LogMissingError(self.path) from None
        except OSError as error:
            raise ReadError(self.path, error) from error
        try:
            status = disk.stat_fd(fd)
            identity = identity_of(status)
            self._check_header(fd, identity)
            if self._identity is None:  # an append must find the file that was read
                self._identity = identity
            yield fd, self._believed(status)
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

    def _believed(self, status: os.stat_result) -> int:
        """Return how much of the file may be believed: all, unless its end was not saved."""
        unsaved = self._unsaved
        if unsaved and (unsaved.identity, unsaved.end) == (identity_of(status), status.st_size):
            return unsaved.start
        return status.st_size


def identity_of(status: os.stat_result) -> Identity:
    """Return which file *status* is of."""
    return status.st_dev, status.st_ino


def state_of(status: os.stat_result) -> State:
    """Return the state of the log that *status* is of."""
    return status.st_ino, status.st_size, status.st_mtime_ns
