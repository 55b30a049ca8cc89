"""A question about something large: all of it is shown, at the cost of writing it."""

import io
import sys
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.cells import cell_len
from rich.console import Console

from app.ports import Proposal
from app.repl.question import Question
from app.view.visible import visible
from domain.messages import ToolUseBlock
from tests import builders as b


class Writing(NamedTuple):
    path: str
    target: Path
    before: None
    after: str


def shown_of(text, *, width=100, colours=None):
    """What stands on the screen when a file of *text* is to be written, and all of it was shown."""
    screen = io.StringIO()
    console = Console(
        file=screen, width=width, height=30, force_terminal=bool(colours), color_system=colours
    )
    call = ToolUseBlock(b.tool_use("toolu_1", "write", path="a"))
    proposal = Proposal(call, "it", Writing("a", Path("/work/a"), None, text))
    question = Question(proposal, Path("/work"), console)
    question.show()
    if not question.is_shown_whole:
        question.show_all()
    return screen.getvalue()


def calls_of(work):
    """How many times functions of Python are entered, in all, while *work* is done."""
    count = 0

    def enter(_frame, event, _argument):
        nonlocal count
        count += event == "call"

    sys.setprofile(enter)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    ("text", "most"),
    [
        ("x" * 200_000, 20_000),  # one line, of which the end is no ASCII: no line feed is there
        ("中文" * 20_000, 20_000),
        ("hello world\n" * 10_000, 300_000),
        ("x\n\n" * 5_000, 300_000),
    ],
)
def test_what_is_large_is_not_laid_out_character_by_character(text, most):
    assert calls_of(lambda: shown_of(text, colours="256")) < most


@given(st.text(st.sampled_from("ab中é\u0301👍한"), min_size=1, max_size=60), st.integers(20, 40))
def test_a_line_is_broken_where_the_screen_ends_and_nothing_of_it_is_lost(text, width):
    shown = shown_of(text + "\n", width=width).partition("  1 +")[2].partition("\n[y]")[0]

    assert shown.replace("\n   ↪ ", "").replace("\n  ↪ ", "") == visible(text)
    assert all(cell_len(row) < width for row in shown.split("\n"))
