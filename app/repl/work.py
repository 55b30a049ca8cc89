"""What is being done: one thing at a time, which Esc, Ctrl+C and signals stop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any, TypeVar

from app.errors import DONE
from app.signals import INTERRUPTED

if TYPE_CHECKING:
    from collections.abc import Coroutine

Result = TypeVar("Result")

_SECONDS_TO_STOP = 3.0


class Work:
    """Does one thing at a time, until it ends, is stopped, or the person leaves.

    Attributes:
        exit_code: What the program ends with; None while it goes on.
    """

    def __init__(self) -> None:
        self.exit_code: int | None = None
        self._left = asyncio.Event()
        self._task: asyncio.Task[Any] | None = None
        self._is_prompt = True

    async def finished(
        self, work: Coroutine[Any, Any, Result], *, is_prompt: bool = False
    ) -> asyncio.Task[Result]:
        """Do *work* as the task that signals stop, and return it when it is over.

        Work that was told to stop and then to leave gets a moment, and is left behind. While a
        prompt is waited for, nothing is at work: to interrupt that is to leave.
        """
        task = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self._left.wait())
        self._task, self._is_prompt = task, is_prompt
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait({task}, timeout=_SECONDS_TO_STOP)
        finally:
            leaving.cancel()
            self._task, self._is_prompt = None, True
        return task

    def stop(self) -> None:
        """Stop what is being done, once: a second time would disturb its tidying up."""
        if self._task is not None and not self._task.cancelling():
            self._task.cancel()

    def interrupt(self) -> None:
        """Stop what is being done; where nothing is, or a second time, leave."""
        if self._is_prompt or (self._task is not None and self._task.cancelling()):
            self.leave(INTERRUPTED)
        self.stop()

    def on_signal(self, code: int) -> None:
        """Stop; and leave with *code*, if it is not the one of Ctrl+C."""
        if code == INTERRUPTED:
            self.interrupt()
        else:
            self.leave(code)
            self.stop()

    def leave(self, code: int = DONE) -> None:
        """End the REPL after what is being done now. The first code counts."""
        if self.exit_code is None:
            self.exit_code = code
        self._left.set()
