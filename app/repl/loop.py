"""The REPL: prompt, command or turn, again; and every way in which that can end.

The loop owns the signals. Ctrl+C stops the turn that runs, and a second one, while it is being
stopped, leaves; SIGTERM and SIGHUP stop it and leave. In each case the turn gets the time to
record what it did.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from app.bootstrap import working_directory
from app.errors import DONE, FAILED, explanation, name_of, traceback_of
from app.i18n import _
from app.repl import slash
from app.repl.attachments import attached
from app.repl.command import parsed
from app.repl.desk import Desk
from app.repl.meanwhile import Meanwhile
from app.repl.suspending import modes_at_start, stoppable
from app.repl.typed_ahead import quiet_terminal
from app.signals import INTERRUPTED, owned
from app.view.console import is_gone, say
from domain.events import MessageAppended
from domain.text import valid

if TYPE_CHECKING:
    from collections.abc import Coroutine, Sequence

    from app.open_conversation import OpenConversation
    from app.repl.context import ReplContext
    from app.repl.meanwhile import Waiting
    from domain.messages import JsonObject

Result = TypeVar("Result")

_SECONDS_TO_STOP = 3.0


async def run(context: ReplContext) -> int:
    """Talk until the person leaves; return the exit code."""
    return await Repl(context).run()


class Repl:
    """One run of the REPL."""

    def __init__(self, context: ReplContext) -> None:
        self.context = context
        self.console = context.console
        self.meanwhile = Meanwhile(self, context.line)
        self.desk = Desk(context, self.meanwhile, self._attached_to_queued)
        self._has_failed = False
        self._said_of_files: dict[str, list[tuple[str, str]]] = {}  # by the queued prompt
        self._current: asyncio.Task[Any] | None = None
        self._is_at_work = False
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
        for line, style in self._said_of_files.pop(text, ()):
            self.desk.say(line, style)

    def complain(self, error: BaseException) -> None:
        """Say what went wrong; the REPL goes on."""
        self._explain(error)

    def stop(self) -> None:
        """Stop what is being done, once: a second time would disturb its tidying up."""
        if self._current is not None and not self._current.cancelling():
            self._current.cancel()

    def interrupt(self) -> None:
        """Stop what is being done; where nothing is, or a second time, leave."""
        if not self._is_at_work or (self._current is not None and self._current.cancelling()):
            self.desk.leave(INTERRUPTED)
        self.stop()

    # -- the loop ------------------------------------------------------------------------------

    async def run(self) -> int:
        """Talk until the person leaves; return the exit code."""
        modes_at_start()
        stopping = stoppable(self.meanwhile.keep_what_nobody_read)
        with owned(self._on_signal), stopping, self.context.attention.kept():
            self._greet()
            await self._begin()
            while self.desk.exit_code is None:
                await self._take_up()
                if self.desk.exit_code is None:
                    await self._once()
            self._take_leave()
        return self.desk.exit_code

    def _greet(self) -> None:
        """Show what was said before, and below it, next to the prompt, the banner."""
        self.desk.show_past()
        if self.context.banner:
            self.desk.say(self.context.banner)
            self.console.line()

    async def _begin(self) -> None:
        """Do what the command line says is to be done first, after what waits."""
        await self._take_up()
        if self.context.first and self.desk.exit_code is None:
            self.context.screen.prompted(self.context.first)
            await self._do(self.context.first)

    async def _take_up(self) -> None:
        """Go on with a turn that a crash ended at the question whether its calls may run."""
        if self._taken_up is self.open_conversation:
            return
        self._taken_up = self.open_conversation
        conversation = self.desk.recorded()
        if conversation is None or not self.context.prompts.is_interactive:
            return
        if conversation.open_calls() and self.desk.agent().is_waiting():
            self.desk.say(_("The last turn was waiting for your approval."), "yellow")
            await self._take_turn(None)
            if self.desk.exit_code is None:
                self.console.line()

    async def _once(self) -> None:
        """Read one prompt and do what it says."""
        if (command := self.meanwhile.next_command()) is not None:
            self.context.screen.prompted(command)
            await self._do(command)
            return
        if self.meanwhile.is_queued():
            await self._take_turn(None)
            self.console.line()
            return
        offered = self.desk.take_offered()
        if offered or self.context.line is None:  # else the line stands where it is
            offered = "\n\n".join(text for text in (offered, self.meanwhile.draft()) if text)
        task = await self._finished(self.context.prompts.read(default=offered))
        read = None if task.cancelled() else task.result()
        await self._heed(read)

    async def _heed(self, prompt: str | None) -> None:
        """Do what was typed; leave if nothing will be."""
        if prompt is None or is_gone(self.console):
            is_unseen = self._has_failed and not self.context.prompts.is_interactive
            self.desk.leave(FAILED if is_unseen or is_gone(self.console) else DONE)
        elif prompt.strip():
            await self._do(prompt)

    async def _do(self, prompt: str) -> None:
        command = parsed(prompt)
        if command is None:
            await self._take_turn(prompt)
        else:
            await self._obey(*command)
        if self.desk.exit_code is None:
            self.console.line()

    async def _obey(self, name: str, arguments: str) -> None:
        """Run a command; Ctrl+C stops it as it stops a turn."""
        task = await self._at_work(slash.run(self.desk, name, arguments))
        if task is None or task.cancelled() or task.exception() is not None:
            self._offer_what_was_typed()

    async def _at_work(
        self, work: Coroutine[Any, Any, Result], *, is_turn: bool = False
    ) -> asyncio.Task[Result] | None:
        """Do *work*, which Esc and Ctrl+C stop; return its task if it came to its own end."""
        self._is_at_work = True
        with suppress(Exception):  # the store may be gone; the work will say so
            self.context.attention.look_at(self.open_conversation.conversation)
        self.context.attention.begins()
        try:
            with quiet_terminal():
                async with self.meanwhile.reading(is_turn=is_turn):
                    task = await self._finished(work)
        finally:
            self._is_at_work = False
            self.context.screen.rest()
        has_ended = task.done() and not task.cancelled()
        has_failed = has_ended and (task.exception() is not None or task.result() == "failed")
        self.context.attention.ends(has_failed=has_failed)
        if not has_ended:
            self.console.line()
            say(self.console, _("Interrupted."), "yellow")
        elif (error := task.exception()) is not None:
            self._explain(error)
        else:
            return task
        return None

    # -- a turn --------------------------------------------------------------------------------

    async def _take_turn(self, prompt: str | None) -> None:
        """Take a turn with *prompt*, None: with what waits."""
        since = self._version()
        task = await self._at_work(self._turn(prompt), is_turn=True)
        if task is not None and task.result() == "done":
            return
        self._has_failed = True
        is_lost = prompt is not None and task is None and not self._is_saved(prompt, since)
        self._offer_what_was_typed(prompt if is_lost else None)

    def _offer_what_was_typed(self, first: str | None = None) -> None:
        """Put what was typed, not delivered, into the next prompt; if we leave it stays queued."""
        if self.desk.exit_code is None:
            typed = [first or "", self.meanwhile.take_all()]
            self.desk.offer("\n\n".join(text for text in typed if text))

    async def _turn(self, prompt: str | None) -> str:
        agent = self.desk.agent()
        self.context.screen.turn_started()
        if prompt is None:
            return await agent.go_on()
        return await agent.run_turn(prompt, await self._attached(prompt))

    async def _attached(self, prompt: str) -> list[JsonObject]:
        """Return the blocks of the files that *prompt* mentions; say what became of each."""
        blocks, said = await self._files_of(prompt)
        for line, style in said:
            self.desk.say(line, style)
        return blocks

    async def _attached_to_queued(self, prompt: str) -> list[JsonObject]:
        """Return the same for a queued prompt: what became of its files is said below it."""
        blocks, self._said_of_files[prompt] = await self._files_of(prompt)
        return blocks

    async def _files_of(self, prompt: str) -> tuple[list[JsonObject], list[tuple[str, str]]]:
        settings = self.context.factory.settings
        cwd = working_directory(self.open_conversation.conversation, settings.cwd)
        return await attached(prompt, Path(cwd))

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
        except Exception as error:
            if explanation(error) is None:
                raise
            return False
        text = valid(prompt)
        entries = conversation.since(since + 1) if conversation else ()
        contents = (entry.content for entry in entries if isinstance(entry, MessageAppended))
        return any((content.role, content.prompt) == ("user", text) for content in contents)

    # -- errors and signals --------------------------------------------------------------------

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

    async def _finished(self, work: Coroutine[Any, Any, Result]) -> asyncio.Task[Result]:
        """Run *work* as the task that signals stop, and return it when it is over.

        Work that was told to stop and then to leave gets a moment, and is left behind.
        """
        task = asyncio.ensure_future(work)
        leaving = asyncio.ensure_future(self.desk.left.wait())
        self._current = task
        try:
            await asyncio.wait({task, leaving}, return_when=asyncio.FIRST_COMPLETED)
            if not task.done():
                await asyncio.wait({task}, timeout=_SECONDS_TO_STOP)
        finally:
            leaving.cancel()
            self._current = None
        return task

    def _on_signal(self, code: int) -> None:
        if code == INTERRUPTED:
            self.interrupt()
        else:
            self.desk.leave(code)
            self.stop()

    def _take_leave(self) -> None:
        """Keep what was not sent; say how to come back, if there is anything to come back to."""
        for text in (*self.meanwhile.unsent(), self.desk.take_offered()):
            self.context.prompts.keep(text)
        try:
            conversation = self.desk.recorded()
        except Exception as error:
            if explanation(error) is None:
                raise
            return
        if conversation is not None:
            way = _("To resume: leftfold -r {id}").format(id=self.open_conversation.id)
            say(self.console, way, "dim")
