"""Opens the REPL: its parts, put together by the settings and by what the terminal can."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.buffer import Buffer

from app.approvers import AllowAll, RefuseAll
from app.repl import slash
from app.repl.approval import AskingApprover
from app.repl.attention import Attention
from app.repl.banner import banner
from app.repl.bottom import Bottom, Silence
from app.repl.completion import PromptCompleter
from app.repl.desk import Desk
from app.repl.loop import Repl
from app.repl.pastes import Pastes
from app.repl.prompt import LinePrompts, TerminalPrompts, is_interactive
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

    prompts: Prompts = LinePrompts()
    if is_interactive():
        prompts = TerminalPrompts(
            factory.settings.home / "history",
            completer=completer if is_rich else None,
            toolbar=status if is_rich else None,
            on_shown=preload,
            is_vi=factory.settings.keys.editing_mode == "vi",
        )
    bottom = _bottom(terminal, prompts)
    desk = Desk(
        console=terminal,
        screen=RichScreen(terminal, bottom),
        prompts=prompts,
        factory=factory,
        open_conversation=open_conversation,
        make_approver=_approver,
        on_switch=look_at,
        attention=_attention(terminal, rings=is_rich and factory.settings.keys.bell),
        line=bottom,
    )
    greeting = banner(factory, open_conversation.conversation)
    return await Repl(desk, banner=greeting, first=valid(first or "")).run()


def _bottom(terminal: Console, prompts: Prompts) -> Bottom | None:
    """Return what draws below what is printed, where escape codes may be used."""
    if not is_fancy(terminal):
        return None
    if isinstance(prompts, TerminalPrompts):
        return Bottom(terminal, prompts.buffer, prompts.pastes)
    return Bottom(terminal, Buffer(), Pastes(), source=Silence())


def _approver(desk: Desk) -> Approver:
    """Return who decides in the open conversation: what is said once holds in that one only."""
    if desk.factory.settings.keys.yes:
        return AllowAll()
    if not desk.is_interactive:
        return RefuseAll()
    return AskingApprover(desk.console, cwd=desk.directory, asking=desk.asking)


def _attention(terminal: Console, *, rings: bool) -> Attention:
    def call(codes: str) -> None:
        terminal.file.write(codes)
        terminal.file.flush()

    return Attention(call if rings else lambda _: None)
