"""Where prompts come from: a person at a terminal, or the lines of standard input."""

from __future__ import annotations

import asyncio
import select
from contextlib import ExitStack, suppress
from time import monotonic
from typing import TYPE_CHECKING, TypeAlias

import click
from prompt_toolkit import search
from prompt_toolkit.application import run_in_terminal
from prompt_toolkit.document import Document
from prompt_toolkit.enums import EditingMode
from prompt_toolkit.filters import (
    Condition,
    emacs_mode,
    has_selection,
    is_done,
    is_searching,
    vi_navigation_mode,
)
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.history import FileHistory, History, InMemoryHistory
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys

from app.i18n import _
from app.repl.applications import take_escape_soon
from app.repl.command import is_completable
from app.repl.line_session import LineSession
from app.repl.pastes import Pastes, line_keys
from app.signals import keys_are_for_a_child
from app.standard_input import LONGEST, LongInputError, lines_of
from app.view.colours import prompt_style
from app.view.plain import plain
from domain.text import valid
from infrastructure.jsonl import disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from prompt_toolkit.completion import Completer

PROMPT = "leftfold> "
_CONTINUATION = "…"
_SECONDS_OF_TYPEAHEAD = 0.25
_SECONDS_TO_LEAVE = 2.0
"""How soon after a Ctrl+C another one leaves."""


