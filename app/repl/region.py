"""The lines below everything that is printed: drawn again and again, never too many to be seen."""

from __future__ import annotations

import asyncio
from contextlib import suppress
from time import monotonic
from typing import TYPE_CHECKING

from rich.control import Control
from rich.live import Live
from rich.segment import ControlType, Segment

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

SECONDS_A_FRAME = 0.1
_LINES_KEPT_FREE = 4


class Region:
    """The lines below everything printed that are drawn again and again while work goes on.

    A window that becomes narrower breaks lines in two, as most terminals do: they are drawn anew.
    """

    def __init__(self, console: Console, content: Callable[[], Iterator[RenderableType]]) -> None:
        self._console = console
        self._content = content
        self._live: Live | None = None
        self._tick: asyncio.TimerHandle | None = None
        self._drawn = 0.0
        self._stack = Stack(self._now)

    def draw(self, *, now: bool = False, is_idle: bool = False) -> None:
        """Draw what is under way; not more often than the eye sees, unless it must be *now*."""
        if is_idle and self._live is None:
            return
        if self._live is not None and self._stack.broken_lines(self._console.width):
            self._take_off()
        if self._live is None:
            self._live = Live(
                self._stack,
                console=self._console,
                auto_refresh=False,
                transient=True,
                redirect_stdout=False,
                redirect_stderr=False,
                vertical_overflow="crop",
            )
            self._live.start()
            if self._tick is None:
                self._schedule()
        elif not now and monotonic() - self._drawn < SECONDS_A_FRAME:
            return
        self._drawn = monotonic()
        self._live.refresh()

    def close(self) -> None:
        """Take the region off the screen."""
        if self._tick is not None:
            self._tick.cancel()
            self._tick = None
        self._take_off()

    def _take_off(self) -> None:
        if self._live is None:
            return
        too_many = self._stack.broken_lines(self._console.width)
        self._content, content = lambda: iter(()), self._content
        self._live.stop()
        self._live, self._content = None, content
        up = Control((ControlType.CURSOR_UP, 1), (ControlType.ERASE_IN_LINE, 2))
        self._console.control(*[up] * too_many)

    def _now(self) -> Iterator[RenderableType]:
        return self._content()

    def _schedule(self) -> None:
        with suppress(RuntimeError):  # no event loop, no animation
            loop = asyncio.get_running_loop()
            self._tick = loop.call_later(SECONDS_A_FRAME, self._on_tick)

    def _on_tick(self) -> None:
        self._schedule()
        self.draw()


class Stack:
    """Renderables one below the other, cut at the top to what the screen has room for.

    They are asked for whenever it is drawn: what was printed just now stands in it no more.
    """

    def __init__(self, parts: Callable[[], Iterator[RenderableType]]) -> None:
        self._parts = parts
        self._widths: list[int] = []

    def broken_lines(self, width: int) -> int:
        """Return how many lines more there are where a terminal has only *width* cells now."""
        return sum(max(each - 1, 0) // width for each in self._widths)

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render the end of it."""
        lines = [line for part in self._parts() for line in console.render_lines(part, pad=False)]
        lines = lines[-max(console.height - 1, 1) :]
        self._widths = [sum(segment.cell_length for segment in line) for line in lines]
        for number, line in enumerate(lines):
            if number:
                yield Segment.line()
            yield from line


class Tail:
    """The last *most* lines of a renderable: as many as fit, where nothing is said."""

    def __init__(self, renderable: RenderableType, most: int | None = None) -> None:
        self._renderable = renderable
        self._most = most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render all, keep the end."""
        most = min(self._most or console.height, max(console.height - _LINES_KEPT_FREE, 1))
        lines = console.render_lines(self._renderable, options.update(height=None), pad=False)
        for line in lines[-most:]:
            yield from line
            yield Segment.line()
