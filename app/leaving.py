"""Work that goes on until its reader leaves: by ``q``, by Ctrl+C, or by closing the pipe."""

from __future__ import annotations

import os
import select
import signal
import sys
import termios
from contextlib import contextmanager, suppress
from threading import Thread
from typing import TYPE_CHECKING, NoReturn

import click

from app.i18n import _
from app.terminal import is_interactive

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

_QUIT = b"q"
_SHELL_ADDS = 128
"""What the exit code has more than the number of the signal."""
_IN_BACKGROUND = 500
"""Milliseconds between two looks whether the terminal's keys are for this program again."""


def until_left(work: Callable[[], object], stop: Callable[[], object]) -> None:
    """Do *work* until it ends, or its reader leaves; then *stop* has to end it, from outside.

    Raises:
        KeyboardInterrupt: it was Ctrl+C.
        SystemExit: it was SIGTERM or SIGHUP.
        Exception: whatever *work* has raised.
    """
    problems: list[BaseException] = []
    is_over, over = os.pipe()

    def do() -> None:
        try:
            work()
        except BaseException as problem:  # noqa: BLE001 - raised again where it is waited for
            problems.append(problem)
        finally:
            os.close(over)

    worker = Thread(target=do)
    try:
        with _signals(), _keys():
            worker.start()
            try:
                _wait(is_over)
            finally:
                stop()
                worker.join()
    finally:
        os.close(is_over)
    if problems:
        raise problems[0]


def _wait(is_over: int) -> None:
    """Return when the pipe *is_over* says that there is no more to do, or when nobody looks."""
    poll = select.poll()
    poll.register(is_over, select.POLLIN)
    if not sys.stdout.isatty():
        with suppress(OSError):  # it may be no file of the system's
            poll.register(sys.stdout.fileno(), 0)  # a pipe that nobody reads says so by itself
    has_keys = is_interactive()
    while True:
        reads_keys = has_keys and _is_in_foreground()
        if reads_keys:
            poll.register(sys.stdin.fileno(), select.POLLIN)
        ready = dict(poll.poll(_IN_BACKGROUND if has_keys and not reads_keys else None))
        if reads_keys:
            poll.unregister(sys.stdin.fileno())
        if not ready:
            continue
        if ready.keys() != {sys.stdin.fileno()}:
            return
        with suppress(OSError):
            if _is_in_foreground() and os.read(sys.stdin.fileno(), 1) not in (_QUIT, b""):
                continue
        return


def _is_in_foreground() -> bool:
    """Whether the keys of the terminal are this program's: reading others' would stop it."""
    with suppress(OSError):
        return os.tcgetpgrp(sys.stdin.fileno()) == os.getpgrp()
    return False


@contextmanager
def _signals() -> Iterator[None]:
    """Let signals end what is waited for, not the program at once: there is something to stop."""

    def end(number: int, _frame: object) -> NoReturn:
        raise SystemExit(_SHELL_ADDS + number)

    handlers = {signal.SIGINT: signal.default_int_handler, signal.SIGTERM: end, signal.SIGHUP: end}
    if signal.getsignal(signal.SIGHUP) is signal.SIG_IGN:
        del handlers[signal.SIGHUP]
    before = {number: signal.signal(number, handler) for number, handler in handlers.items()}
    try:
        yield
    finally:
        for number, handler in before.items():
            signal.signal(number, handler)


@contextmanager
def _keys() -> Iterator[None]:
    """Have each key at once, and not on the screen, where a person is; and say which one ends."""
    if not (is_interactive() and _is_in_foreground()):
        yield
        return
    click.echo(_("({key} ends this)").format(key="q"), err=True)
    before = termios.tcgetattr(sys.stdin)
    changed = [*before]
    changed[3] &= ~(termios.ECHO | termios.ICANON)
    termios.tcsetattr(sys.stdin, termios.TCSADRAIN, changed)
    try:
        yield
    finally:
        with suppress(termios.error, OSError):
            termios.tcsetattr(sys.stdin, termios.TCSADRAIN, before)
