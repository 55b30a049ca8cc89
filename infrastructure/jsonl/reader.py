r"""From the bytes of a log to the lines that are believed. Pure: bytes in, values out.

Only ``\n`` separates lines. Damage costs exactly the bytes it covers. What is believed:

1. A save of several events is all or nothing. A batch with missing members is believed when a later
   append shows that it was committed; an unfinished one was never saved.
2. Versions rise. Where they do not, the longest rising run of lines is the log, the earliest of
   equals wins, and the rest is damage. A gap is no damage by itself.
3. The last line counts without its newline when it is valid.
"""

from __future__ import annotations

from bisect import bisect_left
from itertools import pairwise
from typing import TYPE_CHECKING, Final, cast

import msgspec

from infrastructure.jsonl.line import (
    Damage,
    DamageKind,
    Header,
    Line,
    decode,
    decode_block,
    header,
    other_format,
)
from infrastructure.jsonl.salvage import salvage

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

_LOOK_AHEAD: Final = 64


class Scan(msgspec.Struct):
    """What was read of a log, or of a part of it.

    ``clean`` says that every byte was as written: versions follow one another without a gap, every
    batch is whole, nothing is damaged. ``unfinished`` says that the end is a batch that was never
    saved; ``sealed`` that the last byte is a newline.
    """

    lines: list[Line] = []
    damages: list[Damage] = []
    header: Header | None = None
    size: int = 0
    clean: bool = True
    sealed: bool = True
    unfinished: bool = False

    @property
    def last(self) -> int | None:
        """The last version, if there is one."""
        return self.lines[-1].version if self.lines else None

    @property
    def missing(self) -> list[tuple[int, int]]:
        """The versions that are not there, as inclusive ranges."""
        ranges = []
        expected = 1
        for line in self.lines:
            if line.version > expected:
                ranges.append((expected, line.version - 1))
            expected = line.version + 1
        return ranges


