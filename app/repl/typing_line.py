"""The line that a person types while the agent works: read key by key, edited at its end.

prompt_toolkit's input reads and parses the keys; nothing is drawn here. While the terminal is
asked something else (an approval, a picker) reading is paused, and what was typed is kept.
"""

from __future__ import annotations

import asyncio
from collections import deque
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING, Protocol

from prompt_toolkit.input import create_input
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import create_output

from app.repl.pastes import pasted_text
from domain.text import valid

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prompt_toolkit.input import Input
    from prompt_toolkit.key_binding import KeyPress
    from prompt_toolkit.output import Output

_SECONDS_FOR_AN_ESCAPE = 0.1
"""How long an Esc may yet become the beginning of an arrow key."""


class Typist(Protocol):
    """Who is told what the keys mean."""

    def pressed_key(self) -> None:
        """A key was pressed, whichever."""

    def changed(self, text: str) -> None:
        """The line is now *text*."""

    def entered(self, text: str) -> None:
        """Enter was pressed: *text* is said."""

    def took_back(self) -> str | None:
        """Return what was said last, and forget it; None if there is nothing."""

    def stop(self) -> None:
        """Esc was pressed."""

    def interrupt(self) -> None:
        """Ctrl+C was pressed."""

    def suspend(self) -> None:
        """Ctrl+Z was pressed."""


class TypingLine:
    """Reads the line; *source* and *output* are the terminal's, if not given."""

    def __init__(self, *, source: Input | None = None, output: Output | None = None) -> None:
        self.text = ""
        self._source = source
        self._output = output
        self._typist: Typist | None = None
        self._attached: ExitStack | None = None
        self._escape: asyncio.TimerHandle | None = None

    @contextmanager
    def reading(self, typist: Typist) -> Iterator[None]:
        """Read keys meanwhile, for *typist*."""
        self._typist = typist
        self._attach()
        try:
            yield
        finally:
            self._detach()
            self._typist = None

    @contextmanager
    def paused(self) -> Iterator[None]:
        """Leave the keys to somebody else meanwhile."""
        self._detach()
        try:
            yield
        finally:
            if self._typist is not None:
                self._attach()

    def take(self) -> str:
        """Return what stands in the line, and clear it."""
        text, self.text = self.text, ""
        return text

    def give_back(self, text: str) -> None:
        """Put *text* before what stands in the line."""
        self.text = f"{text}\n{self.text}" if self.text else text

    # -- the terminal --------------------------------------------------------------------------

    def _attach(self) -> None:
        source = self._source = self._source or create_input()
        output = self._output = self._output or create_output()
        with ExitStack() as stack:
            try:
                stack.enter_context(source.raw_mode())
                stack.enter_context(source.attach(self._ready))
            except EOFError:  # the terminal has gone
                return
            output.enable_bracketed_paste()
            output.flush()
            stack.callback(output.flush)
            stack.callback(output.disable_bracketed_paste)
            self._attached = stack.pop_all()

    def _detach(self) -> None:
        if self._escape is not None:
            self._escape.cancel()
            self._escape = None
        if self._attached is not None:
            self._attached.close()
            self._attached = None

    def _ready(self) -> None:
        """Take the keys that have come; an Esc at their end is one only after a moment."""
        assert self._source is not None
        self._take_keys(self._source.read_keys())
        if self._source.closed:
            self._detach()
            return
        if self._escape is not None:
            self._escape.cancel()
        if self._attached is not None:
            loop = asyncio.get_running_loop()
            self._escape = loop.call_later(_SECONDS_FOR_AN_ESCAPE, self._flush)

    def _flush(self) -> None:
        assert self._source is not None
        self._take_keys(self._source.flush_keys())

    # -- the keys ------------------------------------------------------------------------------

    def _take_keys(self, keys: Iterable[KeyPress]) -> None:
        before, waiting = self.text, deque(keys)
        if waiting and self._typist is not None:
            self._typist.pressed_key()
        while waiting and self._typist is not None:
            press = waiting.popleft()
            if press.key == Keys.BracketedPaste:
                self.text += pasted_text(press, waiting)
            elif press.key == Keys.Escape and waiting and waiting[0].key != Keys.Escape:
                self._take_alt_key(waiting.popleft())
            else:
                self._take_key(press, self._typist)
        if self._typist is not None and self.text != before:
            self._typist.changed(self.text)

    def _take_alt_key(self, press: KeyPress) -> None:
        if press.key == Keys.Up:
            self._take_back()
        elif press.key in (Keys.ControlM, Keys.ControlJ):
            self.text += "\n"

    def _take_key(self, press: KeyPress, typist: Typist) -> None:
        match press.key:
            case Keys.Escape:
                typist.stop()
            case Keys.ControlC | Keys.SIGINT:
                typist.interrupt()
            case Keys.ControlZ:
                typist.suspend()
            case Keys.ControlM | Keys.ControlJ:
                if text := self.take().strip():
                    typist.entered(text)
            case Keys.Up if not self.text:
                self._take_back()
            case _:
                self.text = _edited(self.text, press)

    def _take_back(self) -> None:
        if self._typist is not None and (text := self._typist.took_back()) is not None:
            self.give_back(text)


def _edited(text: str, press: KeyPress) -> str:
    match press.key:
        case Keys.ControlH:
            return text[:-1]
        case Keys.ControlW:
            return text.rstrip().rpartition(" ")[0]
        case Keys.ControlU:
            return ""
        case str(character) if not isinstance(press.key, Keys):
            return text + valid(character)
        case _:
            return text
