"""Standard input, which may have no end: how much of it is taken, and its lines."""

from __future__ import annotations

import os
import select
import stat
import sys

import click

from app.errors import UsageError
from app.i18n import _

LONGEST = 64 * 1024 * 1024
"""Bytes of a line, or of a prompt: twice what the API takes in a request."""


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
