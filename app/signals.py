"""Who is told of Ctrl+C, SIGTERM and SIGHUP: one owner at a time; before that, see `app.start`."""

from __future__ import annotations

import asyncio
import signal
from contextlib import contextmanager
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

INTERRUPTED, HUNG_UP, TERMINATED = 130, 129, 143
_CODES = {signal.SIGINT: INTERRUPTED, signal.SIGHUP: HUNG_UP, signal.SIGTERM: TERMINATED}


@contextmanager
def owned(on_signal: Callable[[int], object]) -> Iterator[None]:
    """Call *on_signal*, in the running loop, with the exit code that belongs to each signal.

    A hang-up that is ignored (``nohup``) stays ignored.
    """
    loop = asyncio.get_running_loop()
    before = {number: signal.getsignal(number) for number in _CODES}
    if before[signal.SIGHUP] is signal.SIG_IGN:
        del before[signal.SIGHUP]
    for number in before:
        loop.add_signal_handler(number, on_signal, _CODES[number])
    try:
        yield
    finally:
        for number, handler in before.items():
            loop.remove_signal_handler(number)
            signal.signal(number, handler)
