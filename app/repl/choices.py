"""A choice of a few words that a person makes in the REPL, between two prompts."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.repl.loop import Repl


async def choose(repl: Repl, question: str, words: Sequence[str], default: str) -> str:
    """Ask *question*, and return one of *words*, of which the beginning will do.

    Everything else, also Ctrl+C and the end of the input, is the *default*. What was typed before
    the question is no answer to it.
    """
    from app.repl.line_session import LineSession  # noqa: PLC0415 - only here
    from app.repl.typed_ahead import throw_away_input  # noqa: PLC0415

    session: LineSession[str] = LineSession(f"{question} ({', '.join(words)}) [{default}]: ")
    with repl.meanwhile.paused():
        throw_away_input(session.app.input)
        try:
            answer = (await session.prompt_async(handle_sigint=False)).strip().lower()
        except (EOFError, KeyboardInterrupt, OSError):
            return default
    return next((word for word in words if answer and word.startswith(answer)), default)
