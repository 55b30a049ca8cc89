"""The bottom of the screen while the agent works: what is under way, and the line that is typed.

One prompt_toolkit application draws both, ten times a second and at each key. What is printed
meanwhile is collected, and goes above them with the next frame, in one write: nothing flickers.
While the terminal is asked something else (an approval, a picker) the application has ended, and
what was typed is kept.
"""

from __future__ import annotations

import asyncio
from contextlib import asynccontextmanager
from functools import cache, cached_property
from typing import TYPE_CHECKING, cast

from prompt_toolkit.application import Application, run_in_terminal
from prompt_toolkit.filters import Condition, is_searching
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.input import DummyInput, Input
from prompt_toolkit.key_binding import KeyBindings, KeyPressEvent, merge_key_bindings
from prompt_toolkit.keys import Keys
from prompt_toolkit.layout import (
    BufferControl,
    CompletionsMenu,
    Dimension,
    Float,
    FloatContainer,
    FormattedTextControl,
    HSplit,
    Layout,
    Window,
)
from prompt_toolkit.layout.processors import (
    HighlightIncrementalSearchProcessor,
    HighlightSelectionProcessor,
)
from prompt_toolkit.output.vt100 import Vt100_Output
from prompt_toolkit.widgets import SearchToolbar
from rich.segment import Segment

from app.repl.applications import InlineApplication, take_escape_soon
from app.repl.pastes import Pastes, line_keys
from app.repl.under_way import SECONDS_A_FRAME
from app.repl.unread_terminal import suspend
from app.view.colours import prompt_style
from domain.text import valid

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Iterator
    from typing import TextIO

    from prompt_toolkit.buffer import Buffer
    from rich.console import Console, RenderableType
    from rich.style import Style

    from app.repl.type_ahead import TypeAhead
    from app.view.console import Terminal

_LEAST_SECONDS_A_FRAME = 0.03
"""Between two frames, however many keys are pressed and lines printed."""
_MARK = "» "
_ROWS_OF_A_MENU = 8


