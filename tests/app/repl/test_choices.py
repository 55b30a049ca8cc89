"""A choice between two prompts: only what is typed after the question answers it."""

import asyncio
from contextlib import nullcontext
from types import SimpleNamespace

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.typeahead import store_typeahead
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from app.repl.place_commands import choose
from app.terminal import Question

WORDS = ("send", "drop", "keep")
DESK = SimpleNamespace(type_ahead=SimpleNamespace(paused=nullcontext))


def chosen(typed, *, before=""):
    """What comes of *typed*, and of what the prompt *before* had left over."""
    with create_pipe_input() as source, create_app_session(source, DummyOutput()):
        if before:
            store_typeahead(source, [*map(KeyPress, before), KeyPress(Keys.ControlM)])
        source.send_text(typed)
        return asyncio.run(choose(DESK, Question((), "Send it?", WORDS, "keep")))


@pytest.mark.parametrize(
    ("typed", "word"),
    [("send\r", "send"), ("d\r", "drop"), ("\r", "keep"), ("x\r", "keep"), ("sends\r", "keep"),
     ("send\x03", "keep"), ("\x04", "keep")],
)  # fmt: skip
def test_a_word_or_its_beginning_is_chosen_and_all_else_is_the_default(typed, word):
    assert chosen(typed) == word


def test_what_was_typed_before_the_question_does_not_answer_it():
    assert chosen("drop\r", before="send") == "drop"
