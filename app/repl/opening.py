"""Opens the REPL: its parts, put together by the settings and by what the terminal can."""

from __future__ import annotations

from functools import partial
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
from app.repl.prompt import LinePrompts, Prompts, TerminalPrompts
from app.repl.restored import about, about_home
from app.repl.screen import RichScreen
from app.view.console import console, is_fancy
from app.view.transcript import show_entry, show_past
from domain.text import valid
from infrastructure.model.client import preload

if TYPE_CHECKING:
    from rich.console import Console

    from app.bootstrap import AgentFactory
    from app.open_conversation import OpenConversation
    from app.ports import Approver
    from app.repl.first_prompt import FirstPrompt
    from domain.events import Version


async def run(
    factory: AgentFactory,
    open_conversation: OpenConversation,
    first: str | None,
    prompt: FirstPrompt | None,
    entry: Version | None = None,
) -> int:
    """Talk in the open conversation, beginning with *first*; return the exit code.

    A person has a *prompt*; what was said before, an *entry* that was looked for, and the banner
    come above it if it stands.
    """
    terminal = console()
    prompts = LinePrompts() if prompt is None else prompt.prompts
    is_rich = is_fancy(terminal) and prompt is not None
    bottom = _bottom(terminal, prompts)
    desk = Desk(
        console=terminal,
        screen=RichScreen(terminal, bottom),
        prompts=prompts,
        factory=factory,
        open_conversation=open_conversation,
        make_approver=_approver,
        attention=_attention(terminal, rings=is_rich and factory.settings.keys.bell),
        line=bottom,
    )
    if prompt is None:
        greet(desk, entry=entry)
    else:
        prompt.status.look_at(desk)
        prompt.completer.become(PromptCompleter(desk, slash.TABLE))
        await prompt.prompts.above(partial(greet, desk, has_banner=prompt.has_greeted, entry=entry))
        prompt.prompts.once_shown(preload)
    return await Repl(desk, first=valid(first or "")).run()


def greet(desk: Desk, *, has_banner: bool = False, entry: Version | None = None) -> None:
    """Show what was said before, and below it, next to the prompt, the banner."""
    if has_banner:
        for line in about_home(desk.factory):
            desk.say(line)
        return
    show_past(desk.console, desk.conversation)
    show_entry(desk.console, desk.conversation, entry)
    told = about(desk.factory, desk.conversation)
    desk.say(banner(desk.factory.settings, str(desk.conversation.model), str(desk.directory), told))
    desk.console.line()


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
