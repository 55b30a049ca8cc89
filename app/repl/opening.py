"""Opens the REPL: its parts, put together by the settings and by what the terminal can."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING

from app.approvers import AllowAll, RefuseAll
from app.bootstrap import working_directory
from app.repl import loop
from app.repl.approval import AskingApprover
from app.repl.attention import Attention
from app.repl.banner import banner
from app.repl.completion import PromptCompleter
from app.repl.context import ReplContext
from app.repl.prompt import is_interactive, prompts
from app.repl.screen import RichScreen
from app.repl.status import StatusLine
from app.repl.typing_line import TypingLine
from app.view.console import console, is_fancy
from domain.text import valid
from infrastructure.model.client import preload

if TYPE_CHECKING:
    from rich.console import Console

    from app.application import OpenConversation
    from app.bootstrap import Workshop
    from app.ports import Approver


async def run(workshop: Workshop, at_hand: OpenConversation, first: str | None) -> int:
    """Talk in the conversation at hand, beginning with *first*; return the exit code."""
    terminal = console()
    status, completer = StatusLine(workshop), PromptCompleter(workshop)
    is_rich = is_fancy(terminal) and is_interactive()

    def look_at(at_hand: OpenConversation) -> None:
        status.look_at(at_hand)
        completer.look_at(at_hand)

    return await loop.run(
        ReplContext(
            console=terminal,
            screen=RichScreen(terminal),
            prompts=prompts(
                workshop.settings.home / "history",
                completer=completer if is_rich else None,
                toolbar=status if is_rich else None,
                on_shown=preload,
                is_vi=workshop.settings.editing_mode == "vi",
            ),
            workshop=workshop,
            at_hand=at_hand,
            make_approver=lambda at_hand: _approver(workshop, terminal, at_hand),
            banner=banner(workshop, at_hand.conversation),
            first=valid(first or ""),
            on_switch=look_at,
            line=TypingLine() if is_rich else None,
            attention=_attention(terminal, rings=is_rich and workshop.settings.bell),
            is_debugging=bool(os.environ.get("LEFTFOLD_DEBUG")),
        )
    )


def _approver(workshop: Workshop, terminal: Console, at_hand: OpenConversation) -> Approver:
    """Return who decides in a conversation: what is said once holds in that one only."""
    if workshop.settings.yes:
        return AllowAll()
    if not is_interactive():
        return RefuseAll()
    cwd = working_directory(at_hand.conversation, workshop.settings.cwd)
    return AskingApprover(terminal, cwd=Path(cwd))


def _attention(terminal: Console, *, rings: bool) -> Attention:
    def call(codes: str) -> None:
        terminal.file.write(codes)
        terminal.file.flush()

    return Attention(call if rings else lambda _: None)
