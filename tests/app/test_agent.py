"""A turn, against a real server on loopback, with real tools, over every persistence module."""

import asyncio
from hashlib import sha256

import pytest
from eventsourcing.persistence import OperationalError

from app.agent import MAX_PAUSES
from app.errors import NotRecordedError
from app.requests import requests_for
from app.verification import verify
from domain.calls import NEVER_STARTED
from domain.errors import InvalidCommandError
from domain.events import MessageAppended, ToolStarted, TurnEnded
from domain.messages import result_text
from domain.projections.message_builder import CONTINUE
from domain.tool_use import Plan, ToolOutput
from infrastructure.tools import Toolbox
from tests.app.doubles import STOPPED, Desk, Judge, begin
from tests.builders import state
from tests.server import Gate, ScriptedServer, call, hang_up, refuse, reply, thinking


def topics(conversations, talk):
    return [event.TOPIC for event in conversations.events_of(talk.id)]


def said(talk):
    return [(message.content.role, message.content.text) for message in talk.messages()]


def results(talk):
    return [
        result_text(result["content"])
        for message in talk.messages()
        for result in message.content.tool_results
    ]


def test_a_turn_with_a_tool_is_recorded_step_by_step(conversations, tmp_path):
    (tmp_path / "here.txt").write_text("x")
    with ScriptedServer([reply(call("bash", command="ls *.txt")), reply("One file.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        outcome = asyncio.run(desk.say("list the files"))

    assert outcome == "done"
    assert topics(conversations, desk.talk) == [
        "Started",
        "ModelChanged",
        "ThinkingLevelChanged",
        "InstructionsChanged",
        "MessageAppended",
        "MessageAppended",
        "ToolStarted",
        "MessageAppended",
        "MessageAppended",
        "TurnEnded",
    ]
    assert results(desk.talk) == ["here.txt\n"]
    assert desk.talk.last_turn.spent["input_tokens"] > 0
    assert server.prefix_violations == []


def test_every_request_is_rebuilt_byte_for_byte_from_the_log(conversations, tmp_path):
    steps = [
        reply(call("bash", command="echo 1"), call("bash", command="echo 2")),
        reply(thinking("Hm."), "Done."),
        reply("Again."),
    ]
    with ScriptedServer(steps) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("go", "and again"))

    answers = [m for m in desk.talk.messages() if m.content.role == "assistant"]
    requests = [requests_for(conversations, desk.talk, m.originator_version)[0] for m in answers]
    assert len(answers) == len(server.requests) == 3
    for rebuilt, received in zip(requests, server.requests, strict=True):
        assert rebuilt.request.body == received.body
        assert rebuilt.recorded_digest == f"c2:{sha256(received.body).hexdigest()}"


def test_the_prompt_is_in_the_log_before_the_request_leaves(conversations, tmp_path):
    seen = []

    def look(request):
        seen.append(topics(conversations, desk.talk)[-1])
        return reply("Hi.")

    with ScriptedServer([look]) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("hello"))

    assert seen == ["MessageAppended"]


def test_the_intent_to_run_a_tool_is_in_the_log_before_its_effect(conversations, tmp_path):
    seen = []

    class Spy(Toolbox):
        async def run(self, call, on_output, **more):
            seen.append(topics(conversations, desk.talk)[-1])
            return await super().run(call, on_output, **more)

    spy = Spy(cwd=tmp_path, side_files=tmp_path)
    with ScriptedServer([reply(call("bash", command="true")), reply("Done.")]) as server:
        desk = Desk(conversations, server, tmp_path, toolbox=spy)
        asyncio.run(desk.say("go"))

    assert seen == ["ToolStarted"]


def test_each_result_is_recorded_as_soon_as_that_tool_ends(conversations, tmp_path):
    """The slow tool waits until it sees, in the log, the result of the quick one."""

    class Slow:
        tools = {}

        def definitions(self):
            return []

        async def plan(self, call, seen):
            return Plan()

        async def run(self, call, on_output, **more):
            if call.id == "slow":
                while not results(conversations.get(desk.talk.id)):
                    await asyncio.sleep(0)
            return ToolOutput(call.id)

    script = [reply(call("a", call_id="slow"), call("b", call_id="quick")), reply("Done.")]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path, toolbox=Slow())
        asyncio.run(asyncio.wait_for(desk.say("go"), 20))

    assert results(desk.talk) == ["quick", "slow"]
    answers = server.requests[1].json["messages"][-1]["content"]
    assert [block["tool_use_id"] for block in answers] == ["slow", "quick"]


