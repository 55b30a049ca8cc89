"""The program stops with the terminal as it was found, and goes on where it was.

It stops by Ctrl+Z, which is a key while the terminal is raw, or by SIGTSTP from elsewhere.
"""

from __future__ import annotations

import os
import signal
import sys
import termios
from contextlib import contextmanager, suppress
from functools import cache
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from typing import Any, TypeAlias

    Modes: TypeAlias = list[Any]


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
