"""Standard input, which may have no end: how much of it is taken, and its lines."""

from __future__ import annotations

import asyncio
import os
import select
import stat
import sys
from typing import TYPE_CHECKING

import click

from app.errors import UsageError
from app.i18n import _

if TYPE_CHECKING:
    from collections.abc import AsyncIterator

LONGEST = 64 * 1024 * 1024
"""Bytes of a line, or of a prompt: twice what the API takes in a request."""
_ENDLESS = 16 * LONGEST
"""Bytes of a line after which it is not waited for its end."""
_PIECE = 65536
_SECONDS_OF_SILENCE = 2.0


class LongInputError(UsageError):
    """A line, or a prompt, that is longer than `LONGEST`: it may have no end."""

    MESSAGE = (
        "standard input has more than {size:,} bytes without an end, and no prompt may be that "
        "long: put it into a file, and let the model look there"
    )


class Lines:
    """Cuts what is read into lines.

    Of a line that is too long its beginning is given as soon as that shows, one byte more than
    `LONGEST`, and the rest is passed over.

    Attributes:
        length: How many bytes have come of the line that has not ended.
    """

    def __init__(self) -> None:
        self._begun = bytearray()
        self.length = 0

    def cut(self, piece: bytes) -> list[bytes]:
        """Return the lines that end in *piece*."""
        first, *others = piece.split(b"\n")
        lines = self._add(first)
        for part in others:
            lines += self.rest()
            lines += self._add(part)
        return lines

    def rest(self) -> list[bytes]:
        """Return the line that has begun, as it ends here; nothing if it has been given."""
        line, length = bytes(self._begun), self.length
        self._begun.clear()
        self.length = 0
        return [line] if length <= LONGEST else []

    def _add(self, part: bytes) -> list[bytes]:
        before, self.length = self.length, self.length + len(part)
        if before <= LONGEST:
            self._begun += part[: LONGEST + 1 - before]
        if not before <= LONGEST < self.length:
            return []
        line = bytes(self._begun)
        self._begun.clear()
        return [line]


async def lines_of(descriptor: int | None = None) -> AsyncIterator[bytes]:
    """Yield the lines of standard input, or of *descriptor*, one when it is asked for.

    One that is too long is as `Lines` gives it; one that does not end even so is the last. No
    thread waits for them, and nothing holds up the end of the program.
    """
    if descriptor is None:
        if sys.stdin is None:
            return
        descriptor = sys.stdin.fileno()
    lines, has_ended = Lines(), False
    while not has_ended and lines.length <= _ENDLESS:
        await _until_readable(descriptor)
        try:
            piece = os.read(descriptor, _PIECE)
        except BlockingIOError:
            continue
        except OSError:  # the other end is gone
            break
        for line in lines.cut(piece):
            yield line
        has_ended = not piece
    for line in filter(None, lines.rest()):
        yield line


async def _until_readable(descriptor: int) -> None:
    loop, is_readable = asyncio.get_running_loop(), asyncio.Event()
    try:
        loop.add_reader(descriptor, is_readable.set)
    except (OSError, ValueError):  # a file or /dev/null: always readable
        await asyncio.sleep(0)
        return
    try:
        await is_readable.wait()
    finally:
        loop.remove_reader(descriptor)


def whole() -> str:
    """Return the text on standard input, without its last line break; what is no text is replaced.

    Raises:
        LongInputError: it does not end.
    """
    read = sys.stdin.buffer.read(LONGEST + 1)
    if len(read) > LONGEST:
        raise LongInputError(size=LONGEST)
    return read.decode("utf-8", "replace").rstrip("\r\n")


def piped() -> str:
    """Return what stands in a pipe or a file at standard input.

    A pipe that stays open, which a parent may have left to us, is waited for, but not in silence.
    """
    kind = os.fstat(sys.stdin.fileno()).st_mode
    if not (stat.S_ISFIFO(kind) or stat.S_ISREG(kind) or stat.S_ISSOCK(kind)):
        return ""  # a terminal, /dev/null
    if not select.select([sys.stdin], [], [], _SECONDS_OF_SILENCE)[0]:
        said = _("leftfold: waiting for the end of standard input; use </dev/null if none comes")
        click.echo(said, err=True)
    return whole()
