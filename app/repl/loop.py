"""The REPL: prompt, command or turn, again; and every way in which that can end.

The loop owns the signals. Ctrl+C stops the turn that runs, and a second one, while it is being
stopped, leaves; SIGTERM and SIGHUP stop it and leave. In each case the turn gets the time to
record what it did.
"""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from app.bootstrap import working_directory
from app.errors import DONE, EXPECTED, FAILED, explanation, name_of, traceback_of
from app.i18n import _
from app.repl import slash
from app.repl.attachments import Attachments
from app.repl.command import parsed
from app.repl.desk import Desk
from app.repl.meanwhile import Meanwhile
from app.repl.suspending import modes_at_start, stoppable
from app.repl.typed_ahead import quiet_terminal
from app.repl.work import Work
from app.signals import owned
from app.view.console import is_gone, say
from domain.events import MessageAppended
from domain.text import valid

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from app.open_conversation import OpenConversation
    from app.repl.context import ReplContext
    from app.repl.meanwhile import Waiting


async def run(context: ReplContext) -> int:
    """Talk until the person leaves; return the exit code."""
    return await Repl(context).run()


class Repl:
    """One run of the REPL."""

    def __init__(self, context: ReplContext) -> None:
        self.context = context
        self.console = context.console
        self.meanwhile = Meanwhile(self, context.line)
        self._attachments = Attachments(self._directory, self._say)
        self.desk = Desk(context, self.meanwhile, self._attachments.of_queued)
        self._work = Work(self.desk)
        self._has_failed = False
        self._first = context.first  # as long as it has not been done
        self._taken_up: OpenConversation | None = None  # that had its waiting calls taken up
        context.screen.watch(self.meanwhile.refresh)

    # -- for what is typed meanwhile -----------------------------------------------------------

    @property
    def open_conversation(self) -> OpenConversation:
        """The conversation that is worked in."""
        return self.desk.open_conversation

    def show_waiting(self, waiting: Sequence[Waiting]) -> None:
        """Show what waits."""
        self.context.screen.show_waiting(waiting)

    def show_nothing(self) -> None:
        """Take what is under way off the screen."""
        self.context.screen.rest()

    def show_said(self, text: str) -> None:
        """Show a queued prompt that the model gets now."""
        self.context.screen.prompted(text)
        self._attachments.say_of(text)

    def complain(self, error: BaseException) -> None:
        """Say what went wrong; the REPL goes on."""
        self._explain(error)

    def stop(self) -> None:
        """Stop what is being done."""
        self._work.stop()

    def interrupt(self) -> None:
        """Stop what is being done; a second time leaves."""
        self._work.interrupt()

    # -- the loop ------------------------------------------------------------------------------

    async def run(self) -> int:
        """Talk until the person leaves; return the exit code."""
        modes_at_start()
        stopping = stoppable(self.meanwhile.keep_what_nobody_read)
        with owned(self._work.on_signal), stopping, self.context.attention.kept():
            self._greet()
            while self.desk.exit_code is None:
                await self._do(await self._next())
            self._take_leave()
        return self.desk.exit_code

    def _greet(self) -> None:
        """Show what was said before, and below it, next to the prompt, the banner."""
        self.desk.show_past()
        if self.context.banner:
            self.desk.say(self.context.banner)
            self.console.line()

    async def _next(self) -> str | None:
        """Return the prompt or command that is to be done next; None for what waits in the log."""
        if self._waits_for_approval():
            self.desk.say(_("The last turn was waiting for your approval."), "yellow")
            return None
        first, self._first = self._first, ""
        if prompt := first or self.meanwhile.next_command():
            self.context.screen.prompted(prompt)
            return prompt
        return None if self.meanwhile.is_queued() else await self._typed()

    def _waits_for_approval(self) -> bool:
        """Whether a crash ended a turn at the question whether its calls may run: said once."""
        if self._taken_up is self.open_conversation:
            return False
        self._taken_up = self.open_conversation
        conversation = self.desk.recorded()
        if conversation is None or not self.context.prompts.is_interactive:
            return False
        return bool(conversation.open_calls()) and self.desk.agent().is_waiting()

    async def _typed(self) -> str:
        """Return what was typed; leave if nothing will be."""
        offered = self.desk.take_offered()
        if offered or self.context.line is None:  # else the line stands where it is
            offered = "\n\n".join(text for text in (offered, self.meanwhile.draft()) if text)
        reading = self.context.prompts.read(default=offered)
        task = await self._work.finished(reading, is_prompt=True)
        typed = None if task.cancelled() else task.result()
        if typed is None or is_gone(self.console):
            is_unseen = self._has_failed and not self.context.prompts.is_interactive
            self.desk.leave(FAILED if is_unseen or is_gone(self.console) else DONE)
        return typed or ""

    async def _do(self, prompt: str | None) -> None:
        """Obey a command, or take a turn with *prompt*, None: with what waits in the log.

        What was typed, and is in no log and not obeyed, stands in the next prompt.
        """
        if self.desk.exit_code is not None or (prompt is not None and not prompt.strip()):
            return
        since = self._version()
        if prompt is not None and (command := parsed(prompt)) is not None:
            lost = not await self._is_done(slash.run(self.desk, *command))
            prompt = None
        else:
            lost = not await self._is_done(self._turn(prompt), is_turn=True)
            self._has_failed |= lost
        if self.desk.exit_code is None:  # else it stays queued
            if lost:
                first = prompt if prompt is not None and not self._is_saved(prompt, since) else ""
                texts = [first, self.meanwhile.take_all()]
                self.desk.offer("\n\n".join(text for text in texts if text))
            self.console.line()

    async def _turn(self, prompt: str | None) -> str:
        agent = self.desk.agent()
        self.context.screen.turn_started()
        if prompt is None:
            return await agent.go_on()
        return await agent.run_turn(prompt, await self._attachments.of(prompt))

    async def _is_done(self, work: Coroutine[Any, Any, object], *, is_turn: bool = False) -> bool:
        """Do *work*, which Esc and Ctrl+C stop; return whether it came to a good end."""
        with suppress(Exception):  # the store may be gone; the work will say so
            self.context.attention.look_at(self.open_conversation.conversation)
        self.context.attention.begins()
        try:
            with quiet_terminal():
                async with self.meanwhile.reading(is_turn=is_turn):
                    task = await self._work.finished(work)
        finally:
            self.context.screen.rest()
        has_ended = task.done() and not task.cancelled()
        error = task.exception() if has_ended else None
        result = task.result() if has_ended and error is None else None
        self.context.attention.ends(has_failed=error is not None or result == "failed")
        if error is not None:
            self._explain(error)
        elif not has_ended:
            self.console.line()
            say(self.console, _("Interrupted."), "yellow")
        return has_ended and error is None and result in (None, "done")

    # -- what the log has ----------------------------------------------------------------------

    def _say(self, text: str, style: str) -> None:
        self.desk.say(text, style)

    def _directory(self) -> Path:
        settings = self.context.factory.settings
        return Path(working_directory(self.open_conversation.conversation, settings.cwd))

    def _version(self) -> int:
        """Return the version that the store has; 0 if it has none or does not say."""
        with suppress(Exception):
            if conversation := self.desk.recorded():
                return conversation.version
        return 0

    def _is_saved(self, prompt: str, since: int) -> bool:
        """Whether *prompt* is in the log after the version *since*."""
        try:
            conversation = self.desk.recorded()
        except EXPECTED:
            return False
        text = valid(prompt)
        entries = conversation.since(since + 1) if conversation else ()
        contents = (entry.content for entry in entries if isinstance(entry, MessageAppended))
        return any((content.role, content.prompt) == ("user", text) for content in contents)

    # -- errors, and the end -------------------------------------------------------------------

    def _explain(self, error: BaseException) -> None:
        """Say what went wrong; the REPL goes on."""
        self._has_failed = True
        told = explanation(error)
        if told is not None:
            self.desk.say(told[0], "red")
        else:
            self.desk.say(
                _("Unexpected error: {what}").format(what=name_of(error)),
                "red",
            )
        if self.context.is_debugging:
            self.desk.say(traceback_of(error), "dim")
        elif told is None:
            self.desk.say(_("(this is a bug; with LEFTFOLD_DEBUG=1 it shows where)"), "dim")

    def _take_leave(self) -> None:
        """Keep what was not sent; say how to come back, if there is anything to come back to."""
        for text in (*self.meanwhile.unsent(), self.desk.take_offered()):
            self.context.prompts.keep(text)
        try:
            conversation = self.desk.recorded()
        except EXPECTED:
            return
        if conversation is not None:
            way = _("To resume: leftfold -r {id}").format(id=self.open_conversation.id)
            say(self.console, way, "dim")
