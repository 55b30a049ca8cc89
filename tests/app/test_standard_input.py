"""Standard input that does not end: a line, a prompt, lines by the million. Nothing waits for it."""

import asyncio
import os
import sys
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app import standard_input
from app.headless import stream_json
from app.headless.stream_json import _MOST_WAITING, Driver
from app.repl.prompt import LinePrompts
from app.standard_input import LONGEST, Lines, LongInputError, lines_of, whole
from tests.app.programs import Program

ZEROS = Path("/dev/zero")


@given(st.lists(st.binary(max_size=12) | st.sampled_from([b"\n", b"a\nb", b"x" * 20])))
def test_lines_are_those_of_the_whole_however_it_comes(pieces):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(standard_input, "LONGEST", 9)
        lines = Lines()
        found = [line for piece in pieces for line in lines.cut(piece)] + lines.rest()

    assert found == [line[:10] for line in b"".join(pieces).split(b"\n")]


def test_a_line_without_an_end_is_not_waited_for(tmp_path):
    done = Program(tmp_path).run("--offline", redirected="</dev/zero")

    assert (done.code, "has more than 67,108,864 bytes" in done.complaint) == (2, True)


def test_a_program_that_drives_hears_of_it_at_once_and_its_input_ends():
    async def lengths(descriptor):
        return [len(line) async for line in lines_of(descriptor)]

    with ZEROS.open() as zeros:
        assert asyncio.run(lengths(zeros.fileno())) == [LONGEST + 1]


def test_the_lines_before_one_without_an_end_are_prompts():
    async def read():
        receiver, sender = os.pipe()
        prompts = LinePrompts(receiver)
        writing = asyncio.get_running_loop().run_in_executor(None, _write, sender)
        try:
            assert await prompts.read() == "hello"
            with pytest.raises(LongInputError):
                await prompts.read()
        finally:
            os.close(receiver)
            await writing

    asyncio.run(read())


def _write(sender):
    with os.fdopen(sender, "wb", buffering=0) as pipe:
        pipe.write(b"hello\n")
        try:
            while True:
                pipe.write(b"x" * (1 << 20))
        except BrokenPipeError:
            pass


def test_a_prompt_of_tens_of_megabytes_is_one(tmp_path, monkeypatch):
    path = tmp_path / "paste"
    path.write_bytes(b"x" * 40_000_000 + b"\n")
    with path.open() as file:
        monkeypatch.setattr(sys, "stdin", file)
        assert len(whole()) == 40_000_000
        with path.open() as again:
            prompts = LinePrompts(again.fileno())
            assert len(asyncio.run(prompts.read())) == 40_000_000


def test_a_prompt_without_an_end_is_refused(monkeypatch):
    with ZEROS.open() as zeros:
        monkeypatch.setattr(sys, "stdin", zeros)
        with pytest.raises(LongInputError):
            whole()


def test_lines_that_come_faster_than_they_are_obeyed_wait_outside(monkeypatch):
    given, taken = [], []

    async def many():
        for number in range(1_000):
            given.append(number)
            yield b""

    async def overflow():
        driver = Driver(None, None, began=None)
        listening = asyncio.ensure_future(driver._listen())
        for _ in range(2):
            for _ in range(100):  # whatever can happen does
                await asyncio.sleep(0)
            taken.append(len(given))
            await (await driver._inbox.get())()  # one is obeyed
        listening.cancel()

    monkeypatch.setattr(stream_json, "lines_of", many)
    asyncio.run(overflow())

    assert taken == [_MOST_WAITING + 1, _MOST_WAITING + 2]
