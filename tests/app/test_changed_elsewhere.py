"""Another program appends to the conversation while a turn works: nothing that was paid for is lost."""

import asyncio

import pytest

from app.application import Conversations
from app.verification import verify
from domain.errors import UnknownCallError
from domain.events import BranchSummarized, Compacted, ToolStarted
from tests import builders as b
from tests.app.doubles import Desk
from tests.server import ScriptedServer, call, reply

ENVIRONMENT = {"LEFTFOLD_DURABILITY": "os"}


@pytest.fixture
def conversations(home):
    with Conversations(ENVIRONMENT) as application:
        yield application


def elsewhere(conversation_id, *commands):
    """Let another program append: it knows nothing of this one, nor this one of it."""
    with Conversations(ENVIRONMENT) as other:
        for command in commands:
            other.open(conversation_id).record(command)


def speak(talk):
    talk.append_prompt("somebody else was here")
    talk.append_answer([b.text("Who?")], stop_reason="end_turn")


def go_to_the_root(talk):
    talk.move_leaf(None)


def label(talk):
    talk.rename("a name")


MEANWHILE = pytest.mark.parametrize("meanwhile", [label, speak, go_to_the_root])


def is_clean(conversations, desk):
    return verify(conversations, desk.talk.id).ok


@MEANWHILE
def test_an_answer_hangs_from_what_it_answers(conversations, tmp_path, meanwhile):
    def answer(_):
        elsewhere(desk.talk.id, meanwhile)
        return reply("Hello.")

    with ScriptedServer([answer, reply("Yes.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        assert asyncio.run(desk.say("hello")) == "done"
        assert asyncio.run(desk.say("and?")) == "done"

    texts = [m.content.text for m in conversations.get(desk.talk.id).messages()]
    assert texts == ["hello", "Hello.", "and?", "Yes."]
    assert is_clean(conversations, desk)


@MEANWHILE
def test_a_result_hangs_from_its_call(conversations, tmp_path, meanwhile):
    class Busy:
        def __init__(self, toolbox):
            self.toolbox, self.tools = toolbox, toolbox.tools
            self.definitions, self.plan = toolbox.definitions, toolbox.plan

        async def run(self, *arguments, **more):
            output = await self.toolbox.run(*arguments, **more)
            elsewhere(desk.talk.id, meanwhile)
            return output

    script = [reply(call("bash", command="echo one >> made; cat made")), reply("Done.")]
    with ScriptedServer(script) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.agent.tool_calls.toolbox = Busy(desk.toolbox)
        assert asyncio.run(desk.say("go")) == "done"

    [result] = server.requests[1].json["messages"][-1]["content"]
    assert result["content"] == "one\n"
    assert [m.content.text for m in conversations.get(desk.talk.id).messages()][-1] == "Done."
    assert is_clean(conversations, desk)


@MEANWHILE
@pytest.mark.parametrize("how", ["compact", "leave_branch"])
def test_a_summary_that_was_paid_for_is_recorded(conversations, tmp_path, meanwhile, how):
    def summarise(_):
        elsewhere(desk.talk.id, meanwhile)
        return reply("## Goal\n- notes")

    async def summarised():
        try:
            if how == "compact":
                await desk.compactor.compact(reason="manual", keep=1)
            else:
                await desk.compactor.leave_branch(None, desk.talk.path(desk.talk.leaf))
        finally:
            await desk.model.close()

    with ScriptedServer([reply("Noted.")] * 2) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("one", "two"))
        was_at = desk.talk.leaf
        server.add(summarise)
        asyncio.run(summarised())

    kinds = (Compacted, BranchSummarized)
    [summary] = [e for e in desk.talk.entries.values() if isinstance(e, kinds)]
    if how == "compact":
        assert was_at in [entry.originator_version for entry in desk.talk.path(desk.talk.leaf)]
    else:
        assert summary.left == was_at
    assert is_clean(conversations, desk)


def test_a_second_result_of_a_call_is_refused_wherever_the_leaf_is():
    talk = b.new_conversation()
    talk.append_prompt("go")
    talk.append_answer([b.tool_use("a")], stop_reason="tool_use")
    talk.start_tool("a")
    talk.append_tool_result("a", "1")
    talk.move_leaf(None)

    with pytest.raises(UnknownCallError):
        talk.append_tool_result("a", "2")


def test_results_of_one_answer_stay_together_when_the_leaf_is_moved():
    talk = b.new_conversation()
    talk.append_prompt("go")
    talk.append_answer([b.tool_use("a"), b.tool_use("b")], stop_reason="tool_use")
    for tool_use_id in ("a", "b"):
        talk.start_tool(tool_use_id)
    talk.append_tool_result("a", "1")
    talk.move_leaf(None)
    talk.append_tool_result("b", "2")

    assert talk.open_calls() == ()
    assert [m.content.role for m in talk.messages()] == ["user", "assistant", "user", "user"]
    assert sum(isinstance(event, ToolStarted) for event in talk.pending_events) == 2
