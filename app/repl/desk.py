"""The desk: the open conversation, and what a slash command may do with it. It knows no loop."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.errors import DONE
from app.i18n import _
from app.repl.meanwhile import PausingApprover
from app.view.console import say
from app.view.plain import plain
from app.view.transcript import show_past, show_place
from domain.errors import InvalidCommandError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Sequence
    from contextlib import AbstractAsyncContextManager

    from app.agent import Agent
    from app.compactor import Compactor
    from app.open_conversation import OpenConversation
    from app.repl.context import ReplContext
    from app.repl.meanwhile import Meanwhile
    from domain.conversation import Conversation
    from domain.messages import JsonObject


class Desk:
    """The open conversation, the agent that works in it, and where both are shown.

    Attributes:
        open_conversation: The conversation to go on in.
        console: Where it is shown.
        screen: Who watches its turns.
        factory: Makes conversations, and the agents that work in them.
        is_interactive: Whether a person reads and types.
        is_at_terminal: Whether lists to choose from can be shown.
        exit_code: What the program ends with; None while it goes on.
        left: Set when somebody has said that it shall end.
    """

    def __init__(
        self,
        context: ReplContext,
        meanwhile: Meanwhile,
        attach: Callable[[str], Awaitable[Sequence[JsonObject]]],
    ) -> None:
        """*attach* returns what goes with a queued prompt."""
        self.open_conversation = context.open_conversation
        self.console, self.screen = context.console, context.screen
        self.factory = context.factory
        self.is_interactive = context.prompts.is_interactive
        self.is_at_terminal = self.is_interactive and context.line is not None
        self.exit_code: int | None = None
        self.left = asyncio.Event()
        self._context, self._meanwhile, self._attach = context, meanwhile, attach
        self._agent: Agent | None = None
        self._offered = ""
        context.on_switch(self.open_conversation)

    # -- the conversation ----------------------------------------------------------------------

    @property
    def conversation(self) -> Conversation:
        """The open conversation as its log has it."""
        return self.open_conversation.conversation

    def recorded(self) -> Conversation | None:
        """Return the open conversation if the store has it."""
        conversation = self.conversation
        return None if conversation.pending_events else conversation

    def require_recorded(self) -> Conversation:
        """Return the open conversation.

        Raises:
            InvalidCommandError: the store has none yet.
        """
        conversation = self.recorded()
        if conversation is None:
            raise InvalidCommandError(_("Nothing is recorded yet."))
        return conversation

    def switch_to(self, open_conversation: OpenConversation) -> None:
        """Go on in another conversation."""
        before, self.open_conversation = self.open_conversation, open_conversation
        if open_conversation.id != before.id:
            self._meanwhile.move(before)
            self.factory.let_go(before.id)
        self._agent = None
        self._context.on_switch(open_conversation)

    def agent(self) -> Agent:
        """Return the agent that works in the open conversation."""
        if self._agent is None:
            context = self._context
            approver = context.make_approver(self.open_conversation)
            self._agent = self.factory.agent(
                self.open_conversation,
                approver=PausingApprover(approver, self._meanwhile, context.attention),
                screen=self.screen,
                attach=self._attach,
            )
        return self._agent

    @property
    def compactor(self) -> Compactor:
        """What summarises the open conversation, or parts of it."""
        return self.agent().compactor

    # -- the person ----------------------------------------------------------------------------

    def say(self, text: str, style: str = "") -> None:
        """Print *text*, which may come from a log, a model or a tool."""
        say(self.console, plain(text), style)

    def show_past(self) -> None:
        """Show what was said last."""
        if (conversation := self.recorded()) is not None:
            show_past(self.console, conversation)

    def show_place(self) -> None:
        """Show where the person is now: what was said last on the way there."""
        show_place(self.console, self.conversation)

    def paused(self) -> AbstractAsyncContextManager[None]:
        """Leave the terminal to a question, or to a list to choose from."""
        return self._meanwhile.paused()

    async def pressed(self, seconds: float) -> bool:
        """Wait for *seconds*, or until any key is pressed; return whether one was."""
        return await self._meanwhile.pressed(seconds)

    def offer(self, text: str) -> None:
        """Put *text* into the next prompt, to be edited."""
        self._offered = text

    def take_offered(self) -> str:
        """Return what was offered, once."""
        offered, self._offered = self._offered, ""
        return offered

    def leave(self, code: int = DONE) -> None:
        """End the REPL after what is being done now. The first code counts."""
        if self.exit_code is None:
            self.exit_code = code
        self.left.set()
