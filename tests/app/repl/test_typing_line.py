"""The line that is typed while the agent works, key by key."""

import asyncio

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from app.repl.typing_line import TypingLine


class Typist:
    """Remembers what it was told; "end" is the last word."""

    def __init__(self, *back):
        self.told, self.back, self.has_ended = [], list(back), asyncio.Event()

    def pressed_key(self):
        pass

    def suspend(self):
        self.told.append("suspend")

    def changed(self, text):
        self.told.append(text)

    def entered(self, text):
        self.told.append(("entered", text))
        if text == "end":
            self.has_ended.set()

    def took_back(self):
        return self.back.pop() if self.back else None

    def stop(self):
        self.told.append("stop")

    def interrupt(self):
        self.told.append("interrupt")


def typed(*chunks, back=(), pause=False):
    """Return what the typist is told when *chunks* are typed, each when the one before was read."""

    async def read():
        with create_pipe_input() as source:
            line, typist = TypingLine(source=source, output=DummyOutput()), Typist(*back)
            with line.reading(typist):
                for chunk in chunks:
                    source.send_bytes(chunk if isinstance(chunk, bytes) else chunk.encode())
                    await asyncio.sleep(0.15 if chunk[-1:] == "\x1b" else 0)
                source.send_text("\x15end\r")
                await asyncio.wait_for(typist.has_ended.wait(), 10)
            return [each for each in typist.told if each not in (("entered", "end"), "")]

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("keys", "entered"),
    [
        ("hello 你好\r", "hello 你好"),
        ("helpo\x7f\x7flo\r", "hello"),
        ("one two\x17\r", "one"),
        ("gone\x15new\r", "new"),
        ("stays\x1b[A!\r", "stays!"),
        (b"a\xff\r", "a\ufffd"),
        ("a\x1b\rb\r", "a\nb"),
        ("\x1b[200~one\r\ntwo\x1b[201~\r", "one\ntwo"),
        ("left\x1b[D\x1b[3~\x01\r", "left"),
    ],
)
def test_a_line_is_edited_at_its_end_and_entered(keys, entered):
    assert ("entered", entered) in typed(keys, back=["queued"])


def test_blank_lines_are_nothing():
    assert typed("\r", "  \r") == []


def test_esc_stops_and_ctrl_c_interrupts():
    assert typed("\x1b") == ["stop"]
    assert typed("\x1b\x1b", "\x03") == ["stop", "stop", "interrupt"]
    assert typed("\x1b\x1b\x1b") == ["stop"] * 3


def test_an_arrow_is_no_esc():
    assert typed("\x1b[A", "\x1b[B") == []


@pytest.mark.parametrize("key", ["\x1b[1;3A", "\x1b[A"])
def test_what_was_queued_last_is_taken_back(key):
    assert typed(key, "!\r", back=["one", "two"]) in (
        ["two", ("entered", "two!")],
        ["two", "two!", ("entered", "two!")],
        [("entered", "two!")],
    )


def test_keys_belong_to_others_while_it_is_paused():
    async def read():
        with create_pipe_input() as source:
            line, typist = TypingLine(source=source, output=DummyOutput()), Typist()
            with line.reading(typist):
                with line.paused():
                    source.send_text("y")
                    await asyncio.sleep(0)
                    assert [press.key for press in source.read_keys()] == ["y"]
                source.send_text("end\r")
                await asyncio.wait_for(typist.has_ended.wait(), 10)
            return typist.told

    assert asyncio.run(read()) == [("entered", "end")]


def test_what_is_given_back_stands_before_what_was_typed_since():
    line = TypingLine()
    line.give_back("one")
    line.give_back("two")

    assert (line.take(), line.text) == ("two\none", "")
