"""The desk: the open conversation, and what a slash command may do with it. It knows no loop."""

from __future__ import annotations

import os
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING

from app.bootstrap import working_directory
from app.explanations import explanation, name_of, traceback_of
from app.i18n import _
from app.repl.attachments import Attachments
from app.repl.attention import Attention
from app.repl.type_ahead import TypeAhead
from app.repl.work import Work
from app.view.console import say
from app.view.plain import plain
from domain.errors import InvalidCommandError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from rich.console import Console

    from app.agent import Agent
    from app.bootstrap import AgentFactory
    from app.open_conversation import OpenConversation
    from app.ports import Approver
    from app.repl.bottom import Bottom
    from app.repl.prompt import Prompts
    from app.repl.screen import RichScreen
    from domain.conversation import Conversation


@dataclass(kw_only=True, eq=False)
class Desk:
    """The open conversation, the agent that works in it, and where both are shown.

    Attributes:
        console: Where all is printed.
        screen: Who watches the turns.
        prompts: Where prompts come from.
        factory: Makes conversations, and the agents that work in them.
        open_conversation: The conversation to go on in: new, or resumed.
        make_approver: Makes the approver of the open conversation: what it was told once holds in
            that one only.
        attention: Calls the person who looks elsewhere.
        line: What is typed while the agent works is read from here, if anywhere.
        has_failed: Whether something went wrong.
        offered: What stands in the next prompt, to be edited.
        work: What is being done, and whether the program goes on after it.
        attachments: The files that prompts mention.
        type_ahead: What is typed while the agent works.
    """

    console: Console
    screen: RichScreen
    prompts: Prompts
    factory: AgentFactory
    open_conversation: OpenConversation
    make_approver: Callable[[Desk], Approver]
    attention: Attention = field(default_factory=lambda: Attention(lambda _: None))
    line: Bottom | None = None
    has_failed: bool = False
    offered: str = ""
    _agent: Agent | None = None

    def __post_init__(self) -> None:
        self.work = Work()
        self.attachments = Attachments(self)
        self.type_ahead = TypeAhead(self)
        self.screen.on_request = self.type_ahead.refresh

    @property
    def is_interactive(self) -> bool:
        """Whether a person reads and types."""
        return self.prompts.is_interactive

    @property
    def is_at_terminal(self) -> bool:
        """Whether lists to choose from can be shown."""
        return self.is_interactive and self.line is not None

    # -- the conversation ----------------------------------------------------------------------

    @property
    def conversation(self) -> Conversation:
        """The open conversation as its log has it."""
        return self.open_conversation.conversation

    @property
    def directory(self) -> Path:
        """Where the tools of the open conversation run."""
        return Path(working_directory(self.conversation, self.factory.settings.cwd))

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
            self.type_ahead.move(before)
            self.factory.let_go(before.id)
        self._agent = None

    def agent(self) -> Agent:
        """Return the agent that works in the open conversation."""
        if self._agent is None:
            self._agent = self.factory.agent(
                self.open_conversation,
                approver=self.make_approver(self),
                screen=self.screen,
                attach=self.attachments.of_queued,
            )
        return self._agent

    # -- the person ----------------------------------------------------------------------------

    def say(self, text: str, style: str = "") -> None:
        """Print *text*, which may come from a log, a model or a tool."""
        say(self.console, plain(text), style)

    def complain(self, error: BaseException) -> None:
        """Say what went wrong; the REPL goes on."""
        self.has_failed = True
        expected = explanation(error)
        if expected is not None:
            self.say(expected[0], "red")
        else:
            self.say(_("Unexpected error: {what}").format(what=name_of(error)), "red")
        if os.environ.get("LEFTFOLD_DEBUG"):
            self.say(traceback_of(error), "dim")
        elif expected is None:
            self.say(_("(this is a bug; with LEFTFOLD_DEBUG=1 it shows where)"), "dim")

    @asynccontextmanager
    async def asking(self) -> AsyncIterator[None]:
        """Leave the terminal to a question of the agent, and call the person to it."""
        async with self.type_ahead.paused():
            with self.attention.asking():
                yield
