"""Where prompts come from."""

import asyncio
import io
import os
import re
import stat

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.output.vt100 import Vt100_Output

from app.repl.pastes import Pastes
from app.repl.prompt import LinePrompts, TerminalPrompts

PASTE = "\x1b[200~{}\x1b[201~"


def typed(*chunks, history=None, default="", reads=1, **options):
    """What is read when *chunks* are typed, each after a moment; what is callable is called."""

    async def read_all():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            prompts = TerminalPrompts(history, **options)

            async def type_them():
                for chunk in chunks:
                    await asyncio.sleep(0.5)
                    if callable(chunk):
                        chunk()
                    else:
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
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            clock = lambda: 0.0  # noqa: E731 - however slow the machine is, it was typed before
            prompts = TerminalPrompts(None, clock=clock)
            source.send_text("one\rtwo\r")
            return [await asyncio.wait_for(prompts.read(), 10) for _ in range(2)]

    assert asyncio.run(read_both()) == ["one", "two"]


def test_who_waits_for_the_first_prompt_is_told_once():
    told = []

    async def read_both():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            prompts = TerminalPrompts(None)
            prompts.once_shown(lambda: told.append("shown"))
            assert told == []
            for line in ("one", "two"):
                source.send_text(f"{line}\r")
                assert await asyncio.wait_for(prompts.read(), 10) == line
            prompts.once_shown(lambda: told.append("at once"))

    asyncio.run(read_both())

    assert told == ["shown", "at once"]


def test_a_prompt_can_stand_before_it_is_read_and_what_is_typed_is_not_lost():
    async def stand():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            prompts = TerminalPrompts(None, clock=lambda: 0.0)
            prompts.begin(is_deaf=False)
            source.send_text("one\rtwo\r")
            return [await asyncio.wait_for(prompts.read(), 10) for _ in range(2)]

    assert asyncio.run(stand()) == ["one", "two"]


def test_a_deaf_prompt_takes_no_key_until_something_stands_above_it():
    happened = []

    async def stand():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            prompts = TerminalPrompts(None)
            shown = asyncio.Event()
            prompts.once_shown(shown.set)
            reading = prompts.begin(is_deaf=True)
            reading.add_done_callback(lambda _: happened.append("read"))
            await shown.wait()
            source.send_text("typed\r")
            for _ in range(20):  # whatever can happen does
                await asyncio.sleep(0)
            await prompts.above(lambda: happened.append("above"))
            return await asyncio.wait_for(prompts.read(), 10)

    assert asyncio.run(stand()) == "typed"
    assert happened == ["above", "read"]


def test_ctrl_c_clears_the_line_and_twice_leaves():
    assert typed("abc\x03d\r") == "d"
    assert typed("abc\x03", "\x03") is None
    assert typed("\x03x\x03y\r") == "y"


def test_only_a_ctrl_c_soon_after_another_leaves():
    class Clock:
        now = 100.0

        def __call__(self):
            return self.now

    clock = Clock()

    def later():
        clock.now += 5

    assert typed("abc\x03", later, "\x03", "d\r", clock=clock) == "d"
    assert typed("abc\x03", later, "\x03", "\x03", clock=clock) is None


def test_enter_sends_what_was_searched_for_and_found(tmp_path):
    history = tmp_path / "history"
    typed("about apples\r", "about pears\r", history=history, reads=2)

    assert typed("\x12", "appl", "\r", history=history) == "about apples"
    assert typed("\x12", "plums", "\r", "x\r", history=history) == "x"
    assert typed("\x12", "appl", "\x1b", "!\r", history=history) in (
        "!about apples",
        "about !apples",
    )


@pytest.fixture
def editor(tmp_path, monkeypatch):
    """Makes $EDITOR a shell script."""

    def be(script):
        path = tmp_path / "editor"
        path.write_text(f"#!/bin/sh\n{script}\n")
        path.chmod(0o755)
        monkeypatch.setenv("EDITOR", str(path))
        monkeypatch.delenv("VISUAL", raising=False)

    return be


@pytest.mark.parametrize(
    ("script", "line"),
    [
        ('echo "more" >> "$1"', "abc\nmore!"),
        ("exit 0", "abc!"),
        ('echo lost > "$1"; exit 1', "abc!"),
        ('rm "$1"', "abc!"),
    ],
)
def test_the_editor_gives_the_text_back_and_sends_nothing(editor, script, line):
    editor(script)

    assert typed("abc", "\x18\x05", "", "", "!\r") == line