class Reader:
    """Reads the bytes of a log piece by piece.

    Args:
        offset: Where the first byte stands in the file; 0 means that a header comes first.
        previous: The last version before *offset*, when it is known.
        sparse: That versions are missing is nothing out of the ordinary.
    """

    def __init__(
        self, *, offset: int = 0, previous: int | None = None, sparse: bool = False
    ) -> None:
        self._offset = offset
        self._number = 0 if offset else 1
        self._items: list[Line | Damage] = []
        self._header: Header | None = None
        self._expects_header = offset == 0
        self._previous = previous
        self._sparse = sparse
        self._clean = True
        self._batched = False
        self._rest: list[bytes] = []  # parts of a line whose newline has not come yet

    @property
    def reached(self) -> int | None:
        """The last version read so far, or None if anything so far is out of the ordinary."""
        return self._previous if self._clean else None

    def feed(self, data: bytes) -> None:
        """Take the next bytes of the file."""
        end = data.rfind(b"\n") + 1
        if not end:
            if data:
                self._rest.append(data)
            return
        block = b"".join((*self._rest, memoryview(data)[:end]))
        self._rest = [data[end:]] if end < len(data) else []
        if self._expects_header:
            first, _, block = block.partition(b"\n")
            self._take([first])
        self._take_block(block)

    def _take_block(self, block: bytes) -> None:
        """Take whole lines, all at once if they are as written: damage is rare."""
        lines = decode_block(block, self._offset, self._number)
        if lines is None:
            pieces = block.split(b"\n")
            pieces.pop()  # what split() leaves behind the last newline
            self._take(pieces)
            return
        for line in lines:
            self._note(line)
        self._items += lines
        self._offset += len(block)
        self._number += len(lines) if self._number else 0

    def finish(self) -> Scan:
        """Return what is believed; no more bytes come."""
        rest = b"".join(self._rest)
        size = self._offset + len(rest)
        if rest:
            self._take_tail(rest)
        scan = self._settled()
        scan.header, scan.size, scan.sealed = self._header, size, not rest
        return scan

    def stop(self) -> Scan:
        """Return what is believed so far, without the line of which only a part was read."""
        self._rest = []
        return self.finish()

    def _settled(self) -> Scan:
        if self._clean and not self._batched:
            return Scan(cast("list[Line]", self._items))  # any damage is unclean
        return settle(self._items, unruly=not self._clean)

    def _take_tail(self, rest: bytes) -> None:
        """Take the last line, which has no newline: it counts when it is valid."""
        offset, known = self._offset, len(self._items)
        self._take([rest])
        tail = self._items[known:]
        if any(isinstance(item, Line) or item.kind == "zeros" for item in tail):
            return
        if tail:
            torn = Damage(tail[0].number, offset, len(rest), "torn tail")
            self._items[known:] = [torn]

    def _take(self, pieces: Sequence[bytes]) -> None:
        if self._expects_header and pieces:
            pieces = self._take_header(pieces)
        for piece in pieces:
            line = decode(piece)
            if line is not None:
                line.offset, line.number = self._offset, self._number
                self._note(line)
                self._items.append(line)
            else:
                self._take_slowly(piece)
            self._offset += len(piece) + 1
            self._number += 1 if self._number else 0

    def _note(self, line: Line) -> None:
        """Note whether *line* is anything but the next one of a plain log."""
        if self._previous is not None and line.version != self._previous + 1:
            self._clean = self._clean and self._sparse and line.version > self._previous
        if line.batch is not None:
            self._batched = True
        elif line.base is not None:
            self._clean = False
        self._previous = line.version

    def _take_slowly(self, piece: bytes) -> None:
        for item in salvage(piece, self._offset, self._number):
            self._items.append(item)
            if isinstance(item, Damage):
                self._clean = False
            else:
                self._note(item)

    def _take_header(self, pieces: Sequence[bytes]) -> Sequence[bytes]:
        self._expects_header = False
        self._header = header(pieces[0])
        if self._header is not None:
            self._offset += len(pieces[0]) + 1
            self._number += 1
            return pieces[1:]
        self._clean = False
        is_event = any(isinstance(item, Line) for item in salvage(pieces[0]))
        other = other_format(pieces[0])
        reason = "damaged header" if other is None else f"the header of another format, {other!r}"
        self._items.append(Damage(1, 0, 0, "no header", "header", lost=False))
        if is_event:
            return pieces
        self._items[-1] = Damage(1, 0, len(pieces[0]), reason, "header")
        self._offset += len(pieces[0]) + 1
        self._number += 1
        return pieces[1:]


def settle(items: Sequence[Line | Damage], *, unruly: bool) -> Scan:
    """Decide which lines are believed, from everything that was found, in file order."""
    kept, dropped, unfinished = _whole_batches(items)
    clean = not unruly and not dropped
    rising, falling = _rising([item for item in kept if isinstance(item, Line)])
    damages = [item for item in items if isinstance(item, Damage)]
    damages += [_damage(line, "unfinished batch, never saved", "batch") for line in dropped]
    damages += [
        _damage(line, f"version {line.version} does not rise", "version") for line in falling
    ]
    damages.sort(key=lambda damage: damage.offset)
    clean = clean and not falling
    return Scan(rising, damages, clean=clean, unfinished=unfinished)


def _damage(line: Line, reason: str, kind: DamageKind) -> Damage:
    return Damage(line.number, line.offset, line.length, reason, kind)


class _Group:
    """The lines of one save that were found, at their places among all items."""

    def __init__(self, place: int, line: Line) -> None:
        assert line.batch is not None
        self.start = place
        self.total = line.batch[1]
        self.first_version = line.version - (line.batch[0] - 1)
        self.last_version = self.first_version + self.total - 1
        self.members = {line.version: (place, line)}
        self.copies: list[int] = []

    def takes(self, place: int, line: Line) -> bool:
        """Add *line*, unless it is another save's: one with these versions, but not these events.

        A line of it that stands there twice is a copy; the first one counts.
        """
        member = self.members.get(line.version)
        if member is None:
            self.members[line.version] = place, line
        elif (member[1].topic, member[1].raw) == (line.topic, line.raw):
            self.copies.append(place)
        else:
            return False
        return True

    @property
    def places(self) -> list[int]:
        return [*(place for place, _ in self.members.values()), *self.copies]

    @property
    def whole(self) -> bool:
        return len(self.members) == self.total

    @property
    def ended(self) -> bool:
        return self.last_version in self.members


