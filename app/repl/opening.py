"""Opens the REPL: its parts, put together by the settings and by what the terminal can."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer

from app.approvers import AllowAll, RefuseAll
from app.bootstrap import working_directory
from app.repl import loop, slash
from app.repl.approval import AskingApprover
from app.repl.attention import Attention
from app.repl.banner import banner
from app.repl.bottom import Bottom, Silence
from app.repl.completion import PromptCompleter
from app.repl.context import ReplContext
from app.repl.pastes import Pastes
from app.repl.prompt import TerminalPrompts, is_interactive, prompts
from app.repl.screen import RichScreen
from app.repl.status import StatusLine
from app.view.console import console, is_fancy
from domain.text import valid
from infrastructure.model.client import preload

if TYPE_CHECKING:
    from rich.console import Console

    from app.bootstrap import AgentFactory
    from app.open_conversation import OpenConversation
    from app.ports import Approver
    from app.repl.prompt import Prompts


async def run(factory: AgentFactory, open_conversation: OpenConversation, first: str | None) -> int:
    """Talk in the open conversation, beginning with *first*; return the exit code."""
    terminal = console()
    status, completer = StatusLine(factory), PromptCompleter(factory, slash.TABLE)
    is_rich = is_fancy(terminal) and is_interactive()

    def look_at(open_conversation: OpenConversation) -> None:
        status.look_at(open_conversation)
        completer.look_at(open_conversation)

    asked = prompts(
        factory.settings.home / "history",
        completer=completer if is_rich else None,
        toolbar=status if is_rich else None,
        on_shown=preload,
        is_vi=factory.settings.editing_mode == "vi",
    )
    bottom = _bottom(terminal, asked)
    return await loop.run(
        ReplContext(
            console=terminal,
            screen=RichScreen(terminal, bottom),
            prompts=asked,
            factory=factory,
            open_conversation=open_conversation,
            make_approver=lambda open_conversation: _approver(factory, terminal, open_conversation),
            banner=banner(factory, open_conversation.conversation),
            first=valid(first or ""),
            on_switch=look_at,
            line=bottom,
            attention=_attention(terminal, rings=is_rich and factory.settings.bell),
            is_debugging=bool(os.environ.get("LEFTFOLD_DEBUG")),
        )
    )


def _bottom(terminal: Console, asked: Prompts) -> Bottom | None:
    """Return what draws below what is printed, where escape codes may be used."""
    if not is_fancy(terminal):
        return None
    if isinstance(asked, TerminalPrompts):
        return Bottom(terminal, asked.buffer, asked.pastes)
    return Bottom(terminal, Buffer(), Pastes(), source=Silence())


def _approver(
    factory: AgentFactory, terminal: Console, open_conversation: OpenConversation
) -> Approver:
    """Return who decides in a conversation: what is said once holds in that one only."""
    if factory.settings.yes:
        return AllowAll()
    if not is_interactive():
        return RefuseAll()
    cwd = working_directory(open_conversation.conversation, factory.settings.cwd)
    return AskingApprover(terminal, cwd=Path(cwd))


def _attention(terminal: Console, *, rings: bool) -> Attention:
    def call(codes: str) -> None:
        terminal.file.write(codes)
        terminal.file.flush()

    return Attention(call if rings else lambda _: None)
