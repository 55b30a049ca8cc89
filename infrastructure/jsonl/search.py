"""Finding lines in a log by version, by offset, or from its end, without reading all of it.

The versions rise through the file, so it is its own index: a version is found by binary search
over byte offsets, the last events by reading backwards. Whenever that meets anything out of the
ordinary, the whole file is read instead: the answer does not depend on the way it was found. There
is one exception: if a hand wrote another history with the same versions into the file, reading a
part may not tell that the other one is longer.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Final

from infrastructure.jsonl import disk
from infrastructure.jsonl.line import MAX_VERSION, Line, decode, header
from infrastructure.jsonl.reader import Reader, Scan
from infrastructure.jsonl.salvage import salvage

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

CHUNK: Final = 1 << 20
BLOCK: Final = 1 << 14
PROBE: Final = 1 << 12
_PROBED_FROM: Final = 1 << 18
_PROBES: Final = 6


def scan(
    fd: int,
    start: int,
    size: int,
    *,
    previous: int | None = None,
    lte: int | None = None,
    sparse: bool = False,
) -> Scan:
    """Read from *start*, which begins a line, to *size*, or to the chunk in which *lte* comes."""
    reader = Reader(offset=start, previous=previous, sparse=sparse)
    position = start
    step = CHUNK if lte is None else BLOCK << 2
    while position < size:
        data = disk.read(fd, min(step, size - position), position)
        if not data:
            break
        reader.feed(data)
        position += len(data)
        if lte is not None and (reached := reader.reached) is not None and reached > lte:
            return reader.stop()
    return reader.finish()


def between(
    fd: int, size: int, gt: int | None, lte: int | None, *, sparse: bool = False
) -> list[Line]:
    """Return at least the believed lines above *gt* and up to *lte*."""
    start = seek(fd, size, gt) if gt is not None else 0
    if start is not None:
        found = scan(fd, start, size, lte=lte, sparse=sparse)
        if found.clean or (start == 0 and lte is None):
            return found.lines
    return scan(fd, 0, size).lines


def lower_bound(gt: int | None, lte: int | None, *, desc: bool, limit: int | None) -> int | None:
    """Return a bound below which nothing is needed, as long as versions are not missing."""
    if desc and limit is not None and lte is not None:
        return max(lte - limit, gt if gt is not None else -1, 0)
    return gt


def upper_bound(gt: int | None, lte: int | None, *, desc: bool, limit: int | None) -> int | None:
    """Return a bound above which nothing is needed, as long as versions are not missing."""
    if desc or limit is None:
        return lte
    last = (gt if gt is not None else 0) + limit
    return last if lte is None else min(last, lte)


def selected(
    found: list[Line], gt: int | None, lte: int | None, *, desc: bool, limit: int | None
) -> list[Line]:
    """Return of *found* what the arguments of the library's `select_events` ask for."""
    if gt is not None:
        found = [line for line in found if line.version > gt]
    if lte is not None:
        found = [line for line in found if line.version <= lte]
    if desc:
        found = found[::-1]
    return found if limit is None else found[: max(limit, 0)]


def from_end(
    fd: int, size: int, *, limit: int, gt: int | None = None, sparse: bool = False
) -> Scan:
    """Return a scan that ends with the last *limit* believed lines, or goes down to *gt*."""
    block = BLOCK
    while block < size:
        start = size - block
        data = disk.read(fd, block, start)
        cut = data.find(b"\n") + 1
        if cut and cut < block:
            reader = Reader(offset=start + cut, sparse=sparse)
            reader.feed(data[cut:])
            found = reader.finish()
            if not found.clean:
                break
            enough = len(found.lines) > max(limit, 1)
            first = found.lines[0] if len(found.lines) > 1 else None
            if first and (enough or (gt is not None and first.version <= gt)):
                if _rises(fd, size, first.offset, first.version):
                    return found
                break
        block *= 4
    return scan(fd, 0, size)


def newest_of(fd: int, size: int, topics: Sequence[str]) -> dict[str, int]:
    """Return the version of the newest line of each of *topics*, found backwards by their marks.

    It finds only lines as they are written, and does not ask whether they are believed. Text in a
    message may look like a mark, but does not parse as a line of that topic.
    """
    marks = {topic: b',"topic":"%s","state' % topic.encode() for topic in topics}
    overlap = max(map(len, marks.values()), default=0)
    found: dict[str, int] = {}
    end = size
    while end > 0 and len(found) < len(marks):
        start = max(end - CHUNK, 0)
        data = disk.read(fd, min(end + overlap, size) - start, start)
        for topic, mark in marks.items():
            place = len(data)
            while topic not in found and (place := data.rfind(mark, 0, place)) >= 0:
                line = _line_around(fd, size, start + place)
                if line is not None and line.topic == topic:
                    found[topic] = line.version
        end = start
    return found


