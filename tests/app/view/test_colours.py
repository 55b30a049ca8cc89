"""Everything that is coloured can be read: on black, on white, and where nobody knows."""

import io
import re
from pathlib import Path
from types import SimpleNamespace

import pytest
from prompt_toolkit.styles import default_ui_style, merge_styles
from rich.color import ANSI_COLOR_NAMES
from rich.console import Console
from rich.theme import Theme

from app.ports import Proposal
from app.repl.question import Question
from app.view import colours
from app.view.markdown import Markdown
from app.view.tools import show_output
from app.view.transcript import show_transcript
from tests.app.repl.test_screen import Screen, call, output
from tests.app.view.test_transcript import ITEMS

APP = Path(__file__).parents[3] / "app"
READABLE = 4.5
BACKGROUNDS = {"dark": ["#000000"], "light": ["#ffffff"], "unknown": ["#000000", "#ffffff"]}
ATTRIBUTES = {"", "0", "1", "3", "4", "9"}
"""Bold, italic, underlined, struck: no background."""
ANSWER = """\
# Title
*a* **b** `c` ~~d~~ [e](https://e.example)
> f

| g | h |
|---|---|
| 1 | 2 |

```python
@decorator
class A(B):  # comment
    def f(self): return not "text" + 42 is None
```
```diff
--- a
+++ b
@@ -1 +1 @@
-old
+new
```
```json
{"a": [1.5, true, null]}
```
***
"""


def luminance(colour):
    channels = [int(colour[at : at + 2], 16) / 255 for at in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in channels)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    low, high = sorted(map(luminance, (one, other)))
    return (high + 0.05) / (low + 0.05)


def everything(palette, system):
    """Print everything that has a style, and return what a terminal gets."""
    theme = Theme(colours.styles(palette))
    console = Console(
        file=io.StringIO(), width=80, force_terminal=True, color_system=system, theme=theme
    )
    console.print(Markdown(ANSWER))
    show_transcript(console, ITEMS, earlier=3)
    change = SimpleNamespace(
        path="a", target=Path("/elsewhere/a"), before="a\nb\nc\n", after="a\nB\nc\n"
    )
    proposal = Proposal(call(command="ls  " * 40, path="a"), "it", change)
    question = Question(proposal, Path("/work"), console)
    question.show()
    question.show_all()
    question.answered("no")
    show_output(console, "bash", "\n".join(map(str, range(50))), is_error=False)
    show_output(console, "edit", "--- a\n+++ a\n@@ -1 +1 @@\n-1\n+2", is_error=False)
    screen = Screen(fancy=True, color_system=system, theme=theme)
    screen.turn_started()
    screen.streamed({"type": "retry", "attempt": 1, "of": 3, "after": 1, "reason": "busy"})
    screen.tool_started(call(), "$ make")
    screen.tool_printed(call(), "compiling")
    screen.show_waiting([("a prompt", 7), ("/model", None)])
    moving = screen.moving()
    screen.tool_ended(call(), output("failed", is_error=True))
    screen.turn_ended("interrupted", None)
    return console.file.getvalue() + moving + screen.file.getvalue()


def codes(printed):
    return {code for group in re.findall(r"\x1b\[([0-9;]*)m", printed) for code in [group]}


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_every_colour_that_is_shown_can_be_read_on_its_background(background):
    shown = everything(colours.PALETTES[background], "truecolor")

    found = set(re.findall(r"38;2;(\d+);(\d+);(\d+)", shown))
    assert len(found) > 3
    for rgb in found:
        colour = "#" + "".join(f"{int(channel):02x}" for channel in rgb)
        for behind in BACKGROUNDS[background]:
            assert contrast(colour, behind) >= READABLE, colour
    others = {
        part for code in codes(shown) for part in re.sub(r"38;2;\d+;\d+;\d+", "", code).split(";")
    }
    assert others <= ATTRIBUTES


