"""Ctrl+Z: the program stops with the terminal as it was found, and goes on where it was."""

from __future__ import annotations

import os
import signal
import sys
import termios
from contextlib import suppress
from functools import cache


@cache
def modes_at_start() -> list[int | list[bytes | int]] | None:
    """Return the modes of the terminal when this was called first: before any was changed."""
    try:
        return termios.tcgetattr(sys.stdin)
    except (termios.error, OSError, ValueError):
        return None


def suspend() -> None:
    """Stop this program and what runs beside it in a pipe, until the shell lets it go on.

    Tools have process groups of their own, and go on. What was typed meanwhile was for others.
    """
    modes = modes_at_start()
    if modes is None:
        return
    with suppress(termios.error, OSError, ValueError):
        before = termios.tcgetattr(sys.stdin)
        termios.tcsetattr(sys.stdin, termios.TCSADRAIN, modes)
        try:
            os.kill(0, signal.SIGTSTP)
        finally:
            termios.tcsetattr(sys.stdin, termios.TCSAFLUSH, before)