def _line_around(fd: int, size: int, place: int) -> Line | None:
    """Return the line in which *place* is, if it is as written."""
    before = disk.read(fd, min(PROBE, place), max(place - PROBE, 0))
    start = place - len(before) + before.rfind(b"\n") + 1
    return decode(_piece(fd, size, start, b"", 0))


def _rises(fd: int, size: int, start: int, version: int) -> bool:
    """Return whether a few lines before *start* agree that all are below *version*, which is there.

    A file that was appended to itself looks fine at its end.
    """
    if size < _PROBED_FROM:
        return True
    before = (-1, -1)
    for step in range(1, _PROBES + 1):
        found = _probe(fd, size - (size >> step), start)
        if found is None or found[1] < 0 or found[0] == before[0]:
            continue
        if not before[1] < found[1] < version:
            return False
        before = found
    return True


def seek(fd: int, size: int, gt: int) -> int | None:
    """Return the start of a line that is not above *gt*, near the first that is; None in doubt.

    0, the start of the file, if all lines that were probed are above.
    """
    low, low_version, high, high_version = 0, -1, size, MAX_VERSION + 1
    while high - low > BLOCK:
        middle = (low + high) // 2
        found = _probe(fd, middle, high)
        if found is None:
            high = middle
            continue
        start, version = found
        if not low_version < version < high_version:
            return None
        if version <= gt:
            low, low_version = start, version
        else:
            high, high_version = middle, version
    return low


def _probe(fd: int, position: int, end: int) -> tuple[int, int] | None:
    """Return offset and version of the first line that starts behind *position*, before *end*.

    None if there is none. A line that is not as written has version -1.
    """
    length = PROBE
    while True:
        data = disk.read(fd, length, position)
        start = data.find(b"\n") + 1
        if start and position + start >= end:
            return None
        stop = data.find(b"\n", start) if start else -1
        at_end = len(data) < length
        if stop >= 0 or at_end:
            break
        if not start and position + length >= end:
            return None
        length *= 4
    if not start or start == len(data):
        return None
    line = decode(data[start : stop if stop >= 0 else len(data)])
    return position + start, line.version if line else -1


def cut_after(fd: int, size: int, version: int) -> tuple[int, Line | None]:
    """Return where the events up to *version* end, newline included, and the last of them."""
    found = [a for a in between(fd, size, version - 1, version) if a.version <= version]
    if not found:
        return header_end(fd, size), None
    end = found[-1].end
    rest = disk.read(fd, PROBE, end)
    newline = rest.find(b"\n")
    if newline >= 0 and not rest[:newline].strip():
        end += newline + 1
    return end, found[-1]


def header_end(fd: int, size: int) -> int:
    """Return where the first event begins: behind the header, if there is one."""
    data = disk.read(fd, PROBE, 0)
    return min(data.find(b"\n") + 1, size) if header(data.partition(b"\n")[0]) else 0


def lines_at(fd: int, size: int, places: Sequence[tuple[int, int]]) -> list[Line | None]:
    """Return the lines at *places*, pairs of offset and version; None where it is not so."""
    found: list[Line | None] = []
    for first, after in _runs(places):
        run = places[first:after]
        data = disk.read(fd, run[-1][0] + PROBE - run[0][0], run[0][0])
        for offset, version in run:
            piece = _piece(fd, size, offset, data, offset - run[0][0])
            found.append(_line_with(piece, version, offset))
    return found


def _runs(places: Sequence[tuple[int, int]]) -> Iterator[tuple[int, int]]:
    """Cut *places* into runs whose bytes are read at once."""
    first = 0
    for index in range(1, len(places) + 1):
        if index == len(places) or not 0 < places[index][0] - places[first][0] < CHUNK:
            yield first, index
            first = index


def _piece(fd: int, size: int, offset: int, data: bytes, start: int) -> bytes:
    """Return the rest of the physical line at *offset*; *data* from *start* on is its beginning."""
    end = data.find(b"\n", start)
    if end >= 0:
        return data[start:end]
    length = PROBE
    while True:
        length *= 4
        piece = disk.read(fd, length, offset)
        end = piece.find(b"\n")
        if end >= 0 or offset + len(piece) >= size or len(piece) < length:
            return piece[:end] if end >= 0 else piece


def _line_with(piece: bytes, version: int, offset: int) -> Line | None:
    line = decode(piece)
    if line is None:
        candidates = (a for a in salvage(piece) if isinstance(a, Line))
        line = next((a for a in candidates if a.version == version), None)
    if line is None or line.version != version:
        return None
    line.offset = offset
    return line
