"""Asking before a tool acts."""

import asyncio
import io

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from app.repl.approval import NOBODY, AllowAll, AskingApprover, RefuseAll, ask_at_terminal
from domain.messages import ToolUseBlock


def call(name="bash", **arguments):
    return ToolUseBlock(id="toolu_1", name=name, input=arguments)


def approver(*decisions):
    left, asked = list(decisions), []

    async def ask(summary):
        asked.append(summary)
        return left.pop(0)

    it = AskingApprover(Console(file=io.StringIO(), width=80), ask=ask)
    it.asked = asked
    return it


def refusal(it, *calls):
    async def ask_all():
        return [await it.refusal(one, f"{one.name} it") for one in calls]

    return asyncio.run(ask_all())


def test_yes_holds_once():
    it = approver("yes", "no")
    first, second = refusal(it, call(), call())

    assert first is None
    assert "declined" in second
    assert it.asked == ["bash it", "bash it"]


def test_always_holds_for_that_tool():
    it = approver("always", "no")
    results = refusal(it, call(), call(), call("write", content=""))

    assert results[:2] == [None, None]
    assert it.asked == ["bash it", "write it"]


def test_stopping_at_the_question_stops_the_turn():
    with pytest.raises(asyncio.CancelledError):
        refusal(approver("stop"), call())


def test_a_write_shows_what_would_be_written_but_not_without_bounds():
    it = approver("no")
    refusal(it, call("write", content="\n".join(f"\x1b{n}" for n in range(1000))))
    shown = it._console.file.getvalue()

    assert "+␛0\n" in shown
    assert "+␛999" in shown
    assert "… +977 lines" in shown
    assert "\x1b" not in shown


def test_an_edit_shows_old_and_new():
    it = approver("no")
    refusal(it, call("edit", edits=[{"old_text": "a\nb\nc", "new_text": "a\nB\nc"}, "nonsense"]))

    lines = it._console.file.getvalue().split()
    assert {"-b", "+B"} <= set(lines)


def test_a_command_of_many_lines_is_shown_whole():
    it = approver("no")
    refusal(it, call(command="echo 1\n" * 30 + "rm -rf x"))

    assert it._console.file.getvalue().count("echo 1") == 30
    assert "rm -rf x" in it._console.file.getvalue()


def test_nobody_to_ask():
    assert refusal(AllowAll(), call()) == [None]
    assert refusal(RefuseAll(), call()) == [NOBODY]
    assert refusal(RefuseAll("no"), call()) == ["no"]


@pytest.mark.parametrize(
    ("keys", "decision"),
    [
        ("y", "yes"),
        ("yes\r", "yes"),
        ("Y\r", "yes"),
        ("a", "always"),
        ("always", "always"),
        ("n\r", "no"),
        ("\r\ry", "yes"),
        ("\x03", "stop"),
        ("\x04", "stop"),
        ("\x1b", "stop"),
        ("also do this\rn", "no"),
    ],
)
def test_keys_answer(keys, decision):
    async def answered():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            task = asyncio.ensure_future(ask_at_terminal("$ rm x"))
            await asyncio.sleep(0.05)
            source.send_text(keys)
            return await asyncio.wait_for(task, 10)

    assert asyncio.run(answered()) == decision


def test_a_burst_of_typing_that_is_no_answer_decides_nothing():
    async def answered():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            task = asyncio.ensure_future(ask_at_terminal("$ rm x"))
            await asyncio.sleep(0.05)
            source.send_text("always type ahead")
            await asyncio.sleep(0.6)
            assert not task.done()
            source.send_text("n")
            return await asyncio.wait_for(task, 10)

    assert asyncio.run(answered()) == "no"


def test_closed_input_stops_the_turn():
    async def answered():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            source.close()
            it = AskingApprover(Console(file=io.StringIO()))
            return await it.refusal(call(), "$ rm x")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(answered())
