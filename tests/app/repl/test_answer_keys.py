"""The keys that answer a question: one word, alone, on every kind of terminal."""

import asyncio
import os
import pty
import signal
from contextlib import contextmanager

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.input.typeahead import get_typeahead, store_typeahead
from prompt_toolkit.input.vt100 import Vt100Input
from prompt_toolkit.key_binding import KeyPress
from prompt_toolkit.keys import Keys
from prompt_toolkit.output import DummyOutput

from app.repl import answer_keys
from app.repl.answer_keys import AnswerKeys, meaning
from app.repl.unread_terminal import throw_away_input
from tests.levels import examples

WORDS = {"y": "yes", "yes": "yes", "a": "always", "n": "no", "no": "no"}
PASTE = "\x1b[200~{}\x1b[201~"


@pytest.fixture(params=["xterm-256color", "dumb"], autouse=True)
def _terminal(request, monkeypatch):
    monkeypatch.setenv("TERM", request.param)
    monkeypatch.setattr(answer_keys, "SECONDS_OF_SILENCE", 0.02)
    monkeypatch.setattr(answer_keys, "SECONDS_FOR_AN_ESCAPE", 0.01)


class Weighing(AnswerKeys):
    """Tells when a burst of keys has come to its end."""

    def __init__(self, words):
        self.explained = 0
        super().__init__(words, self._count)
        self.has_weighed = asyncio.Event()

    def _count(self):
        self.explained += 1

    def _end_burst(self):
        super()._end_burst()
        self.has_weighed.set()


def answer_to(*bursts):
    """What comes of *bursts* of keys, each after the one before was weighed; then no more."""

    async def answered():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            keys = Weighing(WORDS)
            answering = asyncio.ensure_future(keys.answer())
            for burst in bursts:
                keys.has_weighed.clear()
                source.send_text(burst)
                weighing = asyncio.ensure_future(keys.has_weighed.wait())
                await asyncio.wait(
                    {answering, weighing}, timeout=10, return_when=asyncio.FIRST_COMPLETED
                )
                weighing.cancel()
            source.close()
            answer = await asyncio.wait_for(answering, 10)
            is_other = answer == "stop" and keys.explained
            return "other" if is_other else answer

    return asyncio.run(answered())


@pytest.mark.parametrize(
    ("keys", "answer"),
    [
        ("y", "yes"),
        ("yes\r", "yes"),
        ("Y\n", "yes"),
        ("a", "always"),
        ("n\r", "no"),
        ("\r\ry", "yes"),
        ("\x1b[24;80Ry", "yes"),  # the terminal says where its cursor is: nobody typed that
        ("\x03", "stop"),
        ("\x04", "stop"),
        ("\x1b", "stop"),
        ("y\x1b", "stop"),
    ],
)
def test_a_word_or_its_letter_answers(keys, answer):
    assert answer_to(keys) == answer


@pytest.mark.parametrize(
    "keys",
    ["yes please", "y\rnext prompt\r", "also do this\ry", "x", "\r", "\x1b[A", "y\x1b[B", "yy",
     PASTE.format("y"), PASTE.format("yes\r"), "y" + PASTE.format("\r")],
)  # fmt: skip
def test_a_burst_that_is_no_word_decides_nothing_and_one_may_follow(keys):
    assert answer_to(keys) == "other"  # it was said; the terminal was closed, nothing was decided
    assert answer_to(keys, "n") == "no"


def test_no_key_but_enter_is_part_of_a_word_whatever_it_is_called():
    """The toolkit's keys are texts, too: ``Keys.Up`` is ``up``."""
    for key in Keys:
        said = {
            meaning([KeyPress(key)], {key.value: "yes"}),
            meaning([KeyPress("y"), KeyPress(key)], {f"y{key.value}": "yes"}),
        }
        assert said <= {None, "stop"}, key


class InPieces(Weighing):
    """Gets the next of *pieces* at the last moment at which it still belongs to the burst."""

    def __init__(self, words, source, pieces):
        super().__init__(words)
        self._pieces, self._pipe = list(pieces), source

    def _flush(self):
        super()._flush()
        if self._pieces:
            self._pipe.send_text(self._pieces.pop(0))


def test_a_word_within_what_is_typed_on_is_no_answer():
    async def answered():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            keys = InPieces(WORDS, source, ["es", " ple", "ase"])
            answering = asyncio.ensure_future(keys.answer())
            source.send_text("y")
            weighing = asyncio.ensure_future(keys.has_weighed.wait())
            await asyncio.wait({answering, weighing}, return_when=asyncio.FIRST_COMPLETED)
            source.send_text("n")
            return await answering

    assert asyncio.run(answered()) == "no"


class Terminal(DummyOutput):
    """Remembers whether pastes come in brackets."""

    def __init__(self):
        self.told = []

    def enable_bracketed_paste(self):
        self.told.append("brackets")

    def disable_bracketed_paste(self):
        self.told.append("none")


