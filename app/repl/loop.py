"""The REPL: prompt, command or turn, again; and every way in which that can end.

The loop owns the signals. Ctrl+C stops the turn that runs, and a second one, while it is being
stopped, leaves; SIGTERM and SIGHUP stop it and leave. In each case the turn gets the time to
record what it did.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

from app.errors import DONE, FAILED
from app.explanations import EXPECTED
from app.i18n import _
from app.repl import slash
from app.repl.command import parsed
from app.repl.unread_terminal import modes_at_start, quiet_terminal, stoppable
from app.signals import owned
from app.view.console import is_gone, say
from domain.events import MessageAppended
from domain.text import valid

if TYPE_CHECKING:
    from collections.abc import Coroutine

    from app.open_conversation import OpenConversation
    from app.repl.desk import Desk


class Repl:
    """One run of the REPL at the *desk*, which does *first* as if it were typed."""

    def __init__(self, desk: Desk, *, first: str = "") -> None:
        self._desk = desk
        self._first = first  # as long as it has not been done
        self._taken_up: OpenConversation | None = None  # that had its waiting calls taken up

    async def run(self) -> int:
        """Talk until the person leaves; return the exit code."""
        work, type_ahead = self._desk.work, self._desk.type_ahead
        modes_at_start()
        stopping = stoppable(type_ahead.keep_what_nobody_read)
        with owned(work.on_signal), stopping, self._desk.attention.kept():
            while work.exit_code is None:
                await self._do(await self._next())
            self._take_leave()
        return work.exit_code

    async def _next(self) -> str | None:
        """Return the prompt or command that is to be done next; None for what waits in the log."""
        if self._waits_for_approval():
            self._desk.say(_("The last turn was waiting for your approval."), "yellow")
            return None
        first, self._first = self._first, ""
        if prompt := first or self._desk.type_ahead.next_command():
            self._desk.screen.prompted(prompt)
            return prompt
        return None if self._desk.type_ahead.is_queued() else await self._typed()

    def _waits_for_approval(self) -> bool:
        """Whether a crash ended a turn at the question whether its calls may run: said once."""
        if self._taken_up is self._desk.open_conversation:
            return False
        self._taken_up = self._desk.open_conversation
        conversation = self._desk.recorded()
        if conversation is None or not self._desk.is_interactive:
            return False
        return bool(conversation.open_calls()) and self._desk.agent().is_waiting()

    async def _typed(self) -> str:
        """Return what was typed; leave if nothing will be."""
        desk = self._desk
        offered, desk.offered = desk.offered, ""
        if offered or desk.line is None:  # else the line stands where it is
            offered = "\n\n".join(text for text in (offered, desk.type_ahead.draft()) if text)
        task = await desk.work.finished(desk.prompts.read(default=offered), is_prompt=True)
        typed = None if task.cancelled() else task.result()
        if typed is None or is_gone(desk.console):
            is_unseen = desk.has_failed and not desk.is_interactive
            desk.work.leave(FAILED if is_unseen or is_gone(desk.console) else DONE)
        return typed or ""

    async def _do(self, prompt: str | None) -> None:
        """Obey a command, or take a turn with *prompt*, None: with what waits in the log.

        What was typed, and is in no log and not obeyed, stands in the next prompt.
        """
        desk = self._desk
        if desk.work.exit_code is not None or (prompt is not None and not prompt.strip()):
            return
        since = self._version()
        if prompt is not None and (command := parsed(prompt)) is not None:
            lost = not await self._is_done(slash.run(desk, *command))
            prompt = None
        else:
            lost = not await self._is_done(self._turn(prompt), is_turn=True)
            desk.has_failed |= lost
        if desk.work.exit_code is None:  # else it stays queued
            if lost:
                first = prompt if prompt is not None and not self._is_saved(prompt, since) else ""
                texts = [first, desk.type_ahead.take_all()]
                desk.offered = "\n\n".join(text for text in texts if text)
            desk.console.line()

    async def _turn(self, prompt: str | None) -> str:
        agent = self._desk.agent()
        self._desk.screen.turn_started()
        if prompt is None:
            return await agent.go_on()
        return await agent.run_turn(prompt, await self._desk.attachments.of(prompt))

    async def _is_done(self, work: Coroutine[Any, Any, object], *, is_turn: bool = False) -> bool:
        """Do *work*, which Esc and Ctrl+C stop; return whether it came to a good end."""
        desk, attention = self._desk, self._desk.attention
        with suppress(Exception):  # the store may be gone; the work will say so
            attention.look_at(desk.conversation)
        attention.begins()
        try:
            with quiet_terminal():
                async with desk.type_ahead.reading(is_turn=is_turn):
                    task = await desk.work.finished(work)
        finally:
            desk.screen.rest()
        has_ended = task.done() and not task.cancelled()
        error = task.exception() if has_ended else None
        result = task.result() if has_ended and error is None else None
        attention.ends(has_failed=error is not None or result == "failed")
        if error is not None:
            desk.complain(error)
        elif not has_ended:
            desk.console.line()
            say(desk.console, _("Interrupted."), "yellow")
        return has_ended and error is None and result in (None, "done")

    # -- what the log has ----------------------------------------------------------------------

    def _version(self) -> int:
        """Return the version that the store has; 0 if it has none or does not say."""
        with suppress(Exception):
            if conversation := self._desk.recorded():
                return conversation.version
        return 0

    def _is_saved(self, prompt: str, since: int) -> bool:
        """Whether *prompt* is in the log after the version *since*."""
        try:
            conversation = self._desk.recorded()
        except EXPECTED:
            return False
        text = valid(prompt)
        entries = conversation.since(since + 1) if conversation else ()
        contents = (entry.content for entry in entries if isinstance(entry, MessageAppended))
        return any((content.role, content.prompt) == ("user", text) for content in contents)

    def _take_leave(self) -> None:
        """Keep what was not sent; say how to come back, if there is anything to come back to."""
        for text in (*self._desk.type_ahead.unsent(), self._desk.offered):
            self._desk.prompts.keep(text)
        try:
            conversation = self._desk.recorded()
        except EXPECTED:
            return
        if conversation is not None:
            way = _("To resume: leftfold -r {id}").format(id=conversation.id)
            say(self._desk.console, way, "dim")
