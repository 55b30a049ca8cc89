"""Who decides whether a tool may act: a person at the terminal, nobody, or `--yes`.

rich and prompt_toolkit are imported only by what asks: `leftfold -p` needs neither.
"""

from __future__ import annotations

import asyncio
from pathlib import Path
from shutil import get_terminal_size
from typing import TYPE_CHECKING, Literal, Protocol, TypeAlias

from app.i18n import _
from app.ports import Approval
from app.repl.plain import plain

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from prompt_toolkit.buffer import Buffer
    from prompt_toolkit.key_binding import KeyBindings
    from rich.console import Console

    from domain.messages import ToolUseBlock

    class Ask(Protocol):
        """Puts the question; *is_command* says whether a single command can be allowed."""

        async def __call__(self, summary: str, *, is_command: bool) -> Answer:
            """Return what the person answered."""


Answer: TypeAlias = Literal["yes", "always", "command", "no", "reason", "stop"]

NOBODY = (
    "This tool needs the user's approval, and nobody is there to give it "
    "(the user can run leftfold with --yes to allow it)."
)
DECLINED = (
    "The user declined this call, and it was not run. Do not make it again in another form; "
    "ask what to do instead, or go on without it."
)
_SECONDS_FOR_A_WORD = 0.3
_DECISIONS: dict[str, Answer] = {
    "y": "yes",
    "yes": "yes",
    "a": "always",
    "always": "always",
    "n": "no",
    "no": "no",
    "r": "reason",
    "reason": "reason",
}
_COMMAND_DECISIONS: dict[str, Answer] = {"c": "command", "command": "command"}


class AllowAll:
    """Lets every tool act: ``--yes``."""

    async def decide(self, call: ToolUseBlock, summary: str) -> Approval | None:  # noqa: ARG002
        """Ask nobody."""
        return None


class RefuseAll:
    """Lets no tool act that needs approval: nobody is there to ask."""

    def __init__(self, reason: str = NOBODY) -> None:
        self._reason = reason

    async def decide(self, call: ToolUseBlock, summary: str) -> Approval | None:  # noqa: ARG002
        """Refuse, and say why."""
        return Approval("no", reason=self._reason)


class AskingApprover:
    """Asks the person at the terminal: yes, always (this tool, or this command), or no.

    What "always" allows is in the conversation, which works in *cwd*. *ask* puts the question,
    *ask_why* asks for a reason; by default at the terminal.
    """

    def __init__(
        self,
        console: Console,
        *,
        cwd: Path | None = None,
        ask: Ask | None = None,
        ask_why: Callable[[], Awaitable[str]] | None = None,
    ) -> None:
        self._console = console
        self._cwd = cwd or Path()
        self._ask = ask or ask_at_terminal
        self._ask_why = ask_why or ask_why_at_terminal

    async def decide(self, call: ToolUseBlock, summary: str) -> Approval | None:
        """Return what the person decided of *call*.

        Raises:
            asyncio.CancelledError: the person stopped the turn instead (Ctrl+C, Esc, the end of
                the input). Nothing was decided: the call is recorded as never started.
        """
        from app.repl.overwritten import overwritten  # noqa: PLC0415
        from app.repl.tool_view import show_change  # noqa: PLC0415

        old = await overwritten(call, self._cwd)
        self._console.line()
        show_change(self._console, call.name, call.input, old=old)
        command = call.input.get("command")
        is_command = isinstance(command, str)
        match await self._ask(plain(summary).replace("\n", " ⏎ "), is_command=is_command):
            case "always":
                return Approval("always")
            case "command" if is_command:
                return Approval("always", command=command)
            case "no":
                return Approval("no", reason=DECLINED)
            case "reason":
                why = (await self._ask_why()).strip()
                return Approval(
                    "no", reason=f"{DECLINED} The user says: {why}" if why else DECLINED
                )
            case "stop":
                raise asyncio.CancelledError
        return Approval("yes")


async def ask_at_terminal(summary: str, *, is_command: bool) -> Answer:
    """Ask whether what *summary* says may happen: one key, or a word, with Enter or without.

    What was typed before the question is thrown away, and so is a burst of keys that is no
    answer: somebody who types their next prompt has decided nothing.
    """
    from app.repl.prompt import throw_away_input  # noqa: PLC0415

    question = _Question(summary, is_command=is_command)
    throw_away_input(question.session.app.input)
    try:
        return await question.session.prompt_async(handle_sigint=False)
    except (EOFError, KeyboardInterrupt, OSError):
        return "stop"  # the terminal has gone


async def ask_why_at_terminal() -> str:
    """Ask for a reason, one line; none if the person gives none."""
    from prompt_toolkit.shortcuts import PromptSession  # noqa: PLC0415

    session: PromptSession[str] = PromptSession(_("Why not? "))
    try:
        return await session.prompt_async(handle_sigint=False)
    except (EOFError, KeyboardInterrupt, OSError):
        return ""


def _width(text: str) -> int:
    from prompt_toolkit.utils import get_cwidth  # noqa: PLC0415

    return get_cwidth(text)


class _Question:
    """The question at the terminal. A burst of keys is a word; one that decides is the answer."""

    def __init__(self, summary: str, *, is_command: bool) -> None:
        from prompt_toolkit.formatted_text import FormattedText  # noqa: PLC0415
        from prompt_toolkit.shortcuts import PromptSession  # noqa: PLC0415

        from app.repl.colours import prompt_style  # noqa: PLC0415

        columns = get_terminal_size().columns
        choices = (
            _("[y]es / [a]lways / always this [c]ommand / [n]o / no, and the [r]eason ")
            if is_command
            else _("[y]es / [a]lways in this conversation / [n]o / no, and the [r]eason ")
        )
        self._decisions = _DECISIONS | (_COMMAND_DECISIONS if is_command else {})
        allow = _("Allow ")
        gap = "? " if _width(allow + summary + choices) < columns - 12 else "?\n"
        message = [("", allow), ("bold", summary), ("", gap), ("class:dim", choices)]
        self.session: PromptSession[Answer] = PromptSession(
            FormattedText(message), key_bindings=self._keys(), style=prompt_style()
        )
        self.session.default_buffer.on_text_changed += self._typed
        self._end_of_word: asyncio.TimerHandle | None = None

    def _keys(self) -> KeyBindings:
        from prompt_toolkit.key_binding import KeyBindings  # noqa: PLC0415
        from prompt_toolkit.keys import Keys  # noqa: PLC0415

        keys = KeyBindings()
        for key in ("c-c", "c-d", "escape", Keys.SIGINT):
            keys.add(key, eager=True)(lambda _event: self._leave("stop"))
        keys.add("enter")(lambda _event: self._decide())
        return keys

    def _typed(self, buffer: Buffer) -> None:
        if self._end_of_word is not None:
            self._end_of_word.cancel()
        if buffer.text:
            loop = asyncio.get_running_loop()
            self._end_of_word = loop.call_later(_SECONDS_FOR_A_WORD, self._decide)

    def _decide(self) -> None:
        word = self.session.default_buffer.text.strip().lower()
        if word in self._decisions:
            self._leave(self._decisions[word])
        else:
            self.session.default_buffer.reset()

    def _leave(self, decision: Answer) -> None:
        app = self.session.app
        if app.is_running and not app.is_done:
            app.exit(result=decision)
