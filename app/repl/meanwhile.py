"""What is typed while the agent works: queued in the log at once, shown, and taken back.

A prompt is queued durably and delivered by the agent: after the current tools, or at the end of
the turn. A command (``/model x``, ``!ls``) waits for the end of the turn here. What a stopped
turn leaves undelivered goes back into the next prompt, so that nothing is said by surprise.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import contextmanager, nullcontext, suppress
from typing import TYPE_CHECKING, Protocol

from app.errors import explanation
from app.repl import slash

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from contextlib import AbstractContextManager

    from app.application import OpenConversation
    from app.ports import Approval, Approver
    from app.repl.typing_line import TypingLine
    from domain.events import Version
    from domain.messages import ToolUseBlock

    class Workplace(Protocol):
        """Where the work goes on."""

        @property
        def at_hand(self) -> OpenConversation:
            """The conversation that is worked in."""

        def show_typing(self, text: str, queued: Sequence[str]) -> None:
            """Show the line that is being typed, and what is queued."""

        def show_said(self, text: str) -> None:
            """Show a queued prompt that the model gets now."""

        def complain(self, error: BaseException) -> None:
            """Say what went wrong."""

        def stop(self) -> None:
            """Stop what is being done."""

        def interrupt(self) -> None:
            """Stop what is being done; a second time leaves."""


class Meanwhile:
    """Listens to the *line*, if there is one, while *workplace* is at work.

    Attributes:
        ahead: What was typed and is to be done next, in order.
    """

    def __init__(self, workplace: Workplace, line: TypingLine | None) -> None:
        self.ahead: deque[str] = deque()
        self._workplace = workplace
        self._line = line
        self._is_turn = False
        self._is_reading = False
        self._shown: dict[Version, str] = {}
        self._pressed = asyncio.Event()

    @contextmanager
    def reading(self, *, is_turn: bool) -> Iterator[None]:
        """Read what is typed; in a turn, prompts are queued for the agent."""
        if self._line is None:
            yield
            return
        self._is_turn = is_turn
        self._shown = self._queue() if is_turn else {}
        with self._line.reading(self):
            self._is_reading = True
            try:
                self._show()
                yield
            finally:
                self._is_reading = False
        self._workplace.show_typing("", ())

    def paused(self) -> AbstractContextManager[None]:
        """Leave the keyboard to somebody else meanwhile."""
        return nullcontext() if self._line is None else self._line.paused()

    async def pressed(self, seconds: float) -> bool:
        """Wait for *seconds*, or until a key is pressed; return whether one was."""
        self._pressed.clear()
        with suppress(TimeoutError):
            await asyncio.wait_for(self._pressed.wait(), seconds)
        if self._pressed.is_set() and self._line is not None:
            self._line.take()
            self._show()
        return self._pressed.is_set()

    def refresh(self) -> None:
        """Show what was delivered since, and what is queued still."""
        if self._line is None or not self._is_turn:
            return
        queue = self._queue()
        for version, text in self._shown.items():
            if version not in queue:
                self._workplace.show_said(text)
        self._shown = queue
        self._show()

    def is_queued(self) -> bool:
        """Whether a prompt waits in the log."""
        return bool(self._queue())

    def take_all(self) -> list[str]:
        """Take back what was typed and neither delivered nor done; return it in order."""
        self.refresh()
        queued = [text for version, text in self._shown.items() if self._withdraw(version)]
        self._shown = {}
        typed = [*queued, *self.ahead, self.draft()]
        self.ahead.clear()
        return [text for text in typed if text]

    def draft(self) -> str:
        """Return the unfinished line, and clear it."""
        return "" if self._line is None else self._line.take()

    # -- the typist ----------------------------------------------------------------------------

    def changed(self, text: str) -> None:
        """Show the line."""
        self._pressed.set()
        self._show(text)

    def entered(self, text: str) -> None:
        """Queue a prompt in the log; keep a command for later."""
        if not self._is_turn or slash.parsed(text) is not None:
            self.ahead.append(text)
        else:
            try:
                self._workplace.at_hand.record(lambda talk: talk.queue_prompt(text))
            except Exception as error:  # noqa: BLE001 - it came from a key: nobody else can tell
                self.ahead.append(text)
                self._workplace.complain(error)
        self.refresh()
        self._show()

    def took_back(self) -> str | None:
        """Take back what was typed last."""
        self.refresh()
        if self.ahead:
            return self.ahead.pop()
        if not self._shown:
            return None
        version, text = next(reversed(self._shown.items()))
        if not self._withdraw(version):
            return None
        del self._shown[version]
        return text

    def stop(self) -> None:
        """Stop the work."""
        self._workplace.stop()

    def interrupt(self) -> None:
        """Stop the work, or leave."""
        self._workplace.interrupt()

    # ------------------------------------------------------------------------------------------

    def _queue(self) -> dict[Version, str]:
        try:
            return dict(self._workplace.at_hand.conversation.queue)
        except Exception as error:
            if explanation(error) is None:
                raise
            return {}

    def _withdraw(self, version: Version) -> bool:
        """Take a prompt out of the queue; return whether it is out, and nobody will say it."""
        try:
            self._workplace.at_hand.record(lambda talk: talk.withdraw_prompt(version))
        except Exception as error:  # noqa: BLE001 - as above
            self._workplace.complain(error)
            return False
        return True

    def _show(self, text: str | None = None) -> None:
        if self._line is not None and self._is_reading:
            typed = self._line.text if text is None else text
            self._workplace.show_typing(typed, [*self._shown.values(), *self.ahead])


class PausingApprover:
    """Asks *approver*, with the keyboard left to it."""

    def __init__(self, approver: Approver, meanwhile: Meanwhile) -> None:
        self._approver = approver
        self._meanwhile = meanwhile

    async def decide(self, call: ToolUseBlock, summary: str) -> Approval | None:
        """Return what *approver* decides of *call*."""
        with self._meanwhile.paused():
            return await self._approver.decide(call, summary)
