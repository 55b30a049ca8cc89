"""Choices of a few words that a person makes in the REPL, between two prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app_session

from app import held_back, missing_directory
from app.repl.line_session import ask_line
from app.repl.typed_ahead import throw_away_input

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.repl.desk import Desk


async def choose(desk: Desk, question: str, words: Sequence[str], default: str) -> str:
    """Ask *question*, and return one of *words*, of which the beginning will do.

    Everything else, also Ctrl+C and the end of the input, is the *default*. What was typed before
    the question is no answer to it.
    """
    async with desk.meanwhile.paused():
        throw_away_input(get_app_session().input)
        line = await ask_line(f"{question} ({', '.join(words)}) [{default}]: ", is_kept=True)
    answer = (line or "").strip().lower()
    return next((word for word in words if answer and word.startswith(answer)), default)


async def choose_directory(desk: Desk, gone: str, here: str) -> str:
    """Ask where to go on with a conversation whose directory is *gone*."""
    told, question = missing_directory.question(gone, here)
    desk.say(told)
    return await choose(desk, question, missing_directory.CHOICES, "cancel")


async def settle_queue(desk: Desk) -> None:
    """Show the prompts that were not queued here, and ask what is to become of them."""
    waiting = dict(desk.conversation.held_back)
    if waiting:
        for line in held_back.queued_lines(waiting.values()):
            desk.say(line)
        choice = await choose(desk, held_back.question(), held_back.CHOICES, held_back.KEEP)
        held_back.settle(desk.open_conversation, waiting, choice)
