"""The line on a dumb terminal: whatever the keys do to it, it stands there as it will be sent."""

import asyncio
import io

import pyte
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output.plain_text import PlainTextOutput

from app.repl.prompt import PROMPT, TerminalPrompts
from tests.levels import examples

LEFT, HOME, UP, BACKSPACE, CTRL_A, CTRL_U, CTRL_W = (
    "\x1b[D", "\x1b[H", "\x1b[A", "\x7f", "\x01", "\x15", "\x17",
)  # fmt: skip


@pytest.fixture(autouse=True)
def _dumb(monkeypatch):
    monkeypatch.setenv("TERM", "dumb")


def typed(keys, default=""):
    """What is read when *keys* are typed, and what was written meanwhile."""
    written = io.StringIO()

    async def read():
        with create_pipe_input() as source, create_app_session(source, PlainTextOutput(written)):
            source.send_text(keys)
            return await asyncio.wait_for(TerminalPrompts(None).read(default), 10)

    return asyncio.run(read()), written.getvalue()


def last_line(written):
    """The last line on the screen of a terminal that was *written* to."""
    screen = pyte.Screen(400, 100)
    pyte.Stream(screen).feed(written.replace("\n", "\r\n"))
    return [line.rstrip() for line in screen.display if line.strip()][-1]


def test_backspace_rubs_out_what_went():
    assert typed("abc\x7f\x7fd\r") == ("ad", f"{PROMPT}abc\b \b\b \bd\n")


def test_what_is_offered_can_be_seen_and_changed():
    assert typed("\x7f!\r", "again") == ("agai!", f"{PROMPT}again\b \b!\n")


@settings(
    max_examples=examples(40),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.lists(
        st.sampled_from([*"ab 你é", LEFT, HOME, UP, BACKSPACE, CTRL_A, CTRL_U, CTRL_W]), max_size=12
    )
)
def test_the_line_stands_on_the_screen_as_it_is_sent(keys):
    text, written = typed("".join(keys) + "\r")

    assert last_line(written) == f"{PROMPT}{text}".rstrip()
