"""What is typed while the agent works: queued in the log at once, shown, and taken back.

A prompt is queued durably, whatever is at work, and delivered by the agent: after the current
tools, or as the next thing to do. A command (``/model x``, ``!ls``, ``q``) waits here for the end
of the work, also of a stopped one. The prompts that a stopped turn leaves undelivered go back into
the line, so that nothing is said by surprise.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, asynccontextmanager, nullcontext, suppress
from functools import partial
from typing import TYPE_CHECKING, NamedTuple

from app.explanations import EXPECTED
from app.repl.command import parsed
from app.repl.unread_terminal import typed_ahead
from domain.conversation import Conversation

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from app.open_conversation import OpenConversation
    from app.repl.desk import Desk
    from domain.events import Version


class Waiting(NamedTuple):
    """What was typed and waits: a prompt, by its version in the log; or a command, by none."""

    text: str
    version: Version | None = None


class TypeAhead:
    """Listens to the line of the *desk*, if it has one, while work goes on there."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._line = desk.line
        self._is_turn = False
        self._is_reading = False
        self._waiting: list[Waiting] = []
        self._pressed: asyncio.Event | None = None
        self._ahead = ""  # without a line: what was typed before a question, or when work stopped

    @asynccontextmanager
    async def reading(self, *, is_turn: bool) -> AsyncIterator[None]:
        """Read what is typed; in a turn, also show what other programs have queued."""
        self._is_turn = is_turn
        async with nullcontext() if self._line is None else self._line.reading(self):
            self._is_reading = self._line is not None
            try:
                self.refresh()
                yield
            finally:
                self._is_reading = False
                self.refresh()
                self._desk.screen.show_waiting(())

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Leave the terminal to somebody else meanwhile: no key is taken, nothing is drawn."""
        self._desk.screen.rest()
        self.keep_what_nobody_read()
        return nullcontext() if self._line is None else self._line.paused()

    async def pressed(self, seconds: float) -> bool:
        """Wait for *seconds*, or until any key is pressed; return whether one was.

        Esc and Ctrl+C stop nothing meanwhile. A character that was typed is the beginning of the
        next prompt; a blank, or the q that leaves a pager, has done what it should.
        """
        self._pressed = asyncio.Event()
        try:
            with suppress(TimeoutError):
                await asyncio.wait_for(self._pressed.wait(), seconds)
            if self._line is not None and self._line.text.strip() in ("", "q"):
                self._line.take()
            return self._pressed.is_set()
        finally:
            self._pressed = None

    def keep_what_nobody_read(self) -> None:
        """Keep what was typed without a line: a question would throw it away."""
        if self._line is None and (typed := typed_ahead()):
            self._ahead = f"{self._ahead}\n{typed}".strip()

    def refresh(self) -> None:
        """Show what was delivered since, and what waits still."""
        queue = self._queue()
        for text, version in self._waiting:
            if version is not None and version not in queue:
                self._desk.screen.prompted(text)
                self._desk.attachments.say_of(text)
        self._waiting = [one for one in self._waiting if one.version in (None, *queue)]
        if self._is_turn:
            known = {one.version for one in self._waiting}
            new = [version for version in queue if version not in known]
            self._waiting += [Waiting(queue[version], version) for version in new]
        if self._is_reading:
            self._desk.screen.show_waiting(self._waiting)

    def next_command(self) -> str | None:
        """Return the command that is to be run next, and forget it; None for a prompt's turn."""
        if self._waiting and self._waiting[0].version is None:
            return self._waiting.pop(0).text
        return None

    def is_queued(self) -> bool:
        """Whether a prompt that was typed here waits in the log."""
        queue = self._queue()
        return any(version in queue for _, version in self._waiting)

    def take_all(self) -> str:
        """Take back the prompts that are not delivered, and the line; commands wait on."""
        self.refresh()
        self.keep_what_nobody_read()
        texts = [one.text for one in self._waiting if one.version and self._withdraw(one.version)]
        self._waiting = [one for one in self._waiting if one.version is None]
        return "\n\n".join(text for text in (*texts, self.draft()) if text)

    def draft(self) -> str:
        """Return the unfinished line, and clear it."""
        if self._line is not None:
            return self._line.take()
        ahead, self._ahead = self._ahead, ""
        return ahead

    def unsent(self) -> list[str]:
        """Return, in the end, what is in no log: the commands that wait, the unfinished line."""
        return [*(one.text for one in self._waiting if one.version is None), self.draft()]

    def move(self, before: OpenConversation) -> None:
        """Queue in the open conversation what was queued in the one *before* it."""
        waiting, self._waiting = self._waiting, []
        for text, version in waiting:
            if version is None:
                self._waiting.append(Waiting(text))
                continue
            self._queue_prompt(text)
            with suppress(Exception):  # it is said there, too, if that goes on
                before.record(partial(Conversation.withdraw_prompt, target=version))

    # -- the keys ------------------------------------------------------------------------------

    def pressed_key(self) -> None:
        """A key was pressed, whichever."""
        if self._pressed is not None:
            self._pressed.set()

    def entered(self, text: str) -> None:
        """Queue a prompt in the log; keep a command for later."""
        if parsed(text) is not None:
            self._waiting.append(Waiting(text))
        else:
            self._queue_prompt(text)
        self.refresh()

    def took_back(self) -> str | None:
        """Take back what was typed last."""
        self.refresh()
        if not self._waiting:
            return None
        text, version = self._waiting[-1]
        if version is not None and not self._withdraw(version):
            return None
        self._waiting.pop()
        self.refresh()
        return text

    def stop(self) -> None:
        """Stop the work."""
        if self._pressed is None:
            self._desk.work.stop()

    def complain(self, error: BaseException) -> None:
        """Say what went wrong with the line."""
        self._desk.complain(error)

    def interrupt(self) -> None:
        """Stop the work, or leave."""
        if self._pressed is None:
            self._desk.work.interrupt()

    # ------------------------------------------------------------------------------------------

    def _queue(self) -> dict[Version, str]:
        try:
            return dict(self._desk.open_conversation.conversation.queue)
        except EXPECTED:
            return {}

    def _queue_prompt(self, text: str) -> None:
        """Queue *text* in the log; what cannot be stands in the line again."""
        if self._is_recorded(lambda conversation: conversation.queue_prompt(text)):
            version, text = next(reversed(self._queue().items()))
            self._waiting.append(Waiting(text, version))
        elif self._line is not None:
            self._line.give_back(text)

    def _withdraw(self, version: Version) -> bool:
        """Take a prompt out of the queue; return whether it is out, and nobody will say it."""
        return self._is_recorded(lambda conversation: conversation.withdraw_prompt(version))

    def _is_recorded(self, change: Callable[[Conversation], None]) -> bool:
        """Record *change*; say what went wrong if that cannot be."""
        try:
            self._desk.open_conversation.record(change)
        except Exception as error:  # noqa: BLE001 - it came from a key: nobody else can tell
            self._desk.complain(error)
            return False
        return True
