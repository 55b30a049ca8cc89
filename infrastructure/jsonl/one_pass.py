"""A log read in one pass, states included, as long as every line is as our own encoder wrote it.

A block of lines is decoded by one call: the topic of a line tells of which type its state is, and
the caller says which types there are. A block that is anything else is read line by line, by
`Reader`. If that finds anything out of the ordinary, the pass ends: what is believed then needs a
look at all of the file (see `search.between`).
"""

from __future__ import annotations

import struct
from functools import lru_cache
from typing import TYPE_CHECKING, Any, Final, NamedTuple, TypeAlias, Union
from zlib import crc32

import msgspec

from infrastructure.jsonl import disk
from infrastructure.jsonl.line import ERRORS, MAX_VERSION, Batch, Line, header
from infrastructure.jsonl.reader import Reader

if TYPE_CHECKING:
    from collections.abc import Generator, Mapping, Sequence

    Lines: TypeAlias = "Block | list[Line]"
    """Lines that follow one another."""

_CHUNK: Final = 1 << 18  # what a processor still has at hand when it sums it up
_PROBE: Final = 1 << 12
_FIELDS: Final = (
    ("version", int, msgspec.field(name="v")), ("crc", str), ("batch", Batch | None, None),
)  # fmt: skip
"""What each line has besides its topic and its state."""
_HEAD: Final = len('{"v":,"topic":"","state":')
_TAIL: Final = len(',"crc":"12345678"}')


class Block(NamedTuple):
    """Lines that were read, with their states; their bytes, and maybe more; where those *start*.

    *length* is how many bytes the lines are.
    """

    lines: list[Any]
    data: bytes
    start: int
    length: int


class NotAsWrittenError(Exception):
    """Something in a log is out of the ordinary: another reader has to look at all of it."""


class Decoder:
    """Decodes blocks of whole lines.

    Args:
        states: The type of the states of each topic.
    """

    def __init__(self, states: Mapping[str, type]) -> None:
        types = {
            msgspec.defstruct(
                topic, [*_FIELDS, ("state", state)], kw_only=True,
                gc=False, tag_field="topic", tag=topic,
            ): topic
            for topic, state in states.items()
        }  # fmt: skip
        either: Any = Union[tuple(types)]  # noqa: UP007 - of as many as there are
        self._decode: Any = msgspec.json.Decoder(either).decode_lines
        self._heads = {kind: _HEAD + len(topic.encode()) for kind, topic in types.items()}

    def lines(self, data: bytes) -> list[Any]:
        """Return the lines of *data*, which were read before, and are as they were."""
        lines: list[Any] = self._decode(data)
        return lines

    def decode(self, data: bytes, end: int, position: int) -> Block | None:
        """Return the lines of *data*, from *position* in a log, up to *end*, behind a newline.

        None if not each of them is just what our own encoder writes, of a topic that has a type.
        """
        block = memoryview(data)[:end]
        heads, start, digits, larger = self._heads, 0, 0, 0
        sums: list[int] = []
        try:
            lines = self._decode(block)
            if not data.isascii():
                str(block, "utf-8")  # a raw body is not checked for this
            for line in lines:
                if line.version >= larger:  # versions rise: the number of digits as well
                    digits = len(str(line.version))
                    larger = 10**digits
                newline = data.index(b"\n", start)
                first = start + heads[type(line)] + digits
                last = newline - _TAIL
                if line.batch is not None:
                    last -= len(b',"batch":[%d,%d]' % line.batch)
                sums.append(crc32(block[first:last]))
                start = newline + 1
            crcs = bytes.fromhex("".join([line.crc for line in lines]))
        except ERRORS:
            return None
        agree = start == end and struct.pack(f">{len(sums)}I", *sums) == crcs
        return Block(lines, data, position, end) if agree else None


@lru_cache
def decoder_of(states: tuple[tuple[str, type], ...]) -> Decoder:
    """Return the decoder of *states*: topics and types. To make one takes a millisecond or two."""
    return Decoder(dict(states))


class _Course:
    """How lines follow one another, from block to block.

    Args:
        is_middle: The lines do not begin where the file does.

    Attributes:
        version: The last one.
        batch: The batch that has begun and has not ended.
    """

    def __init__(self, *, is_middle: bool) -> None:
        self.version: int | None = None
        self.batch: Batch | None = None
        self._is_middle = is_middle

    def follow(self, lines: Sequence[Any]) -> None:
        """Go on over *lines*.

        Raises:
            NotAsWrittenError: They do not follow one another as they are written.
        """
        versions = [line.version for line in lines]
        if not versions:
            return
        first = versions[0] if self.version is None else self.version + 1
        if versions != list(range(first, first + len(lines))):
            raise NotAsWrittenError
        if first < 0 or versions[-1] > MAX_VERSION:
            raise NotAsWrittenError
        batches = [line.batch for line in lines]
        if self.batch is not None or batches.count(None) < len(lines):
            for batch in batches:
                self._take(batch)
                self._is_middle = False
        self.version, self._is_middle = versions[-1], False

    def _take(self, batch: Batch | None) -> None:
        if batch is None:
            if self.batch is not None:
                raise NotAsWrittenError
            return
        number, total = batch
        expected = (1, total) if self.batch is None else (self.batch[0] + 1, self.batch[1])
        if (batch != expected and not self._is_middle) or not 0 < number <= total:
            raise NotAsWrittenError
        self.batch = None if number == total else batch


def read(
    fd: int, start: int, size: int, decoder: Decoder, *, lte: int | None = None
) -> Generator[Lines]:
    """Yield the lines from *start*, which begins a line, to *size*, or to the chunk of *lte*.

    Raises:
        NotAsWrittenError: Something is out of the ordinary. What was yielded is not to be believed.
    """
    course = _Course(is_middle=start > 0)
    position = start or _header_end(disk.read(fd, _PROBE, 0))
    length = _CHUNK
    while position < size:
        data = disk.read(fd, min(length, size - position), position)
        end = len(data) if position + len(data) == size else data.rfind(b"\n") + 1
        if end:
            yield _block(decoder, data, end, position, course)
            position, length = position + end, _CHUNK
        elif len(data) == length:
            length *= 2  # the line is longer than that
        else:
            raise NotAsWrittenError
        if lte is not None and course.batch is None and (course.version or 0) > lte:
            return
    if course.batch is not None:
        raise NotAsWrittenError


def _header_end(data: bytes) -> int:
    """Return where the first line begins that is not the header."""
    first, newline, _ = data.partition(b"\n")
    if not newline or header(first) is None:
        raise NotAsWrittenError
    return len(first) + 1


def _block(decoder: Decoder, data: bytes, end: int, position: int, course: _Course) -> Lines:
    """Return the lines of *data* up to *end*: behind a newline, or where the file ends."""
    block = decoder.decode(data, end, position)
    if block is None:
        if course.batch is not None:
            raise NotAsWrittenError
        reader = Reader(offset=position, previous=course.version)
        reader.feed(data[:end])
        scan = reader.finish()
        if not scan.clean:
            raise NotAsWrittenError
        course.follow(scan.lines)
        return scan.lines
    course.follow(block.lines)
    return block