class PrivateHistory(FileHistory):
    """What was typed, kept in a file that others cannot read, made when something is typed.

    A home that cannot be written costs the history, nothing else; what is no file of this user
    (a link, a pipe) is left alone.
    """

    def __init__(self, path: Path, expanded: Callable[[str], str] = str) -> None:
        super().__init__(path)
        self._path = path
        self._expanded = expanded

    def append_string(self, string: str) -> None:
        """Take *string* with all that was pasted."""
        super().append_string(self._expanded(string))

    def load_history_strings(self) -> Iterable[str]:
        """Return what was typed, newest first."""
        try:
            disk.close(disk.open_read(self._path))  # it is a file of ours: it can be opened
            return [valid(text) for text in super().load_history_strings()]
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Append *string*."""
        with suppress(OSError):
            disk.make_folder(self._path.parent)
            disk.close(disk.open_or_create(self._path))
            super().store_string(valid(string))


# -- a person ----------------------------------------------------------------------------------


class TerminalPrompts:
    """Reads prompts with prompt_toolkit; typed ones go into *history_file*, readable by us only."""

    is_interactive = True

    def __init__(
        self,
        history_file: Path | None,
        *,
        completer: Completer | None = None,
        toolbar: Callable[[], FormattedText] | None = None,
        is_vi: bool = False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._clock = clock
        self._leaves_until = 0.0  # Ctrl+C was the last key
        self._began = 0.0
        self._is_shown = False
        self._on_shown: list[Callable[[], object]] = []
        self._begun: asyncio.Task[str | None] | None = None
        self._deaf = ExitStack()  # until it is closed, no key is taken
        self.pastes = Pastes()
        history: History = InMemoryHistory()
        if history_file is not None:
            history = PrivateHistory(history_file, self.pastes.expanded)
        self._session: LineSession[str] = LineSession(
            PROMPT,
            multiline=True,
            prompt_continuation=_continuation,
            history=history,
            completer=completer,
            complete_while_typing=Condition(self._asks_for_a_menu),
            bottom_toolbar=toolbar,
            style=prompt_style(),
            editing_mode=EditingMode.VI if is_vi else EditingMode.EMACS,
            placeholder=self._hint,
            input_processors=[self.pastes],
        )
        self.buffer = self._session.default_buffer
        self._session.key_bindings = merge_key_bindings(
            [self._session.own_keys, self._keys(), line_keys(self.buffer, self.pastes)]
        )
        for buffer in (self.buffer, self._session.search_buffer):
            buffer.on_text_changed += self._stay
        take_escape_soon(self._session.app, is_key_of_its_own=is_vi)
        self._session.app.after_render += self._tell_shown

    def begin(self, *, is_deaf: bool) -> asyncio.Task[str | None]:
        """Let the prompt stand from here on; the next `read` returns what is typed at it.

        Where it *is_deaf*, keys wait until something was printed `above` it.
        """
        if is_deaf:
            self.once_shown(lambda: self._deaf.enter_context(self._session.app.input.detach()))
        self._begun = asyncio.ensure_future(self._read(""))
        return self._begun

    async def above(self, show: Callable[[], object]) -> None:
        """Let *show* print, above the prompt if that stands."""
        if self._begun is None:
            show()
        else:
            await run_in_terminal(show)
        self._deaf.close()

    def once_shown(self, do: Callable[[], object]) -> None:
        """Call *do* as soon as a prompt is on the screen."""
        if self._is_shown:
            do()
        else:
            self._on_shown.append(do)

    async def read(self, default: str = "") -> str | None:
        """Return what the person typed; None if they leave.

        Without a *default* what stands in the line, from before, is offered, as it stands there.
        """
        begun, self._begun = self._begun, None
        return await (begun or self._read(default))

    async def _read(self, default: str) -> str | None:
        self._leaves_until = 0.0
        offered = Document(default) if default else self.buffer.document
        text = None
        try:
            text = await self._session.prompt_async(
                default=offered, handle_sigint=False, pre_run=self._begin
            )
        except (EOFError, KeyboardInterrupt, OSError):
            return None
        finally:
            if text is None:  # a person leaves on an empty line: the terminal has gone
                self.keep(self.buffer.text)
            text = None if text is None else valid(self.pastes.expanded(text))
            self.buffer.reset()
            self.pastes.forget()
        return text

    def keep(self, text: str) -> None:
        """Take *text*, which was typed and cannot be sent any more, among the earlier prompts."""
        if text.strip():
            self._session.history.append_string(text)

    def _begin(self) -> None:
        self._began, self.pastes.have_brackets = self._clock(), False

    def _tell_shown(self, _app: object) -> None:
        self._is_shown = True
        waiting, self._on_shown = self._on_shown, []
        for do in waiting:
            do()

    def _asks_for_a_menu(self) -> bool:
        return is_completable(self.buffer.document.text_before_cursor)

    # -- the keys ------------------------------------------------------------------------------

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        is_empty = Condition(lambda: not self.buffer.text)
        keys.add("enter", filter=~is_done & ~is_searching)(self._enter)
        keys.add("enter", filter=is_searching)(self._run_match)
        keys.add("c-x", "c-e", filter=emacs_mode & ~has_selection)(self._edit)
        keys.add("v", filter=vi_navigation_mode)(self._edit)
        keys.add("c-c", filter=~is_searching)(self._clear_or_leave)  # a search it ends
        keys.add(Keys.SIGINT)(self._clear_or_leave)

        @keys.add("escape", "escape", filter=is_empty & ~is_done)
        @keys.add("escape", filter=is_empty & ~is_done & vi_navigation_mode)
        def open_tree(event: KeyPressEvent) -> None:
            event.app.exit(result="/tree")

        return keys

    def _enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        if self._is_pasted(event):
            buffer.insert_text("\n")
        else:
            buffer.validate_and_handle()

    def _run_match(self, _event: KeyPressEvent) -> None:
        """Send what was searched for and found, as readline does; nothing found sends nothing."""
        wanted, buffer = self._session.search_buffer.text, self._session.default_buffer
        search.accept_search()
        if wanted and wanted in buffer.text:
            buffer.validate_and_handle()

    def _edit(self, event: KeyPressEvent) -> None:
        """Let an editor change the line. It is sent by Enter, whatever the editor does."""

        async def edit() -> None:
            before = self.pastes.expanded(self.buffer.text)
            try:
                with keys_are_for_a_child():
                    after = await run_in_terminal(
                        lambda: click.edit(before, extension=".md"), in_executor=True
                    )
            except (click.ClickException, OSError, ValueError) as error:  # the line stays
                problem = plain(str(error))
                await run_in_terminal(lambda: click.echo(problem))
                return
            if after is not None and after.rstrip("\n") != before.rstrip("\n"):
                self.buffer.document = Document(valid(after).rstrip("\n"))

        event.app.create_background_task(edit())

    def _clear_or_leave(self, event: KeyPressEvent) -> None:
        if self._clock() < self._leaves_until:
            event.app.exit(exception=EOFError)
            return
        event.current_buffer.reset()
        self._leaves_until = self._clock() + _SECONDS_TO_LEAVE
        self._session.write_again(_("Ctrl+C again leaves") + "\n")
        asyncio.get_running_loop().call_later(_SECONDS_TO_LEAVE, event.app.invalidate)

    def _hint(self) -> FormattedText:
        is_shown = self._clock() < self._leaves_until and not self._session.app.is_done
        return FormattedText([("class:dim", _("Ctrl+C again leaves") if is_shown else "")])

    def _stay(self, _buffer: object) -> None:
        self._leaves_until = 0.0

    def _is_pasted(self, event: KeyPressEvent) -> bool:
        """Whether this Enter is inside a paste of a terminal without bracketed paste.

        More keys stand behind it at once. What was typed while a turn ran looks the same, but is
        there when the prompt begins, and each of its lines is a prompt. Behind a paste that has
        brackets it may be its rest: one that pretends to end early.
        """
        is_soon = self._clock() - self._began < _SECONDS_OF_TYPEAHEAD
        if is_soon and not self.pastes.have_brackets:
            return False
        waiting = event.key_processor.input_queue
        if any(press.key is not Keys.CPRResponse for press in waiting):
            return True
        with suppress(OSError, ValueError, NotImplementedError):
            return bool(select.select([event.app.input.fileno()], [], [], 0)[0])
        return False


def _continuation(width: int, _line: int, _wraps: int) -> str:
    return _CONTINUATION.rjust(width - 1) + " "


# -- a pipe, a file, nothing -------------------------------------------------------------------


class LinePrompts:
    """Reads prompts from standard input, or *descriptor*, one a line; its end leaves."""

    is_interactive = False

    def __init__(self, descriptor: int | None = None) -> None:
        self._lines = lines_of(descriptor)

    async def read(self, default: str = "") -> str | None:  # noqa: ARG002 - nobody could edit it
        """Return the next line; None at the end.

        Raises:
            LongInputError: the line is too long, and may have no end.
        """
        line = await anext(self._lines, None)
        if line is None:
            return None
        if len(line) > LONGEST:
            raise LongInputError(size=LONGEST)
        return line.removesuffix(b"\r").decode("utf-8", "replace")

    def keep(self, text: str) -> None:
        """Forget *text*: its sender has it."""


Prompts: TypeAlias = TerminalPrompts | LinePrompts
"""A source of prompts."""
