"""A prompt_toolkit session for one line, on every terminal: on a dumb one it is merely written.

prompt_toolkit's own prompt for dumb terminals writes the last character again whatever changes,
and has no default, no time limit for Esc and other keys first. Here the session works as it does
elsewhere and draws nowhere; the line is written as the system would echo it.
"""

from __future__ import annotations

from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

from prompt_toolkit import PromptSession
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.key_binding import KeyBindings, merge_key_bindings
from prompt_toolkit.output import DummyOutput

from app.repl.applications import InlineApplication
from app.repl.unread_terminal import suspend
from app.terminal import is_dumb
from app.view.colours import prompt_style
from app.view.plain import cells, plain

if TYPE_CHECKING:
    from collections.abc import Iterator

    from prompt_toolkit.document import Document
    from prompt_toolkit.key_binding import KeyBindingsBase, KeyPressEvent

Result = TypeVar("Result")

_RUB_OUT = "\b \b"


class LineSession(PromptSession[Result]):
    """Asks for a line by *message*, which is plain text. Ctrl+Z is one of its `own_keys`."""

    def __init__(self, message: str, *keys: KeyBindingsBase, **options: Any) -> None:
        self._screen = None
        if is_dumb():
            self._screen, options["output"] = get_app_session().output, DummyOutput()
        self._said = message
        self._written = ""
        self.own_keys = KeyBindings()
        self.own_keys.add("c-z")(self._suspend)
        super().__init__(
            message, key_bindings=merge_key_bindings([self.own_keys, *keys]), **options
        )
        self.app.__class__ = InlineApplication  # the session makes its application itself

    async def prompt_async(  # type: ignore[override]
        self, *, default: str | Document = "", **options: Any
    ) -> Result:
        """Return what was typed, beginning with *default*.

        Raises:
            EOFError, KeyboardInterrupt: as prompt_toolkit's does.
        """
        with self._echoing(default if isinstance(default, str) else default.text):
            return await super().prompt_async(default=default, **options)

    def write_again(self, told: str = "") -> None:
        """Write *told*, and the line once more, where it is not drawn."""
        if self._screen is not None:
            self._written = plain(self.default_buffer.text)
            self._write(f"\n{told}{self._said}{self._written}")

    def _suspend(self, event: KeyPressEvent) -> None:
        async def stop() -> None:
            await run_in_terminal(suspend)
            self.write_again()

        event.app.create_background_task(stop())

    @contextmanager
    def _echoing(self, default: str) -> Iterator[None]:
        if self._screen is None:
            yield
            return
        self._written = plain(default)
        self._write(self._said + self._written)
        self.default_buffer.on_text_changed += self._echo
        try:
            yield
        finally:
            self.default_buffer.on_text_changed -= self._echo
            self._write("\n")

    def _echo(self, _buffer: object) -> None:
        """Write what came at the end, rub out what went there; else the line stands once more."""
        before, text = self._written, plain(self.default_buffer.text)
        gone = before.removeprefix(text)
        if text.startswith(before):
            self._write(text.removeprefix(before))
        elif before.startswith(text) and gone.isprintable():
            self._write(_RUB_OUT * cells(gone))
        else:
            self.write_again()
        self._written = text

    def _write(self, text: str) -> None:
        assert self._screen is not None
        self._screen.write(text)
        self._screen.flush()


async def ask_line(question: str, default: str = "", *, is_kept: bool = False) -> str | None:
    """Ask for one line, which stays on the screen if it *is_kept*; None if the person leaves."""
    session: LineSession[str] = LineSession(
        question, erase_when_done=not is_kept, style=prompt_style()
    )
    try:
        return await session.prompt_async(default=default, handle_sigint=False)
    except (EOFError, KeyboardInterrupt, OSError):
        return None
