"""A person at the terminal decides whether a tool may act: all of it is shown, then keys are read.

Nothing is drawn while the question stands, so it is the same on every terminal, also a dumb one:
what is asked scrolls by as text, and the answer comes from the keys alone.
"""

from __future__ import annotations

import asyncio
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import TYPE_CHECKING

from prompt_toolkit.key_binding import KeyBindings

from app.approvers import approval
from app.i18n import _
from app.repl.answer_keys import AnswerKeys
from app.repl.applications import take_escape_soon
from app.repl.line_session import LineSession
from app.repl.question import Question

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from pathlib import Path
    from typing import TypeAlias

    from rich.console import Console

    from app.ports import Approval, Proposal

    Ask: TypeAlias = Callable[[dict[str, str], Callable[[], None]], Awaitable[str]]

STOP, AGAIN = "stop", "again"
"""Answers that decide nothing: end the turn, put the question once more."""
_DECLINING = ("no", "reason")
"""All that counts before the call has been shown whole."""


class AskingApprover:
    """Asks the person at the terminal: yes, always (this tool, or this command), or no.

    What "always" allows is in the conversation, which works in *cwd*. The terminal is left to the
    question while *asking* is entered. *ask* waits for one of some words, calls a function for what
    is none, and returns what the word stands for, or that the person stopped, or must be asked
    again; *ask_why* waits for a reason. Both do so at the terminal by default.
    """

    def __init__(
        self,
        console: Console,
        *,
        cwd: Path,
        asking: Callable[[], AbstractAsyncContextManager[None]] = nullcontext,
        ask: Ask | None = None,
        ask_why: Callable[[], Awaitable[str | None]] | None = None,
    ) -> None:
        self._console = console
        self._cwd = cwd
        self._asking = asking
        self._ask = ask or (lambda words, explain: AnswerKeys(words, explain).answer())
        self._ask_why = ask_why or ask_why_at_terminal

    async def decide(self, proposal: Proposal) -> Approval:
        """Return what the person decided. It counts only when all of the call has been shown.

        Raises:
            asyncio.CancelledError: the person stopped the turn instead (Ctrl+C, Esc, the end of
                the input). Nothing was decided: the call is recorded as never started.
        """
        question = await asyncio.to_thread(Question, proposal, self._cwd, self._console)
        async with self._asking():
            question.show()
            while True:
                answer = await self._answer(question)
                why = await self._ask_why() if answer == "reason" else ""
                if why is not None:
                    return approval(answer, proposal.call, reason=why)
                question.choose_again()

    async def _answer(self, question: Question) -> str:
        while True:
            answer = await self._ask(question.words, question.explain)
            if answer == AGAIN:
                question.show()
                continue
            question.answered(answer)
            if answer == STOP:
                raise asyncio.CancelledError
            if answer in _DECLINING or question.is_shown_whole:
                return answer
            question.show_all()


async def ask_why_at_terminal() -> str | None:
    """Ask for a reason, one line; an empty one is none. Return None to go back (Esc).

    Raises:
        asyncio.CancelledError: the person stopped the turn instead (Ctrl+C, Ctrl+D).
    """
    keys = KeyBindings()
    keys.add("escape")(lambda event: event.app.exit(result=None))
    message = _("Why not? (Enter: refuse · Esc: back · Ctrl+C: stop) ")
    session: LineSession[str | None] = LineSession(message, keys)
    take_escape_soon(session.app, is_key_of_its_own=True)
    try:
        return await session.prompt_async(handle_sigint=False)
    except (EOFError, KeyboardInterrupt, OSError):
        raise asyncio.CancelledError from None
