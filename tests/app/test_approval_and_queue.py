"""Decisions and queued prompts are events: they hold after a restart, over every module."""

import asyncio
from contextlib import suppress

import pytest

from app.ports import UNASKED, Approval
from domain.answer import Answer
from domain.calls import NEVER_STARTED
from domain.events import ApprovalDecided, PromptWithdrawn
from domain.messages import result_text
from tests.app.doubles import Desk, Judge
from tests.server import ScriptedServer, call, reply


def texts(talk):
    return [m.content.text for m in talk.messages() if m.content.text]


def results(talk):
    return [
        result_text(result["content"]) for m in talk.messages() for result in m.content.tool_results
    ]


def reopened(desk, conversations, server, tmp_path, **options):
    return Desk(
        conversations, server, tmp_path, at_hand=conversations.open(desk.talk.id), **options
    )


def test_always_holds_for_the_tool_after_a_restart_and_nobody_is_asked_again(
    conversations, tmp_path
):
    ls = reply(call("bash", command="echo hi"))
    with ScriptedServer([ls, reply("One."), ls, reply("Two.")]) as server:
        desk = Desk(conversations, server, tmp_path, approver=Judge(Approval("always")))
        asyncio.run(desk.say("go"))
        desk = reopened(desk, conversations, server, tmp_path, approver=Judge("never asked"))
        asyncio.run(desk.say("again"))

    assert desk.approver.asked == []
    assert results(desk.talk) == ["hi\n", "hi\n"]


def test_always_holds_in_the_directory_in_which_it_was_said(conversations, tmp_path):
    (there := tmp_path / "there").mkdir()
    ls = reply(call("bash", command="echo hi"))
    with ScriptedServer([ls, reply("One."), ls, reply("Two."), ls, reply("Three.")]) as server:
        desk = Desk(conversations, server, tmp_path, approver=Judge(Approval("always")))
        asyncio.run(desk.say("go"))
        elsewhere = reopened(desk, conversations, server, there, approver=Judge("Not here."))
        asyncio.run(elsewhere.say("again"))
        back = reopened(desk, conversations, server, tmp_path, approver=Judge())
        asyncio.run(back.say("and back"))

    assert elsewhere.approver.asked == ["$ echo hi"]
    assert results(back.talk) == ["hi\n", "Not here.", "hi\n"]


def test_always_this_command_holds_for_no_other(conversations, tmp_path):
    steps = [reply(call("bash", command=f"echo {word}")) for word in ("hi", "hi", "ho")]
    with ScriptedServer([*steps, reply("Done.")]) as server:
        judge = Judge(Approval("always", command="echo hi"), "Not that one.")
        desk = Desk(conversations, server, tmp_path, approver=judge)
        asyncio.run(desk.say("go"))

    assert judge.asked == ["$ echo hi", "$ echo ho"]
    assert results(desk.talk) == ["hi\n", "hi\n", "Not that one."]


def test_every_decision_is_in_the_log(conversations, tmp_path):
    two = reply(call("bash", command="echo 1"), call("bash", command="echo 2"))
    with ScriptedServer([two, reply("Done.")]) as server:
        judge = Judge(Approval("yes"), "No.")
        desk = Desk(conversations, server, tmp_path, approver=judge)
        asyncio.run(desk.say("go"))

    decisions = [
        (event.decision, event.reason)
        for event in conversations.events_of(desk.talk.id)
        if isinstance(event, ApprovalDecided)
    ]
    assert decisions == [("yes", ""), ("no", "No.")]


def test_a_pending_approval_survives_a_crash_and_is_asked_again(conversations, tmp_path):
    class Crash(BaseException):
        pass

    class Crashing:
        async def decide(self, proposal):
            raise Crash

    with ScriptedServer([reply(call("bash", command="echo hi")), reply("Done.")]) as server:
        desk = Desk(conversations, server, tmp_path, approver=Crashing())
        with suppress(Crash):
            asyncio.run(desk.say("go"))
        desk = reopened(desk, conversations, server, tmp_path)
        assert desk.agent.is_waiting()

        async def go_on():
            try:
                return await desk.agent.go_on()
            finally:
                await desk.model.close()

        assert asyncio.run(go_on()) == "done"

    assert desk.approver.asked == ["$ echo hi"]
    assert results(desk.talk) == ["hi\n"]
    assert not desk.agent.is_waiting()