@pytest.mark.parametrize("background", BACKGROUNDS)
def test_with_256_colours_they_are_the_same(background):
    """Each is one of the 240 that look the same everywhere."""
    levels = [0, 95, 135, 175, 215, 255]
    greys = [8 + 10 * step for step in range(24)]
    for colour in filter(None, colours.PALETTES[background]):
        channels = [int(colour[at : at + 2], 16) for at in (1, 3, 5)]
        assert set(channels) <= set(levels) or (len(set(channels)) == 1 and channels[0] in greys)


def test_with_sixteen_colours_which_somebody_chose_there_are_none():
    shown = everything(colours.Palette(), "standard")

    assert {part for code in codes(shown) for part in code.split(";")} <= ATTRIBUTES
    assert not [token for token in colours.prompt_style().style_rules if "ansi" in token[1]]


@pytest.mark.parametrize(
    ("terminal", "has_colours"), [("xterm", False), ("xterm-256color", True), ("dumb", False)]
)
def test_a_terminal_of_sixteen_colours_gets_none_of_ours(monkeypatch, terminal, has_colours):
    for name in ("NO_COLOR", "COLORTERM"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("FORCE_COLOR", "1")
    monkeypatch.setenv("TERM", terminal)
    colours.choose("dark")
    try:
        assert colours.palette() == (colours.PALETTES["dark"] if has_colours else colours.Palette())
    finally:
        colours.choose("auto")


@pytest.mark.parametrize("colorterm", ["", "truecolor", " 24BIT ", "yes"])
@pytest.mark.parametrize(
    "terminal",
    ["", "xterm", "xterm-256color", "XTERM-256COLOR ", "screen-16color", "xterm-kitty", "256color"],
)
def test_who_has_many_colours_is_decided_as_rich_does(terminal, colorterm):
    environment = {"TERM": terminal, "COLORTERM": colorterm}
    console = Console(force_terminal=True, _environ=environment)

    assert colours.has_many(environment) == (console.color_system in ("256", "truecolor"))


def test_what_asks_has_the_terminals_own_background():
    """prompt_toolkit's menus and bars are black, grey or reversed, if nobody says otherwise."""
    style = merge_styles([default_ui_style(), colours.prompt_style()])
    for name in (
        "bottom-toolbar", "completion-menu", "completion-menu.completion", "search", "incsearch",
        "completion-menu.completion.current", "completion-menu.meta.completion", "search.current",
        "completion-menu.meta.completion.current", "completion-menu.multi-column-meta",
        "scrollbar.background", "scrollbar.button", "incsearch.current",
    ):  # fmt: skip
        attributes = style.get_attrs_for_style_str(f"class:{name}")
        assert attributes.bgcolor in ("", "default"), name
        is_chosen = "current" in name or name in ("search", "incsearch", "scrollbar.button")
        assert attributes.reverse == is_chosen, name


@pytest.mark.parametrize(
    ("setting", "environment", "expected"),
    [
        ("auto", {}, "unknown"),
        ("auto", {"COLORFGBG": "15;0"}, "dark"),
        ("auto", {"COLORFGBG": "0;15"}, "light"),
        ("auto", {"COLORFGBG": "0;7"}, "light"),
        ("auto", {"COLORFGBG": "0;default;15"}, "light"),
        ("auto", {"COLORFGBG": "12;8"}, "dark"),
        ("auto", {"COLORFGBG": "0;default"}, "unknown"),
        ("auto", {"COLORFGBG": "?"}, "unknown"),
        ("light", {"COLORFGBG": "15;0"}, "light"),
        ("dark", {"COLORFGBG": "0;15"}, "dark"),
    ],
)
def test_what_is_behind_the_text(setting, environment, expected):
    assert colours.background(setting, environment) == expected


def test_no_code_names_a_colour_that_is_none_of_ours():
    """A name that is not in the palette would be one of the sixteen."""
    for path in APP.rglob("*.py"):
        for text in re.findall(r'"([a-z_]+(?: [a-z]+)*)"', path.read_text()):
            assert not text.startswith(("ansi", "bright_")), (path, text)
            if set(text.split()) <= {*ANSI_COLOR_NAMES, "dim"}:
                assert text in colours.styles(colours.Palette()), (path, text)