def test_a_refused_call_gets_the_reason_as_its_result_and_nothing_runs(conversations, tmp_path):
    script = [reply(call("bash", command="touch made"), call("bash", command="echo ok"))]
    with ScriptedServer([*script, reply("All right.")]) as server:
        desk = Desk(conversations, server, tmp_path, approver=Judge("No, not that."))
        asyncio.run(desk.say("go"))

    assert not (tmp_path / "made").exists()
    assert results(desk.talk) == ["No, not that.", "ok\n"]
    started = [e for e in conversations.events_of(desk.talk.id) if isinstance(e, ToolStarted)]
    assert len(started) == 1


def test_reading_needs_no_approval(conversations, tmp_path):
    (tmp_path / "a.txt").write_text("alpha")
    with ScriptedServer([reply(call("read", path="a.txt")), reply("Read.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("go"))

    assert desk.approver.asked == []
    assert "alpha" in results(desk.talk)[0]


@pytest.mark.parametrize(
    ("wrong", "told"),
    [
        (call("fly", height=3), "no tool 'fly'"),
        (call("bash"), "Wrong arguments"),
        (call("read", path=7), "Wrong arguments"),
    ],
)
def test_a_call_that_makes_no_sense_is_an_error_result(conversations, tmp_path, wrong, told):
    with ScriptedServer([reply(wrong), reply("I see.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        outcome = asyncio.run(desk.say("go"))

    assert outcome == "done"
    assert told in results(desk.talk)[0]


@pytest.mark.parametrize("after", [2, 3, 4, 5])
def test_an_interruption_while_the_answer_streams_keeps_what_was_said(
    conversations, tmp_path, after
):
    gate = Gate()
    long = "First part, and the second part, and a third part of it."
    with ScriptedServer([reply(long, gate=gate, gate_after=after), reply("Hello.")]) as server:
        desk = Desk(conversations, server, tmp_path)

        async def interrupt():
            turn = asyncio.create_task(desk.agent.run_turn("talk"))
            await asyncio.to_thread(gate.wait)
            while len(desk.screen.shown) < after:
                await asyncio.sleep(0)
            turn.cancel()
            outcome = await turn
            await desk.model.close()
            return outcome

        assert asyncio.run(interrupt()) == "interrupted"
        gate.release()
        desk = Desk(conversations, server, tmp_path, at_hand=conversations.open(desk.talk.id))
        assert asyncio.run(desk.say("hello")) == "done"

    partial = [text for role, text in said(desk.talk) if role == "assistant"][:-1]
    assert all(text and long.startswith(text) for text in partial)
    assert len(partial) == (1 if after > 3 else 0)


def test_an_interruption_while_a_tool_runs_kills_it_and_the_next_turn_works(
    conversations, tmp_path
):
    command = "echo begun; echo $$ > pid; sleep 600"
    with ScriptedServer([reply(call("bash", command=command)), reply("Hello.")]) as server:
        desk = Desk(conversations, server, tmp_path)

        async def interrupt():
            turn = asyncio.create_task(desk.agent.run_turn("wait"))
            while not (tmp_path / "pid").exists() or not (tmp_path / "pid").read_text():
                await asyncio.sleep(0.01)
            turn.cancel()
            outcome = await turn
            await desk.model.close()
            return outcome

        assert asyncio.run(interrupt()) == "interrupted"
        assert results(desk.talk) == ["begun\n" + STOPPED]
        desk = Desk(conversations, server, tmp_path, at_hand=conversations.open(desk.talk.id))
        assert asyncio.run(desk.say("hello")) == "done"

    assert results(desk.talk) == ["begun\n" + STOPPED]
    assert desk.talk.messages()[2].content.tool_results[0]["is_error"]


def test_an_interruption_at_the_question_never_starts_the_tool(conversations, tmp_path):
    class Gone:
        async def decide(self, proposal):
            raise asyncio.CancelledError

    with ScriptedServer([reply(call("bash", command="touch made")), reply("Hello.")]) as server:
        desk = Desk(conversations, server, tmp_path, approver=Gone())
        assert asyncio.run(desk.say("go")) == "interrupted"
        desk = Desk(conversations, server, tmp_path, at_hand=conversations.open(desk.talk.id))
        assert asyncio.run(desk.say("hello")) == "done"

    assert results(desk.talk) == [NEVER_STARTED]
    assert not (tmp_path / "made").exists()


@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (refuse(401), "authentication_error"),
        (refuse(404), "not_found_error"),
        (refuse(429), "rate_limit_error"),
        (refuse(529), "overloaded_error"),
        (refuse(500), "api_error"),
        (hang_up(), "APIConnectionError"),
        (reply("Partial answer", drop_after=4), "RemoteProtocolError"),
        (reply("Partial answer", error_after=4), "overloaded_error"),
        (reply("Partial answer", finished=False), "incomplete_answer"),
    ],
)
def test_a_failed_request_is_recorded_told_and_followed_by_a_turn_that_works(
    conversations, tmp_path, fault, kind
):
    with ScriptedServer([fault, reply("Back again.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        assert asyncio.run(desk.say("remember the number 7")) == "failed"
        ended = desk.talk.last_turn
        assert ended.error.type == kind
        assert ended.error.message
        assert desk.screen.shown[-1] == ("turn_ended", "failed", ended.error.message)
        desk = Desk(conversations, server, tmp_path, at_hand=conversations.open(desk.talk.id))
        assert asyncio.run(desk.say("hello")) == "done"

    assert "remember the number 7" in said(desk.talk)[0][1]
    assert said(desk.talk)[-1] == ("assistant", "Back again.")


def test_a_call_that_was_cut_off_never_runs_and_is_asked_for_again(conversations, tmp_path):
    script = [
        reply(
            call("write", path="0.txt", content="whole"),
            call("write", path="a.txt", content="x" * 200),
            cut=True,
        ),
        reply(call("write", path="b.txt", content="short")),
        reply("Written."),
    ]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        assert asyncio.run(desk.say("write it")) == "done"

    assert [path.name for path in tmp_path.glob("*.txt")] == ["b.txt"]
    assert (tmp_path / "b.txt").read_text() == "short"
    assert ["cut off" in told for told in results(desk.talk)] == [True, True, False]


def test_answers_that_are_cut_off_again_and_again_end_the_turn(conversations, tmp_path):
    cut = [reply(call("write", path="a.txt", content="x" * 200), cut=True) for _ in range(9)]
    with ScriptedServer(cut) as server:
        desk = Desk(conversations, server, tmp_path)
        assert asyncio.run(desk.say("write it")) == "failed"

    assert len(server.requests) == 3
    assert not (tmp_path / "a.txt").exists()


def test_a_model_that_paused_is_asked_to_go_on(conversations, tmp_path):
    script = [reply("First half.", stop_reason="pause_turn"), reply("Second half.")]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        assert asyncio.run(desk.say("search")) == "done"

    sent = [b["text"] for m in server.requests[1].json["messages"] for b in m["content"]]
    assert sent == ["search", "First half.", CONTINUE]
    assert said(desk.talk)[1:] == [("assistant", "First half."), ("assistant", "Second half.")]


def test_a_model_that_pauses_for_ever_ends_the_turn(conversations, tmp_path):
    with ScriptedServer([reply("Hm.", stop_reason="pause_turn")] * 20) as server:
        desk = Desk(conversations, server, tmp_path)
        assert asyncio.run(desk.say("search")) == "failed"

    assert len(server.requests) == MAX_PAUSES + 1
    assert desk.talk.last_turn.error.type == "paused_too_often"


def test_a_blank_prompt_is_refused_and_leaves_no_trace(conversations, tmp_path):
    with ScriptedServer() as server:
        desk = Desk(conversations, server, tmp_path)
        with pytest.raises(InvalidCommandError):
            asyncio.run(desk.say("  \n"))

    assert list(conversations.ids()) == []
    assert server.requests == []


class Failing:
    """A recorder whose next inserts of one topic fail: before writing, or after."""

    def __init__(self, conversations, topic, monkeypatch, *, after=False):
        insert = conversations.recorder.insert_events
        self.failures = 1

        def insert_events(stored_events, **kwargs):
            hit = self.failures and stored_events and stored_events[-1].topic == topic
            if hit and not after:
                self.failures -= 1
                raise OperationalError("the disk is full")
            done = insert(stored_events, **kwargs)
            if hit:
                self.failures -= 1
                raise OperationalError("the disk is odd")
            return done

        monkeypatch.setattr(conversations.recorder, "insert_events", insert_events)


def result_saving_fails(conversations, monkeypatch, *, after):
    """Fail the save of the first message that follows a ToolStarted."""
    insert = conversations.recorder.insert_events
    last, failed = [""], []

    def insert_events(stored_events, **kwargs):
        hit = last[0] == "ToolStarted" and not failed
        last[0] = stored_events[-1].topic if stored_events else last[0]
        if hit:
            failed.append(True)
            if not after:
                raise OperationalError("the disk is full")
        done = insert(stored_events, **kwargs)
        if hit:
            raise OperationalError("the disk is odd")
        return done

    monkeypatch.setattr(conversations.recorder, "insert_events", insert_events)


def test_a_result_that_could_not_be_saved_stops_the_turn_and_is_offered_again(
    conversations, tmp_path, monkeypatch
):
    with ScriptedServer([reply(call("bash", command="echo once >> f")), reply("Ok.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        result_saving_fails(conversations, monkeypatch, after=False)
        with pytest.raises(NotRecordedError, match="disk is full"):
            asyncio.run(desk.say("go"))
        assert len(server.requests) == 1
        assert results(desk.talk) == []

        assert asyncio.run(desk.say("go on")) == "done"

    assert results(desk.talk) == ["(no output)"]
    assert (tmp_path / "f").read_text() == "once\n"


def test_a_result_is_kept_even_if_the_log_cannot_be_read_meanwhile(
    conversations, tmp_path, monkeypatch
):
    """A failed save throws away what was known of the log: the next one has to read it first."""
    with ScriptedServer([reply(call("bash", command="echo once >> f")), reply("Ok.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        result_saving_fails(conversations, monkeypatch, after=False)
        with pytest.raises(NotRecordedError):
            asyncio.run(desk.say("go"))
        with monkeypatch.context() as broken:
            broken.setattr(conversations, "get", unreadable)
            with pytest.raises(NotRecordedError, match="cannot be read"):
                desk.at_hand.record(lambda talk: talk.rename("x"))
            with pytest.raises(OperationalError, match="cannot be read"):
                asyncio.run(desk.say("go on"))

        assert asyncio.run(desk.say("go on")) == "done"

    assert results(desk.talk) == ["(no output)"]
    assert (tmp_path / "f").read_text() == "once\n"


def unreadable(*_args, **_kwargs):
    raise OperationalError("the log cannot be read")


def test_a_save_that_failed_after_the_fact_is_not_doubled(conversations, tmp_path, monkeypatch):
    with ScriptedServer([reply(call("bash", command="echo hi")), reply("Ok.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        result_saving_fails(conversations, monkeypatch, after=True)
        assert asyncio.run(desk.say("go")) == "done"

    assert results(conversations.get(desk.talk.id)) == ["hi\n"]


def test_a_prompt_that_could_not_be_saved_never_reaches_the_model(
    conversations, tmp_path, monkeypatch
):
    with ScriptedServer([reply("Hi.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        Failing(conversations, "MessageAppended", monkeypatch)
        with pytest.raises(NotRecordedError):
            asyncio.run(desk.say("hello"))
        assert server.requests == []

        assert asyncio.run(desk.say("hello")) == "done"

    assert said(desk.talk) == [("user", "hello"), ("assistant", "Hi.")]


def test_live_state_equals_replayed_state_after_a_turn(conversations, tmp_path):
    script = [reply(call("bash", command="echo 1")), reply(thinking("Hm"), "Done")]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("go"))

    live, replayed = state(desk.talk), state(conversations.get(desk.talk.id))
    live.pop("_created_on"), replayed.pop("_created_on")
    assert live == replayed


def test_a_new_conversation_leaves_nothing_until_the_first_prompt(conversations):
    at_hand = conversations.start(begin())

    assert at_hand.conversation.version == 3
    assert list(conversations.ids()) == []


def test_the_turns_end_says_what_it_spent(conversations, tmp_path):
    usage = {"input_tokens": 10, "output_tokens": 5, "cache_read_input_tokens": 3}
    with ScriptedServer([reply("Hi.", usage=usage), reply("Ho.", usage=usage)]) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("one", "two"))

    ends = [e for e in conversations.events_of(desk.talk.id) if isinstance(e, TurnEnded)]
    assert [end.spent for end in ends] == [usage, usage]
    answer = [e for e in desk.talk.messages() if e.content.role == "assistant"][0]
    assert isinstance(answer, MessageAppended)
    assert answer.usage["output_tokens"] == 5


def test_what_happens_while_an_answer_arrives_does_not_unprove_it(conversations, tmp_path):
    def meanwhile(_):
        desk.at_hand.record(lambda talk: talk.append_note("weather", "It rains.", visible=True))
        desk.at_hand.record(lambda talk: talk.change_model("another", max_tokens=99))
        return reply("Hi.")

    with ScriptedServer([meanwhile]) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("hello"))

    answer = desk.talk.messages()[-1]
    assert answer.model == "test-model"
    assert verify(conversations, desk.talk.id).ok
