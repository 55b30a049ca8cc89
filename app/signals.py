"""Who is told of Ctrl+C, SIGTERM and SIGHUP: the last owner; before there is one, `app.start`."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERRUPTED, HUNG_UP, TERMINATED = 130, 129, 143
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGHUP: HUNG_UP, signal.SIGTERM: TERMINATED}

_owners: list[Callable[[int], object]] = []


@contextmanager
def owned(on_signal: Callable[[int], object]) -> Iterator[None]:
    """Call *on_signal*, in the running loop, with the exit code that belongs to each signal.

    Of several owners the last one is told. A hang-up that is ignored (``nohup``) stays ignored.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _CODES if not _owners}
    if before.get(signal.SIGHUP) is signal.SIG_IGN:
        del before[signal.SIGHUP]
    _owners.append(on_signal)
    for number in before:
        loop.add_signal_handler(number, _tell, _CODES[number])
    try:
        yield
    finally:
        _owners.pop()
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)


def _tell(code: int) -> None:
    _owners[-1](code)


@contextmanager
def keys_are_for_a_child() -> Iterator[None]:
    r"""Let Ctrl+C and Ctrl+\ stop the program that has the terminal meanwhile, and not this one.

    The kernel sends both signals to each program of the group; a child has the defaults again.
    """
    owner = _owners[-1] if _owners else None
    before = signal.signal(signal.SIGQUIT, lambda *_: None)
    try:
        with owned(lambda code: owner(code) if owner and code != INTERRUPTED else None):
            yield
    finally:
        signal.signal(signal.SIGQUIT, before)
