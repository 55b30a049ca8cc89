"""The console: where rich prints, and whether escape codes may be used on it.

rich is imported where a console is made: what is printed into a pipe does without.
"""

from __future__ import annotations

import os
import sys
from shutil import get_terminal_size
from typing import IO, TYPE_CHECKING, TextIO, cast

from app.terminal import is_dumb, is_looked_at

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console
    from rich.style import StyleType


class Terminal:
    """Standard output that cannot break a turn.

    A terminal that was closed, or a reader that went away, is noticed once; from then on what is
    written goes nowhere, and whatever runs comes to its proper end in the log.

    Attributes:
        above: Who prints above what is drawn at the bottom of the screen, while that is.
    """

    def __init__(self, file: TextIO) -> None:
        self._file = file
        self.is_gone = False
        self.above: Callable[[str], None] | None = None

    def __getattr__(self, name: str) -> object:
        return getattr(self._file, name)

    def write(self, text: str) -> int:
        """Write *text*, above what is drawn."""
        if self.above is None:
            return self.write_now(text)
        self.above(text)
        return len(text)

    def write_now(self, text: str) -> int:
        """Write *text*; characters that the terminal's encoding lacks are replaced."""
        try:
            return self._file.write(text)
        except UnicodeEncodeError:
            encoding = self._file.encoding or "ascii"
            return self._file.write(text.encode(encoding, "replace").decode(encoding))
        except OSError:
            self._go()
            return len(text)

    def flush(self) -> None:
        """Hand what was written to the system."""
        try:
            self._file.flush()
        except OSError:
            self._go()

    def _go(self) -> None:
        """Point the descriptor at nothing, so that the interpreter's own flush is quiet too."""
        self.is_gone = True
        nothing = os.open(os.devnull, os.O_WRONLY)
        os.dup2(nothing, self._file.fileno())
        os.close(nothing)


def console() -> Console:
    """Return the console of the REPL on standard output.

    A dumb terminal counts as no terminal: no escape codes at all. NO_COLOR, which rich and
    prompt_toolkit look at, takes away the colours alone.
    """
    from rich.console import Console  # noqa: PLC0415

    from app.view.colours import theme  # noqa: PLC0415

    return Console(
        file=cast("IO[str]", Terminal(sys.stdout)),
        force_terminal=False if is_dumb() else None,
        highlight=False,
        markup=False,
        emoji=False,
        theme=theme(),
    )


def is_for_people() -> bool:
    """Whether standard output is worth a console: a terminal, or one at the end of a pipe."""
    return is_looked_at() or bool(os.environ.get("FORCE_COLOR"))


def room() -> int | None:
    """Return how many cells a line of standard output has; None if that is no terminal."""
    return get_terminal_size().columns if is_looked_at() else None


def width(console: Console) -> int | None:
    """Return how many cells a line of *console* has; None where nobody looks at a screen."""
    return console.width if console.is_terminal else None


def is_fancy(console: Console) -> bool:
    """Whether escape codes may be used on *console*."""
    return console.is_terminal and not console.is_dumb_terminal


def is_gone(console: Console) -> bool:
    """Whether nobody can see *console* any more."""
    return isinstance(console.file, Terminal) and console.file.is_gone


def show(console: Console, text: str, style: StyleType = "") -> None:
    """Print plain lines as they are: the terminal breaks what is too long, and copies it whole.

    rich lays nothing out, so that also of millions of them it costs no more than to write them.
    """
    from rich.segment import Segment, Segments  # noqa: PLC0415

    line = [Segment(text, console.get_style(style)), Segment.line()]
    console.print(Segments(line), crop=False)


def say(console: Console, text: str, style: StyleType = "") -> None:
    """Print a line that is already plain: styled, and wrapped below its first word, if possible."""
    if not is_fancy(console):
        console.out(text, highlight=False)
        return
    from rich.text import Text  # noqa: PLC0415

    from app.view.wrapping import laid_out  # noqa: PLC0415

    for line in laid_out(text, console.width):
        console.print(Text(line, style=style), soft_wrap=True)
