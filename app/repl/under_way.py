"""What is under way, and how it looks: the block that arrives, the tools that run, what waits."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from rich.segment import Segment
from rich.text import Text

from app.i18n import _
from app.view.markdown_stream import MarkdownStream
from app.view.plain import one_line, plain
from app.view.transcript import thought

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from rich.console import Console, ConsoleOptions, RenderableType, RenderResult

    from app.repl.type_ahead import Waiting

SECONDS_A_FRAME = 0.1
_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WIDEST, _TAB = 200, 4
_THINKING_LINES = 5
SLOW = 1.0  # seconds after which it is worth saying how long it has been


@dataclass
class Running:
    """A tool that runs: since when, and the last line that it printed."""

    summary: str
    since: float
    last_line: str = ""


@dataclass
class Block:
    """The content block that is arriving: *since* when; a text, since when nothing more came."""

    kind: str = ""
    name: str = ""
    since: float = 0.0
    size: int = 0
    thinking: list[str] = field(default_factory=list)


class UnderWay:
    """What is under way in a turn on *console*; *clock* counts seconds.

    Attributes:
        block: The content block that is arriving …
        markdown: … and what of its text is not finished.
        running: The tools that run, by the ids of their calls.
        waiting_since: When the model began to be waited for; None if it is not …
        waiting_for: … and for what, once a request has gone out …
        pause_ends: … or when it goes out again.
        queued: The prompts and commands that wait.
    """

    def __init__(self, console: Console, clock: Callable[[], float]) -> None:
        self._console = console
        self._clock = clock
        self.block = Block()
        self.markdown = MarkdownStream()
        self.running: dict[str, Running] = {}
        self.waiting_since: float | None = None
        self.waiting_for = ""
        self.pause_ends = 0.0
        self.queued: Sequence[Waiting] = ()

    def wait(self, what: str) -> None:
        """Wait for the model from now on, for *what*."""
        self.waiting_since, self.waiting_for, self.pause_ends = self._clock(), what, 0.0

    def lines(self, room: int) -> Iterator[RenderableType]:
        """Yield what is to be seen now: as much as fits *room* lines, and what is above it."""
        now = self._clock()
        yield from self._block(now)
        for running in self.running.values():
            summary = one_line(running.summary, max(self._console.width - 28, 20))
            yield spinner(summary, running.since, now, "bold")
            if running.last_line:
                yield cropped(Text(f"  {running.last_line}", style="dim"))
        if self.waiting_since is not None:
            is_pausing = now < self.pause_ends
            what = _("retrying soon") if is_pausing else self.waiting_for
            yield spinner(what, self.waiting_since, now)
        yield from self._queue(room - 1)  # the spinner stays

    def _block(self, now: float) -> Iterator[RenderableType]:
        block = self.block
        match block.kind:
            case "text":
                if self.markdown.tail.strip():
                    yield Tail(markdown(end_of(self.markdown.tail, self._console.height)))
                if now - block.since >= SLOW:  # nothing has come for a while
                    yield spinner("", block.since, now)
            case "thinking":
                text = "".join(block.thinking)[-4000:]
                yield Tail(Text(text, style="dim italic"), _THINKING_LINES)
                yield spinner(_("thinking"), block.since, now)
            case "tool_use":
                size = _(" {size:,} characters").format(size=block.size) if block.size else ""
                yield spinner(f"{block.name} …{size}", block.since, now)

    def _queue(self, room: int) -> Iterator[RenderableType]:
        most = len(self.queued) if len(self.queued) < room else max(room - 1, 0)
        for text, version in self.queued[:most]:
            label = _("queued: {text}") if version else _("then: {text}")
            yield cropped(Text(label.format(text=flat(text)), style="dim"))
        if self.queued and room > 0:
            left_out = len(self.queued) - most
            more = _("  … {count} more").format(count=left_out) if left_out else ""
            hint = _("  (Alt+Up takes the last one back)")
            yield cropped(Text(more + hint, style="dim"))


class Tail:
    """The last *most* lines of a renderable; where nothing is said, as many as the screen has."""

    def __init__(self, renderable: RenderableType, most: int | None = None) -> None:
        self._renderable = renderable
        self._most = most

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render all, keep the end."""
        lines = console.render_lines(self._renderable, options.update(height=None), pad=False)
        for line in lines[-min(self._most or console.height, console.height) :]:
            yield from line
            yield Segment.line()


def markdown(text: str) -> RenderableType:
    """Return *text* to be shown as Markdown."""
    from app.view.markdown import Markdown  # noqa: PLC0415 - not before there is an answer

    return Markdown(text)


def spinner(text: str, since: float, now: float, style: str = "") -> Text:
    """Return a line that moves, with how long it has been once that is worth saying."""
    elapsed = now - since
    frame = _FRAMES[int(elapsed / SECONDS_A_FRAME) % len(_FRAMES)]
    hint = _("  Esc stops") if elapsed >= 2 * SLOW else ""
    parts = [(f"{frame} ", "cyan"), (text, style), (f"{took(elapsed)}{hint}", "dim")]
    return cropped(Text.assemble(*parts))


def took(seconds: float) -> str:
    """Return a blank and how long something took, if that is worth saying."""
    return f" {_duration(seconds)}" if seconds >= SLOW else ""


def flat(text: str) -> str:
    """Return *text* made plain, on one line."""
    return plain(text).replace("\n", " ⏎ ").expandtabs(1)


def cropped(text: Text) -> Text:
    """Return *text*, to end in an ellipsis where the screen ends."""
    text.no_wrap, text.overflow = True, "ellipsis"
    return text


def folded(block: Block, now: float) -> str:
    """Return the one line that stays of thinking."""
    text = "".join(block.thinking).strip()
    count = text.count("\n") + 1 if text else 0
    elapsed = now - block.since
    time = _(" for {time}").format(time=_duration(elapsed)) if elapsed >= SLOW else ""
    return thought(count, time)


def _duration(seconds: float) -> str:
    whole = int(seconds)
    minutes, rest = divmod(whole, 60)
    return f"{minutes}m {rest:02}s" if minutes else f"{rest}s"


def end_of(tail: str, height: int) -> str:
    """Return enough of a long unfinished block to fill the screen; a fence keeps its first line."""
    end = tail[-height * _WIDEST :].expandtabs(_TAB)
    lines = end.split("\n")[-2 * height :]
    first = tail.partition("\n")[0]
    if len(lines) < tail.count("\n") + 1 and first.lstrip().startswith(("```", "~~~")):
        lines.insert(0, first)
    return "\n".join(lines)
