"""The colours, readable on the terminal's background, dark or light, and where that is not known.

Every colour is one of the 240 that look the same on each terminal; where there are only sixteen,
which look as somebody chose, there are none: the text's own colour, bold and underlined.

The terminal is not asked for its background (OSC 11): over a slow line the answer comes when
somebody types already, and would stand in the prompt.
"""

from __future__ import annotations

import os
from functools import cache
from typing import TYPE_CHECKING, Final, Literal, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Mapping

    from prompt_toolkit.styles import BaseStyle
    from rich.theme import Theme

Background: TypeAlias = Literal["dark", "light", "unknown"]

_MANY: Final = ("256color", "kitty")
_TRUE: Final = ("truecolor", "24bit")
"""How ``TERM`` ends, and what ``COLORTERM`` says, where there are 256 colours or more."""


class Palette(NamedTuple):
    """A colour for each name; an empty one is the text's own."""

    red: str = ""
    yellow: str = ""
    green: str = ""
    cyan: str = ""
    blue: str = ""
    magenta: str = ""
    dim: str = ""


PALETTES: Final[Mapping[Background, Palette]] = {
    "dark": Palette("#ff8787", "#d7af5f", "#87d787", "#5fd7d7", "#87afff", "#d7afff", "#a8a8a8"),
    "light": Palette("#af0000", "#875f00", "#005f00", "#005f87", "#0000d7", "#87005f", "#585858"),
    # Between black and white there are six that can be read on both.
    "unknown": Palette("#af5f5f", "", "#00875f", "#5f5fff", "#5f5fff", "#875fd7", "#767676"),
}
_LIGHT_COLOURS = (7, 9, 10, 11, 12, 13, 14, 15)
_setting = "auto"


def choose(setting: str) -> None:
    """Use the colours for this setting of the person: dark, light, or auto."""
    global _setting  # noqa: PLW0603 - a process has one terminal
    _setting = setting
    palette.cache_clear()


def background(setting: str, environment: Mapping[str, str]) -> Background:
    """Return what is behind the text: as the person says, else as ``COLORFGBG`` does."""
    match setting:
        case "dark" | "light":
            return "light" if setting == "light" else "dark"
    last = environment.get("COLORFGBG", "").rpartition(";")[2]
    if not last.isdecimal():
        return "unknown"
    return "light" if int(last) in _LIGHT_COLOURS else "dark"


def has_many(environment: Mapping[str, str]) -> bool:
    """Whether the terminal has 256 colours or more, as rich decides: the prompt cannot wait for it.

    What is no terminal, or a dumb one, is given no colours, whatever these are.
    """
    kind = environment.get("TERM", "").strip().lower().rpartition("-")[2]
    return kind in _MANY or environment.get("COLORTERM", "").strip().lower() in _TRUE


@cache
def palette() -> Palette:
    """Return the colours of this process's terminal."""
    if not has_many(os.environ):
        return Palette()
    return PALETTES[background(_setting, os.environ)]


def styles(colours: Palette) -> dict[str, str]:
    """Return what each name of a style means to rich: all those that we use."""
    named = {name: colour or "none" for name, colour in colours._asdict().items()}
    return named | {
        "dim italic": f"{colours.dim} italic".strip(),
        "yellow dim": named["yellow"],
        "code": named["cyan"] if colours.cyan else "bold",
        "code.comment": f"{colours.dim} italic".strip(),
        "code.keyword": named["blue"] if colours.blue else "bold",
        "code.name": "bold",
        "code.string": named["green"],
        "code.number": named["magenta"],
        "code.deleted": named["red"],
        "code.inserted": named["green"],
    }


def theme() -> Theme:
    """Return the same for a console."""
    from rich.theme import Theme  # noqa: PLC0415

    return Theme(styles(palette()))


def prompt_style() -> BaseStyle:
    """Return the styles of what asks: the prompt, its menu and status line, questions and lists."""
    from prompt_toolkit.styles import Style  # noqa: PLC0415

    dim = palette().dim
    return Style.from_dict(
        {
            "dim": dim,
            "typing": palette().cyan,
            "bottom-toolbar": f"noreverse {dim}",
            "completion-menu": "bg:default default",
            "completion-menu.completion": "bg:default default",
            "completion-menu.completion.current": "bg:default default reverse",
            "completion-menu.meta.completion": f"bg:default {dim or 'default'}",
            "completion-menu.meta.completion.current": "bg:default default reverse",
            "completion-menu.multi-column-meta": "bg:default default",
            "scrollbar.background": "bg:default",
            "scrollbar.button": "bg:default reverse",
            "search": "bg:default default reverse",
            "search.current": "bg:default default reverse underline",
            "incsearch": "bg:default default reverse",
            "incsearch.current": "bg:default default reverse underline",
        }
    )