class Bottom:
    """Draws below what is printed on *console*, and reads the line in *buffer*.

    *source* is the keyboard, the terminal's if not given. At a `Silence` nothing is typed, and no
    line is drawn.

    Attributes:
        under_way: Yields what is to be drawn for so much room above the line.
    """

    def __init__(
        self, console: Console, buffer: Buffer, pastes: Pastes, *, source: Input | None = None
    ) -> None:
        self._console = console
        self._terminal = cast("Terminal", console.file)
        self._buffer, self._pastes = buffer, pastes
        self.under_way: Callable[[int], Iterator[RenderableType]] = lambda _room: iter(())
        self._printed: list[str] = []
        self._lines: list[list[Segment]] = []
        self._type_ahead: TypeAhead | None = None
        self._task: asyncio.Task[None] | None = None
        self._source = source
        self._frames = cast("_Frames", _Frames.from_pty(cast("TextIO", self._terminal)))
        self._frames.enable_cpr = False  # where the cursor is is not asked

    def draw(self) -> None:
        """Draw what has changed, soon."""
        if self._task is not None:
            self._app.invalidate()

    # -- the line ------------------------------------------------------------------------------

    @asynccontextmanager
    async def reading(self, type_ahead: TypeAhead) -> AsyncIterator[None]:
        """Draw, and read keys for *type_ahead*, meanwhile."""
        self._type_ahead = type_ahead
        self._begin()
        try:
            yield
        finally:
            self._type_ahead = None
            await self._end()

    @asynccontextmanager
    async def paused(self) -> AsyncIterator[None]:
        """Leave screen and keys to somebody else meanwhile."""
        await self._end()
        try:
            yield
        finally:
            if self._type_ahead is not None:
                self._begin()

    @property
    def text(self) -> str:
        """What stands in the line."""
        return self._buffer.text

    def take(self) -> str:
        """Return what stands in the line, and clear it."""
        text = self._buffer.text
        self._buffer.reset()
        return text

    def give_back(self, text: str) -> None:
        """Put *text* before what stands in the line."""
        folded, line = self._pastes.folded(text, self._buffer.text), self._buffer.text
        self._buffer.text = f"{folded}\n{line}" if line else folded
        self._buffer.cursor_position = len(self._buffer.text)

    # -- begin and end -------------------------------------------------------------------------

    def _begin(self) -> None:
        self._task = asyncio.ensure_future(self._run())

    async def _end(self) -> None:
        task, self._task = self._task, None
        if task is None:
            return
        if not self._app.is_running:
            task.cancel()  # it has not begun, or the terminal has gone
        elif not self._app.is_done:
            self._app.exit()
        await asyncio.wait({task})

    async def _run(self) -> None:
        type_ahead = self._type_ahead
        self._terminal.above = self._print_above
        try:
            await self._app.run_async(handle_sigint=False, set_exception_handler=False)
        except (EOFError, OSError):
            return  # the terminal has gone
        except Exception as error:  # noqa: BLE001 - the work goes on, and nothing is drawn
            if type_ahead is not None:
                type_ahead.complain(error)
        finally:
            self._terminal.above = None
            self._frames.is_held = False
            self._frames.write_raw(self._all_printed())
            self._frames.flush()

    def _print_above(self, text: str) -> None:
        self._printed.append(text)
        self.draw()

    def _all_printed(self) -> str:
        printed, self._printed = "".join(self._printed), []
        return printed

    # -- the screen ----------------------------------------------------------------------------

    @cached_property
    def _app(self) -> InlineApplication[None]:
        app: InlineApplication[None] = InlineApplication(
            layout=self._layout(),
            key_bindings=merge_key_bindings([self._keys(), line_keys(self._buffer, self._pastes)]),
            style=prompt_style(),
            erase_when_done=True,
            refresh_interval=SECONDS_A_FRAME,
            min_redraw_interval=_LEAST_SECONDS_A_FRAME,
            terminal_size_polling_interval=None,
            input=self._source,
            output=self._frames,
        )
        take_escape_soon(app, is_key_of_its_own=True)
        app.before_render += self._begin_frame
        app.after_render += self._end_frame
        app.key_processor.before_key_press += self._tell_of_key
        return app

    def _layout(self) -> Layout:
        search = SearchToolbar()
        self._line = Window(
            BufferControl(
                self._buffer,
                input_processors=[
                    HighlightIncrementalSearchProcessor(),
                    HighlightSelectionProcessor(),
                    self._pastes,
                ],
                search_buffer_control=search.control,
                preview_search=True,
            ),
            height=self._height_of_line,
            get_line_prefix=self._prefix,
            wrap_lines=True,
        )
        above = Window(FormattedTextControl(self._above), dont_extend_height=True)
        menu = Float(CompletionsMenu(max_height=16), xcursor=True, ycursor=True, transparent=True)
        return Layout(HSplit([above, FloatContainer(self._line, [menu]), search]), self._line)

    def _begin_frame(self, app: Application[None]) -> None:
        """Make room for what was printed, and find out what is under way."""
        self._frames.is_held = True
        if printed := self._all_printed():
            app.renderer.erase()
            app.output.write_raw(printed)
        rows, columns = app.output.get_size()
        line = max(self._line.preferred_height(columns, rows).preferred, 1)
        room = max(rows - 1 - line - is_searching(), 0)
        self._lines = []
        try:
            parts = self.under_way(room)
            lines = [line for part in parts for line in self._console.render_lines(part, pad=False)]
        except Exception as error:  # noqa: BLE001 - told once, not ten times a second
            if not app.is_done:
                app.exit(exception=error)
        else:
            self._lines = lines[-room:] if room else []

    def _end_frame(self, _app: Application[None]) -> None:
        self._frames.is_held = False
        self._frames.flush()

    def _above(self) -> FormattedText:
        lines = (segment for line in self._lines for segment in [*line, Segment.line()])
        return FormattedText([(_style(each.style), each.text) for each in lines][:-1])

    def _height_of_line(self) -> Dimension:
        rows = self._app.output.get_size().rows
        is_idle = not self._lines and not self._buffer.text
        if is_idle or isinstance(self._source, Silence):
            return Dimension.exact(0)
        most = max(rows // 2, 1)
        if self._buffer.complete_state is not None:
            return Dimension(min=min(_ROWS_OF_A_MENU, most), max=most)
        return Dimension(min=1, max=most)

    def _prefix(self, line: int, wraps: int) -> FormattedText:
        mark = _MARK if line == wraps == 0 else " " * len(_MARK)
        return FormattedText([("class:typing", mark)])

    # -- the keys ------------------------------------------------------------------------------

    def _tell_of_key(self, _processor: object) -> None:
        if self._type_ahead is not None:
            self._type_ahead.pressed_key()

    def _keys(self) -> KeyBindings:
        keys = KeyBindings()
        is_empty = Condition(lambda: not self._buffer.text)
        keys.add("enter", filter=~is_searching)(self._enter)
        keys.add("escape", filter=~is_searching)(lambda _event: self._tell("stop"))
        keys.add("c-c", filter=~is_searching)(lambda _event: self._tell("interrupt"))
        keys.add(Keys.SIGINT)(lambda _event: self._tell("interrupt"))
        keys.add("c-z")(lambda _event: run_in_terminal(suspend))
        keys.add("escape", "up")(self._take_back)
        keys.add("up", filter=is_empty)(self._take_back)
        return keys

    def _tell(self, what: str) -> None:
        if self._type_ahead is not None:
            getattr(self._type_ahead, what)()

    def _enter(self, event: KeyPressEvent) -> None:
        buffer = event.current_buffer
        text = valid(self._pastes.expanded(buffer.text)).strip()
        if text and self._type_ahead is not None:
            buffer.reset(append_to_history=True)
            self._type_ahead.entered(text)

    def _take_back(self, event: KeyPressEvent) -> None:
        """Take back what was said last; where nothing was, go to an earlier line."""
        taken = self._type_ahead.took_back() if self._type_ahead is not None else None
        if taken is not None:
            self.give_back(taken)
        else:
            event.current_buffer.auto_up()


class Silence(DummyInput):
    """A keyboard on which nothing is ever typed, where prompts come from a pipe."""

    @property
    def closed(self) -> bool:
        """It is there, all the same."""
        return False


class _Frames(Vt100_Output):
    """Hands to a `Terminal` what is drawn: all of a frame at once."""

    is_held = False

    def flush(self) -> None:
        """Write what was drawn, unless the frame has not come to its end."""
        if self._buffer and not self.is_held:
            drawn, self._buffer = "".join(self._buffer), []
            cast("Terminal", self.stdout).write_now(drawn)
            self.stdout.flush()


@cache
def _style(style: Style | None) -> str:
    """Return a style of rich as prompt_toolkit names it."""
    if style is None:
        return ""
    words = ("bold", "dim", "italic", "underline", "reverse", "strike")
    parts = [word for word in words if getattr(style, word)]
    for place, colour in (("fg", style.color), ("bg", style.bgcolor)):
        if colour is not None and not colour.is_default:
            parts.append(f"{place}:{colour.get_truecolor().hex}")
    return " ".join(parts)
