"""The ledger of side effects: what was begun is written down before, and never begun again unasked.

A crash between `ToolStarted` and the result leaves an outcome that nobody knows. Cases A1-A3, G1.
Real processes are killed in tests/app/test_crash.py; here a log ends after each of its events.
"""

import asyncio

from hypothesis import given, settings
from hypothesis import strategies as st

from app.application import Conversations
from app.verification import verify
from domain.calls import NEVER_STARTED, OUTCOME_UNKNOWN
from domain.conversation import Conversation
from domain.projections.context import context
from domain.projections.transcript import transcript
from domain.tool_use import ToolOutput
from infrastructure.tools import Toolbox
from tests import builders as b
from tests.api_rules import violations
from tests.app.doubles import Desk
from tests.app.programs import events, results
from tests.levels import examples
from tests.scanning import scan
from tests.server import ScriptedServer, call, reply

CALLS = ("a", "b", "c", "d")


# -- every interleaving of starts and results --------------------------------------------------------


@st.composite
def interleavings(draw):
    """Starts and results of four calls, each result after its start, in any order, up to a crash."""
    steps, waiting, running = [], list(CALLS), []
    while waiting or running:
        start = bool(waiting) and (not running or draw(st.booleans()))
        source = waiting if start else running
        name = source.pop(draw(st.integers(0, len(source) - 1)))
        steps.append(("start" if start else "result", name))
        if start:
            running.append(name)
    return steps[: draw(st.integers(0, len(steps)))]


def crashed(steps):
    """The conversation whose log ends after *steps*, as replay makes it."""
    talk = b.new_conversation()
    talk.append_prompt("use four tools")
    talk.append_answer([b.tool_use(name) for name in CALLS], stop_reason="tool_use")
    for step, name in steps:
        if step == "start":
            talk.start_tool(name)
        else:
            talk.append_tool_result(name, f"result of {name}")
    talk = Conversation.replay(None, list(talk.collect_events()))
    talk.clock = b.Clock()
    return talk


def expected(steps):
    """What is known of each call, from the steps alone."""
    known = dict.fromkeys(CALLS, NEVER_STARTED)
    for step, name in steps:
        known[name] = OUTCOME_UNKNOWN if step == "start" else f"result of {name}"
    return known


def told(talk):
    """What the model is told of each call, in the order of the calls."""
    request = context(talk, talk.leaf)
    assert violations(request) == []
    blocks = [block for message in request["messages"] for block in message["content"]]
    return {x["tool_use_id"]: x["content"] for x in blocks if x["type"] == "tool_result"}


@settings(max_examples=examples(100))
@given(interleavings())
def test_whenever_it_crashes_what_is_known_is_told_and_recorded_once(steps):
    talk = crashed(steps)
    before = told(talk)
    talk.close_open_calls()
    talk.append_prompt("go on")
    added = list(talk.collect_events())
    done = {name for step, name in steps if step == "result"}

    assert list(before) == list(told(talk)) == list(CALLS)
    assert before == told(talk) == expected(steps)
    assert len(added) == len(CALLS) - len(done) + 1
    shown = [item.text for item in transcript(talk, talk.leaf) if item.kind == "tool_result"]
    assert sorted(shown) == sorted(expected(steps).values())
    talk.close_open_calls()
    assert list(talk.collect_events()) == []


@settings(max_examples=examples(50))
@given(interleavings(), st.data())
def test_a_fork_in_mid_tool_is_told_the_same_and_the_parent_nothing(steps, data):
    """Case J4."""
    parent = crashed(steps)
    cut = data.draw(st.integers(1, len(steps) or 1))
    child = crashed(steps[:cut])
    child.close_open_calls()

    assert told(child) == expected(steps[:cut])
    assert told(parent) == expected(steps)


def test_a_call_whose_start_was_lost_in_a_gap_is_not_said_to_be_unstarted():
    stream = b.numbered(
        b.started(), b.model(), b.user("go"), b.assistant(b.tool_use("a")), b.tool_started("a"),
        b.turn_ended("interrupted"), b.user("and?"),
    )  # fmt: skip
    talk = Conversation.replay(None, b.lost(stream, 5))

    assert told(talk) == {"a": OUTCOME_UNKNOWN}


# -- the agent, after a crash behind each event ------------------------------------------------------


class CountingToolbox(Toolbox):
    """Runs nothing, and remembers what it was asked to run."""

    def __init__(self, cwd):
        super().__init__(cwd=cwd, side_files=cwd / ".outputs")
        self.ran = []

    async def run(self, call, on_output, **_plan):
        self.ran.append(call.id)
        await asyncio.sleep(0.01 * CALLS.index(call.id))
        return ToolOutput(f"result of {call.id}")


def test_no_tool_runs_again_by_itself_wherever_the_log_ends(tmp_path):
    names = CALLS[:3]
    script = [
        reply(*(call("read", call_id=name, path="x") for name in names)),
        reply("All three are done."),
    ]
    with ScriptedServer(script) as server:
        with Conversations({"LEFTFOLD_DURABILITY": "os"}) as conversations:
            desk = Desk(conversations, server, tmp_path, toolbox=CountingToolbox(tmp_path))
            asyncio.run(desk.say("use three tools"))
            log = conversations.store.path_of(desk.at_hand.id)
        whole = log.read_bytes()
        found = scan(whole).lines
        asked = next(n for n, line in enumerate(found) if b"tool_use" in line.state)

        assert sorted(desk.toolbox.ran) == sorted(names)
        assert [line.topic for line in found[asked + 1 :]].count("ToolStarted") == 3
        for last in found[asked:]:
            log.write_bytes(whole[: last.end] + b"\n" + torn(whole[last.end + 1 :]))
            check_resumed(server, tmp_path, desk.at_hand.id, log, names)


def torn(rest):
    """What a crash may leave of the next line."""
    return rest[: min(20, rest.find(b"\n"))] if rest else b""


def check_resumed(server, cwd, conversation_id, log, names):
    before = log.read_bytes()
    steps = [
        ("start", e["state"]["tool_use_id"]) for e in events(log) if e["topic"] == "ToolStarted"
    ]
    steps += [("result", name) for name in results(events(log))]
    known = {name: expected(steps)[name] for name in names}
    toolbox = CountingToolbox(cwd)
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as conversations:
        for number, text in enumerate(("go on", "and on")):
            at_hand = conversations.open(conversation_id)
            version = at_hand.conversation.version
            desk = Desk(conversations, server, cwd, at_hand=at_hand, toolbox=toolbox)
            never_started = number == 0 and not steps
            assert desk.agent.is_waiting() == never_started, "only what never started may run"
            server.add(reply("Here I am."))
            assert asyncio.run(desk.say(text)) == "done"
            if number:
                assert desk.talk.version == version + 3, "a second resume adds nothing more"
        report = verify(conversations, conversation_id)

    assert toolbox.ran == []
    assert results(events(log)) == known
    assert log.read_bytes().startswith(before)
    sent = server.requests[-2].json["messages"]
    blocks = [block for message in sent for block in message["content"]]
    answers = {x["tool_use_id"]: x["content"] for x in blocks if x["type"] == "tool_result"}
    assert answers == known
    assert {finding.kind for finding in report.findings} <= {"damage"}  # the torn line, if any