def test_pastes_come_in_brackets_while_the_question_stands_but_not_on_a_dumb_terminal():
    """Else a pasted "y" would be one that was typed; and nothing is left as it was not found."""

    async def answered():
        with create_pipe_input() as source, create_app_session(source, Terminal()) as session:
            before = signal.getsignal(signal.SIGCONT)
            source.send_text("n")
            answer = await AnswerKeys(WORDS, lambda: None).answer()
            assert signal.getsignal(signal.SIGCONT) is before
            return answer, session.output.told

    is_dumb = os.environ["TERM"] == "dumb"
    assert asyncio.run(answered()) == ("no", [] if is_dumb else ["brackets", "none"])


@settings(
    max_examples=examples(25),
    deadline=None,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(
    st.text(
        st.characters(codec="utf-8") | st.sampled_from("yna\r\n \x1b[~"), min_size=1, max_size=5
    )
)
def test_random_keys_allow_nothing_but_by_a_word(keys):
    answer = answer_to(keys)

    assert answer in ("stop", "again", "other") or WORDS[keys.strip().lower()] == answer


def test_where_a_cursor_is_is_nothing_that_was_typed():
    assert answer_to("\x1b[24;80R") == "stop"  # when the terminal was closed; nothing was said


@pytest.mark.parametrize("key", ["\x03", "\x04", "\x1b"])
def test_a_key_that_stops_does_so_at_once(monkeypatch, key):
    """Also while a burst of others goes on and on."""
    monkeypatch.setattr(answer_keys, "SECONDS_OF_SILENCE", 10_000)

    async def answered():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            source.send_text(f"what was typed {key}")
            return await asyncio.wait_for(AnswerKeys(WORDS, lambda: None).answer(), 10)

    assert asyncio.run(answered()) == "stop"


def test_ctrl_z_leaves_the_terminal_to_the_shell_and_the_question_is_put_again(monkeypatch):
    left = []
    monkeypatch.setattr(answer_keys, "suspend", lambda: left.append("to the shell"))

    assert (answer_to("y\x1a"), left) == ("again", ["to the shell"])


def test_a_terminal_that_is_gone_stops():
    assert answer_to() == "stop"


@contextmanager
def terminal():
    """A pseudo-terminal: where its keys come from, and the input that reads them."""
    ours, theirs = pty.openpty()
    with (
        os.fdopen(ours, "wb", buffering=0) as keyboard,
        os.fdopen(theirs) as file,
        create_app_session(Vt100Input(file), DummyOutput()),
    ):
        yield keyboard


def test_a_terminal_that_hangs_up_stops():
    async def answered():
        with terminal() as keyboard:
            answering = asyncio.ensure_future(AnswerKeys(WORDS, lambda: None).answer())
            await asyncio.sleep(0)
            keyboard.close()
            return await asyncio.wait_for(answering, 10)

    assert asyncio.run(answered()) == "stop"


def test_what_cannot_be_waited_for_stops(tmp_path):
    """As if the terminal had been taken away, and a file put in its place."""
    (tmp_path / "file").write_text("y\n")
    with (tmp_path / "file").open() as file, create_app_session(Vt100Input(file), DummyOutput()):

        async def answered():
            return await AnswerKeys(WORDS, lambda: None).answer()

        assert asyncio.run(answered()) == "stop"


def test_keys_of_before_the_question_are_thrown_away():
    """What was typed and is not read yet stands in the terminal's own queue."""

    async def answered():
        with terminal() as keyboard:
            keyboard.write(b"y\n")
            keys = Weighing(WORDS)
            answering = asyncio.ensure_future(keys.answer())
            await asyncio.sleep(0)  # it has thrown away what was there
            keyboard.write(b"n")
            return await asyncio.wait_for(answering, 10)

    assert asyncio.run(answered()) == "no"


def test_keys_that_the_prompt_before_left_over_are_thrown_away():
    """The toolkit keeps them for the next prompt: they would be the reason of a no, say."""
    with create_pipe_input() as source:
        store_typeahead(source, [KeyPress("y"), KeyPress(Keys.ControlM)])
        throw_away_input(source)

        assert get_typeahead(source) == []


def test_what_was_typed_while_the_program_was_stopped_is_no_answer():
    async def answered():
        with terminal() as keyboard:
            answering = asyncio.ensure_future(AnswerKeys(WORDS, lambda: None).answer())
            await asyncio.sleep(0)
            keyboard.write(b"y\n")  # as if stopped: the keys are there …
            os.kill(os.getpid(), signal.SIGCONT)  # … when it goes on
            first = await asyncio.wait_for(answering, 10)
            answering = asyncio.ensure_future(AnswerKeys(WORDS, lambda: None).answer())
            await asyncio.sleep(0)
            keyboard.write(b"n")
            return first, await asyncio.wait_for(answering, 10)

    assert asyncio.run(answered()) == ("again", "no")
