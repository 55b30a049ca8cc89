"""How what is under way looks: the block that is arriving, the tools that run, what is typed."""

from __future__ import annotations

from dataclasses import dataclass, field

from rich.cells import cell_len
from rich.text import Text

from app.i18n import _
from app.repl.region import SECONDS_A_FRAME
from app.view.plain import plain
from app.view.transcript import thought

_FRAMES = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_WIDEST, _TAB = 200, 4
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


def end_in_cells(text: str, room: int) -> str:
    """Return the end of *text* that fits *room* cells."""
    while cell_len(text) > room:
        text = text[max(1, (cell_len(text) - room) // 2) :]
    return text


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