MANY = "\n".join(f"line {n}" for n in range(61))


def test_a_long_paste_is_sent_whole_and_stands_whole_in_the_history(tmp_path):
    history = tmp_path / "history"

    assert typed("look: " + PASTE.format(MANY) + " ok?", "\r", history=history) == (
        f"look: {MANY} ok?"
    )
    assert typed("\x1b[A", "\r", history=history) == f"look: {MANY} ok?"


def test_a_long_paste_is_deleted_as_one_and_expanded_by_a_key():
    assert typed("a" + PASTE.format(MANY) + "\x7fb\r") == "ab"
    assert typed(PASTE.format(MANY) + "\x0f" + "\x7f\r") == MANY[:-1]


def test_what_stands_for_a_paste_is_no_character_of_the_line():
    pastes, typed = Pastes(), "\U000f0000"

    [one] = pastes.folded("x" * 2_000, typed)
    assert one != typed
    assert pastes.expanded(f"{typed}{one}") == typed + "x" * 2_000


@pytest.mark.parametrize(
    "pasted",
    [
        "a\x1b[201~\r/quit\r",
        "a\x1b[201~\r\x1b[200~b\r",
        "\x1b[31mred\x1b]0;title\x07",
        "\x1b[201~\r",
    ],
)
def test_a_paste_that_pretends_to_end_is_one_prompt_all_the_same(pasted):
    async def read():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            prompts = TerminalPrompts(None)
            source.send_text(PASTE.format(pasted))  # there already, as what is typed ahead
            reading = asyncio.ensure_future(prompts.read())
            await asyncio.sleep(0.5)
            source.send_text(".\r")
            return await asyncio.wait_for(reading, 10)

    without_marks = pasted.replace("\x1b[200~", "").replace("\x1b[201~", "").replace("\r", "\n")
    assert asyncio.run(read()) == without_marks + "."


@pytest.mark.parametrize("first", ["_on_resize", "_redraw"], ids=["SIGWINCH", "a frame"])
def test_the_prompt_leaves_nothing_behind_where_the_window_becomes_narrower(first):
    """Its line of 50 cells has become three: it is taken off from the first."""
    size, written = Size(24, 80), io.StringIO()

    async def narrow():
        nonlocal size
        output = Vt100_Output(written, lambda: size, enable_cpr=False)
        with create_pipe_input() as source, create_app_session(source, output):
            prompts = TerminalPrompts(None)
            reading = asyncio.ensure_future(prompts.read())
            source.send_text("x" * 39 + "y")
            while "y" not in written.getvalue():
                await asyncio.sleep(0)
            size, before = Size(24, 20), len(written.getvalue())
            getattr(prompts._session.app, first)()
            reading.cancel()
            await asyncio.wait({reading})
            return written.getvalue()[before:].partition("\x1b[J")[0]

    ups = re.findall(r"\x1b\[(\d*)A", asyncio.run(narrow()))
    assert sum(int(up or 1) for up in ups) == 2


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


@pytest.mark.parametrize("is_closed", [True, False])
def test_a_line_that_cannot_be_sent_any_more_is_the_newest_of_the_earlier_ones(tmp_path, is_closed):
    async def leave():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            prompts = TerminalPrompts(tmp_path / "history")
            reading = asyncio.ensure_future(prompts.read("half a "))
            source.send_text("prompt" + "\x1b[A" * is_closed)  # ↑: there is no earlier one
            while "prompt" not in prompts._session.default_buffer.text:
                await asyncio.sleep(0)
            source.close() if is_closed else reading.cancel()
            await asyncio.wait({reading}, timeout=10)

    asyncio.run(leave())

    assert typed("\x1b[A\r", history=tmp_path / "history") == "half a prompt"


def test_a_home_that_cannot_be_written_costs_only_the_history(tmp_path):
    (tmp_path / "file").write_text("")

    assert typed("hi\r", history=tmp_path / "file" / "history") == "hi"


def test_undecodable_bytes_become_replacement_characters():
    async def read():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            prompts = TerminalPrompts(None)
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
