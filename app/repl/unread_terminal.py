"""The terminal while nobody reads it: its modes, what is typed meanwhile, a stop of the program.

The program stops by Ctrl+Z, which is a key while the terminal is raw, or by SIGTSTP from elsewhere:
with the terminal as it was found. It goes on where it was.
"""

from __future__ import annotations

import os
import re
import select
import signal
import sys
import termios
from contextlib import AbstractContextManager, contextmanager, nullcontext, suppress
from functools import cache
from typing import TYPE_CHECKING

from prompt_toolkit.input.typeahead import clear_typeahead

from app.terminal import is_dumb, is_interactive
from domain.text import valid

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    from prompt_toolkit.input import Input

    Modes: TypeAlias = list[Any]

_PIECE = 65536
_OTHER_KEYS = re.compile("\x1b(?:\\[[0-9;?]*[@-~]|O.)")
_DELETED = re.compile("[^\n\x7f\x08][\x7f\x08]")


@cache
def modes_at_start() -> Modes | None:
    """Return the modes of the terminal when this was called first: before any was changed."""
    try:
        return termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError):
        return None


def suspend() -> None:
    """Stop this program and what runs beside it in a pipe, until the shell lets it go on.

    Tools have process groups of their own, and go on. What was typed meanwhile was for others.
    """
    if modes_at_start() is not None:
        _stop(0)


@contextmanager
def stoppable(before_stop: Callable[[], None]) -> Iterator[None]:
    """Leave the terminal as it was found also when somebody else stops the program meanwhile.

    *before_stop* is called then: what stands in the terminal's queue will be the shell's.
    """

    def stop(_number: int, _frame: object) -> None:
        before_stop()
        _stop(os.getpid())

    before = signal.getsignal(signal.SIGTSTP)
    if before is not signal.SIG_IGN:
        signal.signal(signal.SIGTSTP, stop)
    try:
        yield
    finally:
        signal.signal(signal.SIGTSTP, before)


def _stop(target: int) -> None:
    """Stop the process, or with 0 its whole group, until SIGCONT comes."""
    handler = signal.signal(signal.SIGTSTP, signal.SIG_DFL)
    try:
        with modes_meanwhile(lambda _: modes_at_start(), until=termios.TCSAFLUSH):
            os.kill(target, signal.SIGTSTP)
    finally:
        signal.signal(signal.SIGTSTP, handler)


@contextmanager
def modes_meanwhile(
    of: Callable[[Modes], Modes | None], *, until: int = termios.TCSADRAIN
) -> Iterator[None]:
    """Give the terminal the modes that *of* makes of its own, and these back: *until* says how.

    Where there is no terminal, or one that has gone, nothing is done.
    """
    try:
        before = termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError):
        yield
        return
    with suppress(termios.error, OSError):
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, of([*before]) or before)
    try:
        yield
    finally:
        with suppress(termios.error, OSError):
            termios.tcsetattr(sys.stdin, until, before)


def quiet_terminal() -> AbstractContextManager[None]:
    """Keep what is typed meanwhile off the screen; the next prompt gets it, key by key.

    The system would edit whole lines of it: it took the end of a paste for a deleted word, say. On
    a dumb terminal, where nobody reads meanwhile, it would also throw all of it away at Ctrl+C.
    """

    def quiet(modes: Modes) -> Modes:
        modes[3] &= ~(termios.ECHO | termios.ICANON)
        modes[3] |= termios.NOFLSH if is_dumb() else 0
        return modes

    return modes_meanwhile(quiet) if is_interactive() else nullcontext()


def typed_ahead() -> str:
    """Take what was typed at a terminal while nobody read it; as text, without other keys."""
    typed = b""
    if is_interactive():
        with suppress(OSError, ValueError):
            while select.select([sys.stdin], [], [], 0)[0]:
                if not (piece := os.read(sys.stdin.fileno(), _PIECE)):
                    break
                typed += piece
    text = _OTHER_KEYS.sub("", valid(typed.decode("utf-8", "replace")).replace("\r", "\n"))
    while (edited := _DELETED.sub("", text)) != text:
        text = edited
    return "".join(each for each in text if each.isprintable() or each == "\n").strip()


def throw_away_input(source: Input) -> None:
    """Forget what was typed and not read yet."""
    clear_typeahead(source)
    with suppress(OSError, ValueError, NotImplementedError, termios.error):
        if os.isatty(source.fileno()):
            termios.tcflush(source.fileno(), termios.TCIFLUSH)
