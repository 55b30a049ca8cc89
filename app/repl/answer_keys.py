"""The keys that answer a question: a burst of them that is exactly one word, and nothing else.

Somebody who types their next prompt, pastes a text, or types while the program was stopped has
decided nothing. Keys are read as they come, nothing is drawn: a dumb terminal is like any other.
"""

from __future__ import annotations

import asyncio
import signal
from contextlib import ExitStack, contextmanager
from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app_session
from prompt_toolkit.keys import Keys

from app.repl.applications import SECONDS_FOR_AN_ESCAPE
from app.repl.unread_terminal import suspend, throw_away_input
from app.terminal import is_dumb

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

    from prompt_toolkit.key_binding import KeyPress

SECONDS_OF_SILENCE = 0.3
"""What comes within this time of the key before belongs to the same burst."""
_STOPPING = (Keys.Escape, Keys.ControlC, Keys.ControlD)
_ENTER = (Keys.ControlM, Keys.ControlJ)


def meaning(burst: Sequence[KeyPress], words: Mapping[str, str]) -> str | None:
    """Return what a burst of keys says: one of *words*, with Enter or without; None for all else.

    A key that stops counts wherever it stands: stopping is never dangerous.
    """
    if any(press.key in _STOPPING for press in burst):
        return "stop"
    if any(isinstance(press.key, Keys) and press.key not in _ENTER for press in burst):
        return None  # a paste, an arrow, a key that means something else
    typed = "".join("\n" if press.key in _ENTER else press.key for press in burst)
    return words.get(typed.strip().lower())


class AnswerKeys:
    """Reads the keyboard until one of *words* was typed; *explain* is called for all else."""

    def __init__(self, words: Mapping[str, str], explain: Callable[[], None]) -> None:
        self._words = words
        self._explain = explain
        session = get_app_session()
        self._source, self._output = session.input, session.output
        self._burst: list[KeyPress] = []
        self._timer: asyncio.TimerHandle | None = None
        self._answer: asyncio.Future[str] = asyncio.get_running_loop().create_future()

    async def answer(self) -> str:
        """Return what the word that was typed stands for, or one of two others.

        ``stop``: Esc, Ctrl+C, Ctrl+D, or the terminal has gone. ``again``: the program was stopped
        and goes on, and others have written on the screen.
        """
        throw_away_input(self._source)
        try:
            with self._reading():
                return await self._answer
        except (EOFError, OSError):
            return "stop"  # the terminal has gone
        finally:
            if self._timer is not None:
                self._timer.cancel()

    @contextmanager
    def _reading(self) -> Iterator[None]:
        """Read keys. What was typed while the program was stopped counts for nothing."""
        loop = asyncio.get_running_loop()

        def put_again(_number: int, _frame: object) -> None:
            loop.call_soon_threadsafe(self._say, "again")

        with ExitStack() as stack:
            stack.enter_context(self._source.raw_mode())
            stack.enter_context(self._source.attach(self._ready))
            stack.callback(signal.signal, signal.SIGCONT, signal.signal(signal.SIGCONT, put_again))
            if not is_dumb():
                self._output.enable_bracketed_paste()
                self._output.flush()
                stack.callback(self._output.flush)
                stack.callback(self._output.disable_bracketed_paste)
            yield

    def _ready(self) -> None:
        self._take(self._source.read_keys())
        if self._source.closed:
            self._say("stop")
            return
        self._wait(SECONDS_FOR_AN_ESCAPE, self._flush)

    def _flush(self) -> None:
        """Take an Esc that is one: nothing came behind it."""
        self._take(self._source.flush_keys())
        self._wait(SECONDS_OF_SILENCE - SECONDS_FOR_AN_ESCAPE, self._end_burst)

    def _take(self, keys: Sequence[KeyPress]) -> None:
        self._burst += [press for press in keys if press.key is not Keys.CPRResponse]
        if any(press.key is Keys.ControlZ for press in keys):
            self._suspend()
        elif meaning(self._burst, {}) == "stop":
            self._say("stop")

    def _end_burst(self) -> None:
        burst, self._burst = self._burst, []
        if (word := meaning(burst, self._words)) is not None:
            self._say(word)
        elif burst:
            self._explain()

    def _wait(self, seconds: float, then: Callable[[], None]) -> None:
        if self._timer is not None:
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_later(seconds, then)

    def _say(self, word: str) -> None:
        if not self._answer.done():
            self._answer.set_result(word)

    def _suspend(self) -> None:
        """Ctrl+Z: leave the terminal to the shell; the question is put again afterwards."""
        suspend()
        self._say("again")