def _whole_batches(
    items: Sequence[Line | Damage],
) -> tuple[list[Line | Damage], list[Line], bool]:
    """Return the items without unfinished batches, those, and whether the file ends with one."""
    groups = _groups(items)
    partial = [group for group in groups if not group.whole]
    if not partial:
        return list(items), [], False
    lines = [(place, item) for place, item in enumerate(items) if isinstance(item, Line)]
    places = [place for place, _ in lines]
    dropped: set[int] = set()
    unfinished = False
    highest = max(line.version for _, line in lines)
    for group in partial:
        after = bisect_left(places, group.start + 1)
        following = [line for _, line in lines[after : after + len(group.members) + _LOOK_AHEAD]]
        if not _committed(group, following, items, highest):
            dropped.update(group.places)
            unfinished = unfinished or max(group.places) == places[-1]
    kept = [item for place, item in enumerate(items) if place not in dropped]
    gone = [item for place, item in lines if place in dropped]
    return kept, gone, unfinished


def _groups(items: Sequence[Line | Damage]) -> list[_Group]:
    """Put the lines that say so together by save, whatever stands between them."""
    groups: list[_Group] = []
    unfinished: dict[tuple[int, int], _Group] = {}
    for place, item in enumerate(items):
        if isinstance(item, Damage):
            continue
        if item.base is not None:
            unfinished.clear()  # what comes from here on is not of the saves before
        if item.batch is None:
            continue
        number, total = item.batch
        group = unfinished.get((item.version - number, total))
        if group is None or not group.takes(place, item):
            group = _Group(place, item)
            groups.append(group)
            unfinished[item.version - number, total] = group
    return groups


def _committed(
    group: _Group, following: Iterable[Line], items: Sequence[Line | Damage], highest: int
) -> bool:
    """Whether a save of which lines are missing was one: something was saved after it.

    A following line within its versions is a line of it with a damaged mark, or a copy. If it
    differs from the line of that version, the versions were used again by a later save.
    """
    for line in following:
        if line.base is not None:
            return line.base >= max(group.members)
        if line.version > group.last_version:
            return True
        member = group.members.get(line.version)
        if member is not None and member[1].raw != line.raw:
            return False
    if highest > group.last_version:  # it stands before: lines were moved
        return True
    return group.ended and not _nul_within(group, items)


def _nul_within(group: _Group, items: Sequence[Line | Damage]) -> bool:
    """Return whether a zero-filled, so unsynced, block is among the members or just before them."""
    place = max(place for place, _ in group.members.values())
    while place > 0:
        place -= 1
        item = items[place]
        if isinstance(item, Damage):
            if item.kind == "zeros":
                return True
        elif place < group.start:
            return False
    return False


def _rising(found: Sequence[Line]) -> tuple[list[Line], list[Line]]:
    """Split *found* into the longest run of rising versions and the rest (patience sorting)."""
    if all(a.version < b.version for a, b in pairwise(found)):
        return list(found), []
    tops: list[int] = []  # the lowest version that ends a run of each length
    ends: list[int] = []  # and the line that has it
    before: list[int] = []
    for place, line in enumerate(found):
        length = bisect_left(tops, line.version)
        before.append(ends[length - 1] if length else -1)
        if length == len(tops):
            tops.append(line.version)
            ends.append(place)
        elif tops[length] != line.version:
            tops[length] = line.version
            ends[length] = place
    chosen: set[int] = set()
    place = ends[-1]
    while place >= 0:
        chosen.add(place)
        place = before[place]
    rising = [line for place, line in enumerate(found) if place in chosen]
    return rising, [line for place, line in enumerate(found) if place not in chosen]
