"""Who decides whether a tool may act: a person at the terminal, nobody, or `--yes`.

rich and prompt_toolkit are imported only by what asks: `leftfold -p` needs neither.
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Literal, TypeAlias

from app.repl.plain import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from prompt_toolkit.application import Application
    from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent
    from rich.console import Console

    from domain.messages import ToolUseBlock

Decision: TypeAlias = Literal["yes", "always", "no", "stop"]

NOBODY = (
    "This tool needs the user's approval, and nobody is there to give it "
    "(the user can run leftfold with --yes to allow it)."
)
DECLINED = (
    "The user declined this call, and it was not run. Do not make it again in another form; "
    "ask what to do instead, or go on without it."
)
_SECONDS_FOR_A_WORD = 0.3
_DECISIONS: dict[str, Decision] = {"y": "yes", "a": "always", "n": "no"}


class AllowAll:
    """Lets every tool act: ``--yes``."""

    async def refusal(self, call: ToolUseBlock, summary: str) -> str | None:  # noqa: ARG002
        """Refuse nothing."""
        return None


class RefuseAll:
    """Lets no tool act that needs approval: nobody is there to ask."""

    def __init__(self, reason: str = NOBODY) -> None:
        self._reason = reason

    async def refusal(self, call: ToolUseBlock, summary: str) -> str | None:  # noqa: ARG002
        """Refuse, and say why."""
        return self._reason


class AskingApprover:
    """Asks the person at the terminal: yes, always for this tool in this conversation, or no.

    One per conversation: what "always" allows is forgotten with it. *ask* puts the question; by
    default at the terminal.
    """

    def __init__(
        self, console: Console, *, ask: Callable[[str], Awaitable[Decision]] | None = None
    ) -> None:
        self._console = console
        self._ask = ask or ask_at_terminal
        self._always: set[str] = set()

    async def refusal(self, call: ToolUseBlock, summary: str) -> str | None:
        """Return None if the person allows *call*, else what to tell the model.

        Raises:
            asyncio.CancelledError: the person stopped the turn instead (Ctrl+C, Esc, the end of
                the input). Nothing was decided: the call is recorded as never started.
        """
        if call.name in self._always:
            return None
        from app.repl.tool_view import show_change  # noqa: PLC0415

        self._console.line()
        show_change(self._console, call.name, call.input)
        match await self._ask(plain(summary).replace("\n", " ⏎ ")):
            case "always":
                self._always.add(call.name)
            case "no":
                return DECLINED
            case "stop":
                raise asyncio.CancelledError
            case "yes":
                pass
        return None


async def ask_at_terminal(summary: str) -> Decision:
    """Ask whether what *summary* says may happen; one key answers.

    What was typed before the question is thrown away: it cannot be an answer to it. Letters
    typed right after the answer (``yes``, Enter) belong to it and go nowhere else.
    """
    from prompt_toolkit.formatted_text import FormattedText  # noqa: PLC0415
    from prompt_toolkit.shortcuts import PromptSession  # noqa: PLC0415

    from app.repl.prompt import throw_away_input  # noqa: PLC0415

    message = FormattedText(
        [
            ("", "Allow "),
            ("bold", summary),
            ("", "? "),
            ("ansigray", "[y]es / [a]lways in this conversation / [n]o "),
        ]
    )
    question: PromptSession[Decision] = PromptSession(message, key_bindings=_keys())
    throw_away_input(question.app.input)
    decision: Decision = await question.prompt_async(handle_sigint=False)
    throw_away_input(question.app.input)
    return decision


def _keys() -> KeyBindings:
    from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415
    from prompt_toolkit.keys import Keys  # noqa: PLC0415

    keys = KeyBindings()
    answer = _Answer()
    for key in ("c-c", "c-d", "escape", Keys.SIGINT):
        keys.add(key, eager=True)(answer.stop)
    keys.add(Keys.Any, eager=True)(answer.letter)
    keys.add("enter", eager=True)(answer.enter)
    keys.add("c-j", eager=True)(answer.enter)
    keys.add(Keys.BracketedPaste, eager=True)(lambda _event: None)
    return keys


class _Answer:
    """What the keys have said so far."""

    def __init__(self) -> None:
        self._decision: Decision | None = None
        self._end: asyncio.TimerHandle | None = None

    def letter(self, event: KeyPressEvent) -> None:
        """Take the first letter that decides; swallow the rest of its word."""
        if self._decision is None:
            self._decision = _DECISIONS.get(event.data.lower())
            if self._decision is None:
                return
            event.current_buffer.insert_text(self._decision)
        if self._end is not None:
            self._end.cancel()
        loop = asyncio.get_running_loop()
        self._end = loop.call_later(_SECONDS_FOR_A_WORD, self._leave, event.app)

    def enter(self, event: KeyPressEvent) -> None:
        """End the word. Enter alone decides nothing."""
        if self._decision is not None:
            self._leave(event.app)

    def stop(self, event: KeyPressEvent) -> None:
        """Stop the turn."""
        self._decision = "stop"
        self._leave(event.app)

    def _leave(self, app: Application[Decision]) -> None:
        if self._end is not None:
            self._end.cancel()
        if self._decision is not None and app.is_running and not app.is_done:
            app.exit(result=self._decision)
