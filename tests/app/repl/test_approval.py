"""Asking before a tool acts."""

import asyncio
import io

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console

from app.ports import Approval
from app.repl.approval import DECLINED, NOBODY, AllowAll, AskingApprover, RefuseAll, ask_at_terminal
from domain.messages import ToolUseBlock


def call(name="bash", **arguments):
    return ToolUseBlock(id="toolu_1", name=name, input=arguments)


def approver(*answers, why="", **options):
    left, asked = list(answers), []

    async def ask(summary, *, is_command):
        asked.append((summary, is_command))
        return left.pop(0)

    async def ask_why():
        return why

    it = AskingApprover(Console(file=io.StringIO(), width=80), ask=ask, ask_why=ask_why, **options)
    it.asked = asked
    return it


def decided(it, *calls):
    async def ask_all():
        return [await it.decide(one, f"{one.name} it") for one in calls]

    return asyncio.run(ask_all())


@pytest.mark.parametrize(
    ("answer", "approval"),
    [
        ("yes", Approval("yes")),
        ("always", Approval("always")),
        ("command", Approval("always", command="ls")),
        ("no", Approval("no", reason=DECLINED)),
        ("reason", Approval("no", reason=f"{DECLINED} The user says: too early")),
    ],
)
def test_what_the_person_says_is_what_was_decided(answer, approval):
    it = approver(answer, why="too early ")

    assert decided(it, call(command="ls")) == [approval]
    assert it.asked == [("bash it", True)]


def test_only_a_command_can_be_allowed_by_itself():
    it = approver("yes")
    decided(it, call("write", content="x"))

    assert it.asked == [("write it", False)]


def test_stopping_at_the_question_stops_the_turn():
    with pytest.raises(asyncio.CancelledError):
        decided(approver("stop"), call())


def test_a_write_shows_what_would_be_written_but_not_without_bounds():
    it = approver("no")
    decided(it, call("write", content="\n".join(f"\x1b{n}" for n in range(1000))))
    shown = it._console.file.getvalue()

    assert "+␛0\n" in shown
    assert "+␛999" in shown
    assert "… +977 lines" in shown
    assert "\x1b" not in shown


@pytest.mark.parametrize(
    ("old", "shown"),
    [
        (b"one\ntwo\n", "  This replaces what is in the file:\n   one\n  -two\n  +2\n"),
        (b"x" * 1_000_001, "  This replaces what is in the file:\n  +one\n  +2\n"),
        (None, "  +one\n  +2\n"),
    ],
)
def test_whoever_is_asked_sees_what_would_be_overwritten(tmp_path, old, shown):
    if old is not None:
        (tmp_path / "a.txt").write_bytes(old)
    it = approver("yes", cwd=tmp_path)
    decided(it, call("write", path="a.txt", content="one\n2\n"))

    assert it._console.file.getvalue().startswith("\n" + shown)


def test_an_edit_shows_old_and_new():
    it = approver("no")
    decided(it, call("edit", edits=[{"old_text": "a\nb\nc", "new_text": "a\nB\nc"}, "nonsense"]))

    lines = it._console.file.getvalue().split()
    assert {"-b", "+B"} <= set(lines)


def test_a_command_of_many_lines_is_shown_whole():
    it = approver("no")
    decided(it, call(command="echo 1\n" * 30 + "rm -rf x"))

    assert it._console.file.getvalue().count("echo 1") == 30
    assert "rm -rf x" in it._console.file.getvalue()


def test_nobody_to_ask():
    assert decided(AllowAll(), call()) == [None]
    assert decided(RefuseAll(), call()) == [Approval("no", reason=NOBODY)]
    assert decided(RefuseAll("no"), call()) == [Approval("no", reason="no")]


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
            task = asyncio.ensure_future(ask_at_terminal("$ rm x", is_command=True))
            await asyncio.sleep(0.05)
            source.send_text(keys)
            return await asyncio.wait_for(task, 10)

    assert asyncio.run(answered()) == decision


def test_a_burst_of_typing_that_is_no_answer_decides_nothing():
    async def answered():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            task = asyncio.ensure_future(ask_at_terminal("$ rm x", is_command=True))
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
            return await it.decide(call(), "$ rm x")

    with pytest.raises(asyncio.CancelledError):
        asyncio.run(answered())
