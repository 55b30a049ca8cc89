"""The first prompt: it stands while what works behind it is still being imported.

To draw it takes prompt_toolkit and the settings; a thread then imports the conversation, its store,
rich and the rest. What is known of a conversation by then stands above the prompt already; else its
past and the banner come above it, before a key is taken.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import sys
from contextlib import asynccontextmanager
from shutil import get_terminal_size
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion, DummyCompleter

from app.repl.banner import banner
from app.repl.prompt import TerminalPrompts
from app.repl.status import StatusLine
from app.repl.unread_terminal import modes_at_start
from app.signals import owned
from app.terminal import is_dumb, is_interactive
from app.view.console import Terminal
from app.view.wrapping import laid_out

if TYPE_CHECKING:
    from collections.abc import AsyncGenerator, AsyncIterator, Iterable

    from prompt_toolkit.document import Document

    from app.bootstrap import AgentFactory
    from app.open_conversation import OpenConversation
    from app.settings import Settings
    from domain.events import Version


async def run(
    factory: AgentFactory,
    open_conversation: OpenConversation,
    first: str | None,
    prompt: FirstPrompt | None = None,
    *,
    entry: Version | None = None,
) -> int:
    """Talk in the open conversation, beginning with *first*; return the exit code.

    An *entry* that was looked for is shown. The *prompt* stands already, or does so as soon as it
    is known that it comes next.
    """
    if prompt is None and is_interactive():
        conversation, settings = open_conversation.conversation, factory.settings
        prompt = FirstPrompt(settings)
        if first is None and not is_dumb() and not conversation.open_calls():
            greeting = ""
            if conversation.pending_events:
                greeting = banner(settings, str(conversation.model), settings.cwd)
            async with prompt.standing(greeting):
                return await run(factory, open_conversation, first, prompt, entry=entry)
    opening = await asyncio.to_thread(importlib.import_module, "app.repl.opening")
    code: int = await opening.run(factory, open_conversation, first, prompt, entry)
    return code


class FirstPrompt:
    """The prompt of a person at a terminal.

    Attributes:
        prompts: Where it is typed.
        status: The line below it; until it is told of a conversation, that of a new one.
        completer: What Tab offers, as soon as it is known.
        has_greeted: Whether the banner stands above it.
    """

    def __init__(self, settings: Settings) -> None:
        self.status, self.completer = StatusLine(settings), LaterCompleter()
        self.prompts = TerminalPrompts(
            settings.home / "history",
            completer=None if is_dumb() else self.completer,
            toolbar=None if is_dumb() else self.status,
            is_vi=settings.keys.editing_mode == "vi",
        )
        self.has_greeted = False

    @asynccontextmanager
    async def standing(self, greeting: str = "") -> AsyncIterator[None]:
        """Let it stand below the *greeting*, meanwhile; go on when it is on the screen.

        Without one, no key is taken until something was printed `above` it. A signal ends the
        program: there is nothing to tidy up but the terminal.
        """
        modes_at_start()
        if greeting:
            self._greet(greeting)
        shown = asyncio.Event()
        self.prompts.once_shown(shown.set)
        reading = self.prompts.begin(is_deaf=not greeting)
        reading.add_done_callback(lambda _: shown.set())

        def leave(code: int) -> None:
            reading.add_done_callback(lambda _: os._exit(code))
            reading.cancel()

        with owned(leave):
            await shown.wait()
            yield

    def _greet(self, greeting: str) -> None:
        terminal = Terminal(sys.stdout)
        for line in laid_out(greeting, get_terminal_size().columns):
            terminal.write(f"{line}\n")
        terminal.write("\n")
        terminal.flush()
        self.has_greeted = True


class LaterCompleter(Completer):
    """Offers what another completer does, once that is there."""

    def __init__(self) -> None:
        self._completer: Completer = DummyCompleter()
        self._is_there = asyncio.Event()

    def become(self, completer: Completer) -> None:
        """Offer what *completer* does, from here on."""
        self._completer = completer
        self._is_there.set()

    def get_completions(
        self, document: Document, complete_event: CompleteEvent
    ) -> Iterable[Completion]:
        """Return what is known now."""
        return self._completer.get_completions(document, complete_event)

    async def get_completions_async(
        self, document: Document, complete_event: CompleteEvent
    ) -> AsyncGenerator[Completion, None]:
        """Yield what may stand at the cursor, when it is known."""
        await self._is_there.wait()
        for completion in self._completer.get_completions(document, complete_event):
            yield completion