def test_a_turn_whose_tool_had_started_is_not_waiting(conversations, tmp_path):
    with ScriptedServer([reply(call("bash", command="echo hi")), reply("Done.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.append_prompt("go"))
        use = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
        desk.at_hand.record(lambda talk: talk.append_answer([use], stop_reason="tool_use"))
        assert desk.agent.is_waiting()
        desk.at_hand.record(lambda talk: talk.start_tool("a"))

        assert not desk.agent.is_waiting()


def test_another_prompt_in_place_of_an_answer_closes_the_calls(conversations, tmp_path):
    with ScriptedServer([reply("Fine.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.append_prompt("go"))
        use = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
        desk.at_hand.record(lambda talk: talk.append_answer([use], stop_reason="tool_use"))
        asyncio.run(desk.say("never mind"))

    assert results(desk.talk) == [NEVER_STARTED]


def test_what_was_typed_meanwhile_is_delivered_after_the_tools(conversations, tmp_path):
    class Typing(Judge):
        async def decide(self, proposal):
            desk.at_hand.record(lambda talk: talk.queue_prompt("and be quick"))
            return UNASKED

    with ScriptedServer([reply(call("bash", command="echo hi")), reply("Done.")]) as server:
        desk = Desk(conversations, server, tmp_path, approver=Typing())
        asyncio.run(desk.say("go"))
        steered = server.requests[1].json["messages"][-1]["content"]

    assert [block["type"] for block in steered] == ["tool_result", "text"]
    assert steered[1]["text"] == "and be quick"
    assert desk.talk.queue == {}


def test_what_was_typed_during_the_last_answer_is_the_next_thing_to_do(conversations, tmp_path):
    def typing(_):
        desk.at_hand.record(lambda talk: talk.queue_prompt("and then this"))
        return reply("First.")

    with ScriptedServer([typing, reply("Second.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        assert asyncio.run(desk.say("go")) == "done"

    assert texts(desk.talk) == ["go", "First.", "and then this", "Second."]


def test_a_queued_prompt_survives_a_crash_and_is_delivered_with_the_next(conversations, tmp_path):
    with ScriptedServer([reply("Both.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.queue_prompt("typed before the crash"))
        desk = reopened(desk, conversations, server, tmp_path)
        asyncio.run(desk.say("hello"))

    assert texts(desk.talk) == ["typed before the crash", "hello", "Both."]


def test_what_is_queued_is_one_turn_in_the_order_in_which_it_was_typed(conversations, tmp_path):
    with ScriptedServer([reply("Both.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        for text in ("first", "second"):
            desk.at_hand.record(lambda talk, text=text: talk.queue_prompt(text))

        assert asyncio.run(desk.goes_on()) == "done"

    assert texts(desk.talk) == ["first", "second", "Both."]
    assert desk.talk.queue == {}


def test_where_nothing_is_queued_any_more_nothing_is_asked(conversations, tmp_path):
    with ScriptedServer([]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.rename("here"))
        before = desk.talk.version

        assert asyncio.run(desk.goes_on()) == "done"

    assert desk.talk.version == before
    assert server.requests == []


def test_a_prompt_that_was_taken_back_is_never_delivered(conversations, tmp_path):
    with ScriptedServer([reply("Hi.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.queue_prompt("oops"))
        [queued] = desk.talk.queue
        desk.at_hand.record(lambda talk: talk.withdraw_prompt(queued))
        asyncio.run(desk.say("hello"))

    assert texts(desk.talk) == ["hello", "Hi."]
    withdrawn = [e for e in conversations.events_of(desk.talk.id) if isinstance(e, PromptWithdrawn)]
    assert len(withdrawn) == 1


@pytest.mark.parametrize("command", ["echo hi; rm x", "echo hi ", " echo hi", "echo hi\n", "echo"])
def test_always_this_command_is_this_very_command(conversations, tmp_path, command):
    steps = [reply(call("bash", command=each)) for each in ("echo hi", command)]
    with ScriptedServer([*steps, reply("Done.")]) as server:
        judge = Judge(Approval("always", command="echo hi"), "No.")
        desk = Desk(conversations, server, tmp_path, approver=judge)
        asyncio.run(desk.say("go"))

    assert len(judge.asked) == 2
    assert results(desk.talk) == ["hi\n", "No."]


CANNOT_WORK = {
    "text that is not there": call(
        "edit", path="a.txt", edits=[{"old_text": "none", "new_text": "x"}]
    ),
    "no such file": call("edit", path="b.txt", edits=[{"old_text": "a", "new_text": "x"}]),
    "a folder": call("write", path=".", content="x"),
    "wrong arguments": call("bash", cmd="ls"),
    "no tool": call("fly", to="the moon"),
}


@pytest.mark.parametrize("use", CANNOT_WORK.values(), ids=CANNOT_WORK)
def test_nobody_is_asked_about_a_call_that_cannot_work(conversations, tmp_path, use):
    (tmp_path / "a.txt").write_text("a\n")
    with ScriptedServer([reply(use), reply("I see.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("go"))

    assert desk.approver.asked == []
    assert desk.talk.messages()[2].content.tool_results[0]["is_error"]


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ('{"command": "rm -rf /tmp/bui', "was cut off before its end"),
        ('{"command": "ls", ', "was cut off before its end"),
        ('{"command": }', "makes no sense"),
        ('["ls"]', "has to be a JSON object"),
    ],
)
def test_arguments_that_are_no_json_are_told_so_and_nobody_is_asked(
    conversations, tmp_path, text, why
):
    answer = Answer()
    answer.apply({"type": "content_block_start", "index": 0, "content_block": {
        "type": "tool_use", "id": "a", "name": "bash", "input": {}}})  # fmt: skip
    answer.apply({"type": "content_block_delta", "index": 0, "delta": {
        "type": "input_json_delta", "partial_json": text}})  # fmt: skip
    with ScriptedServer([reply("I see.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.at_hand.record(lambda talk: talk.append_prompt("go"))
        desk.at_hand.record(lambda talk: talk.append_answer(answer.content, stop_reason="tool_use"))
        asyncio.run(desk.goes_on())

    assert desk.approver.asked == []
    [told] = results(desk.talk)
    assert why in told
    assert "Field required" not in told
