"""A conversation whose directory has moved or vanished: where to go on is a person's decision.

Nobody is surprised by tools that run somewhere else (case H6): who can be asked is asked, who
cannot has to say ``--here``.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Literal

import click

from app.errors import DirectoryGoneError
from app.i18n import _
from app.repl.plain import plain
from domain.events import Started

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations
    from app.repl.loop import Repl
    from app.settings import Settings

Choice = Literal["here", "fork", "cancel"]
CHOICES: tuple[Choice, ...] = ("here", "fork", "cancel")


def gone_directory(
    conversations: Conversations, conversation_id: UUID, chosen: Settings, *, is_asked: bool
) -> str | None:
    """Return the directory of a conversation if it is gone, and somebody must say where to go on.

    Raises:
        DirectoryGoneError: it is, nobody can be asked, and ``--here`` was not given.
    """
    first = next(conversations.events_of(conversation_id, limit=1), None)
    cwd = first.cwd if isinstance(first, Started) else None
    if cwd is None or Path(cwd).is_dir() or chosen.here:
        return None
    if not is_asked:
        raise DirectoryGoneError(cwd, chosen.cwd)
    return cwd


def ask(gone: str, here: str) -> Choice:
    """Ask whether to go on *here*, in a copy, or not at all."""
    told, question = _told(gone, here)
    click.echo(told, err=True)
    choices = click.Choice(CHOICES)
    picked: Choice = click.prompt(question, type=choices, default="cancel", err=True)
    return picked


async def ask_in_repl(repl: Repl, gone: str, here: str) -> Choice:
    """Ask the same of a person who is in the REPL."""
    from prompt_toolkit.shortcuts import PromptSession  # noqa: PLC0415 - only here

    told, question = _told(gone, here)
    repl.say(told)
    session: PromptSession[str] = PromptSession(f"{question} ({', '.join(CHOICES)}) [cancel]: ")
    with repl.meanwhile.paused():
        try:
            answer = (await session.prompt_async(handle_sigint=False)).strip().lower()
        except (EOFError, KeyboardInterrupt, OSError):
            return "cancel"
    return next((choice for choice in CHOICES if answer and choice.startswith(answer)), "cancel")


def _told(gone: str, here: str) -> tuple[str, str]:
    """Return what a person is told, and asked."""
    return (
        _("The directory of this conversation is gone: {gone}").format(gone=plain(gone)),
        _("Go on in {cwd}, or in a copy there").format(cwd=plain(here)),
    )
