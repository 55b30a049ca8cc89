"""Where prompts come from."""

import asyncio
import os
import stat

import pytest
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput

from app.repl.prompt import LinePrompts, TerminalPrompts

PASTE = "\x1b[200~{}\x1b[201~"


def typed(*chunks, history=None, default="", reads=1):
    async def read_all():
        with create_pipe_input() as source:
            prompts = TerminalPrompts(history, source=source, output=DummyOutput())

            async def type_them():
                for chunk in chunks:
                    await asyncio.sleep(0.5)
                    source.send_text(chunk)

            typing = asyncio.ensure_future(type_them())
            results = [await asyncio.wait_for(prompts.read(default), 10) for _ in range(reads)]
            await typing
            return results

    results = asyncio.run(read_all())
    return results[0] if reads == 1 else results


def test_enter_sends():
    assert typed("hello 你好\r") == "hello 你好"


@pytest.mark.parametrize("keys", ["a\x1b\rb\r", PASTE.format("a\nb") + "\r"])
def test_a_prompt_may_have_several_lines(keys):
    assert typed(keys) == "a\nb"


def test_a_paste_without_brackets_is_one_prompt_too():
    assert typed("one\rtwo\rthree\r") == "one\ntwo\nthree"


def test_lines_that_were_typed_ahead_are_prompts_of_their_own():
    async def read_both():
        with create_pipe_input() as source:
            prompts = TerminalPrompts(None, source=source, output=DummyOutput())
            source.send_text("one\rtwo\r")
            return [await asyncio.wait_for(prompts.read(), 10) for _ in range(2)]

    assert asyncio.run(read_both()) == ["one", "two"]


def test_whoever_waits_for_the_first_prompt_is_told_once():
    told = []

    async def read_both():
        with create_pipe_input() as source:
            prompts = TerminalPrompts(
                None, source=source, output=DummyOutput(), on_shown=lambda: told.append("shown")
            )
            assert told == []
            source.send_text("one\rtwo\r")
            return [await asyncio.wait_for(prompts.read(), 10) for _ in range(2)]

    asyncio.run(read_both())

    assert told == ["shown"]


def test_ctrl_c_clears_the_line_and_twice_leaves():
    assert typed("abc\x03d\r") == "d"
    assert typed("abc\x03", "\x03") is None
    assert typed("\x03x\x03y\r") == "y"


def test_ctrl_d_leaves_on_an_empty_line():
    assert typed("\x04") is None


def test_a_default_is_offered_for_editing():
    assert typed("!\r", default="again") == "again!"


def test_history_is_private_and_made_when_something_is_typed(tmp_path):
    path = tmp_path / "home" / "history"
    assert typed("\x04", history=path) is None
    assert not path.exists()

    typed("first\r", history=path)

    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert typed("\x1b[A\r", history=path) == "first"


def test_a_home_that_cannot_be_written_costs_only_the_history(tmp_path):
    (tmp_path / "file").write_text("")

    assert typed("hi\r", history=tmp_path / "file" / "history") == "hi"


def test_undecodable_bytes_become_replacement_characters():
    async def read():
        with create_pipe_input() as source:
            prompts = TerminalPrompts(None, source=source, output=DummyOutput())
            source.send_bytes(b"a\xffb\r")
            return await asyncio.wait_for(prompts.read(), 10)

    asyncio.run(read()).encode()


def lines_of(data, reads):
    async def read():
        receiver, sender = os.pipe()
        os.write(sender, data)
        os.close(sender)
        prompts = LinePrompts(receiver)
        results = [await asyncio.wait_for(prompts.read(), 5) for _ in range(reads)]
        os.close(receiver)
        return results

    return asyncio.run(read())


def test_lines_of_a_pipe_are_prompts():
    assert lines_of(b"one\r\n\ntwo \xff", 5) == ["one", "", "two �", None, None]


def test_no_input_at_all_leaves():
    async def read():
        descriptor = os.open(os.devnull, os.O_RDONLY)
        try:
            return await asyncio.wait_for(LinePrompts(descriptor).read(), 5)
        finally:
            os.close(descriptor)

    assert asyncio.run(read()) is None
    assert asyncio.run(LinePrompts(9999).read()) is None


def test_waiting_for_a_line_can_be_cancelled():
    async def read():
        receiver, sender = os.pipe()
        task = asyncio.ensure_future(LinePrompts(receiver).read())
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait({task})
        os.close(receiver)
        os.close(sender)
        return task.cancelled()

    assert asyncio.run(read())
