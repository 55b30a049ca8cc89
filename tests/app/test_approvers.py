"""What an answer decides: nothing but a plain yes lets a tool act, on every path."""

import asyncio

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.approvers import DECLINED, AllowAll, RefuseAll, approval
from app.headless.stream_json import ProgramApprover, _RefusedError
from app.ports import UNASKED, Approval, Proposal
from domain.calls import NOBODY
from domain.events import ApprovalDecided
from domain.messages import ToolUseBlock
from tests import builders as b
from tests.app.doubles import Desk
from tests.server import ScriptedServer, call, reply

ANYTHING = st.none() | st.booleans() | st.integers() | st.text() | st.lists(st.text(), max_size=2)
NEAR_WORDS = st.sampled_from(
    ["y", "Y", "yes ", " yes", "YES", "yes\n", "yess", "ja", "ok", "true", "1", "a", "unasked",
     "Always", "always ", "command", "commands", "", "no", "n", "reason", "stop", "all", "again"]
)  # fmt: skip


def use(name="bash", **arguments):
    return ToolUseBlock(b.tool_use("toolu_1", name, **arguments))


RM = use(command="rm x")


@pytest.mark.parametrize(
    ("answer", "call", "expected"),
    [
        ("yes", RM, Approval("yes")),
        ("always", RM, Approval("always")),
        ("command", RM, Approval("always", command="rm x")),
        ("command", use("write", path="x"), Approval("no", reason=DECLINED)),
        ("command", use(command=["rm", "x"]), Approval("no", reason=DECLINED)),
        ("no", RM, Approval("no", reason=DECLINED)),
        ("reason", RM, Approval("no", reason=DECLINED)),
        (None, RM, Approval("no", reason=DECLINED)),
    ],
)
def test_every_answer_means_something(answer, call, expected):
    assert approval(answer, call) == expected


@given(NEAR_WORDS | ANYTHING)
def test_whatever_is_no_plain_yes_is_a_no(answer):
    expected = "no" if answer not in ("always", "command") else "always"

    assert approval(answer, RM).decision == ("yes" if answer == "yes" else expected)


def test_a_reason_is_told_and_the_rest_does_not_contradict_it():
    told = approval("no", RM, reason=" call it CHANGES.md\n").reason

    assert told.endswith("The user says: call it CHANGES.md")
    assert "Do not make it again" not in told


def test_nobody_to_ask():
    it = Proposal(RM, "$ rm x")

    assert asyncio.run(AllowAll().decide(it)) == UNASKED
    assert asyncio.run(RefuseAll().decide(it)) == Approval("no", reason=NOBODY)


# -- the loop ------------------------------------------------------------------------------------


class Saying:
    """An approver that says *what*, whatever that is."""

    def __init__(self, what):
        self.what = what

    async def decide(self, proposal):
        return self.what


@pytest.mark.parametrize(
    ("said", "runs"),
    [
        (Approval("yes"), True),
        (Approval("always"), True),
        (UNASKED, True),
        (Approval("no"), False),
        (Approval(""), False),
        (Approval("y"), False),
        (Approval("YES"), False),
        (Approval("reason"), False),
        (Approval("stop"), False),
        (Approval("unasked", command="x"), False),
        (Approval("y", command="touch ran"), False),
        (Approval(None), False),
    ],
)
def test_the_loop_runs_a_call_after_a_plain_yes_alone(conversations, tmp_path, said, runs):
    with ScriptedServer([reply(call("bash", command="touch ran")), reply("Done.")]) as server:
        desk = Desk(conversations, server, tmp_path, approver=Saying(said))
        assert asyncio.run(desk.say("go")) == "done"

    assert (tmp_path / "ran").exists() == runs
    if not runs:
        decided = [
            (event.decision, event.command)
            for event in conversations.events_of(desk.talk.id)
            if isinstance(event, ApprovalDecided)
        ]
        assert decided == [("no", None)]


# -- a program -----------------------------------------------------------------------------------

LINES = st.fixed_dictionaries(
    {},
    optional={
        "tool_use_id": st.just("toolu_1") | ANYTHING,
        "decision": st.sampled_from(["yes", "always", "no"]) | NEAR_WORDS | ANYTHING,
        "reason": st.text(max_size=3) | ANYTHING,
        "command": st.booleans() | ANYTHING,
    },
)


@given(LINES, st.sampled_from([RM, use("write", path="x", content="y")]))
def test_a_line_of_a_program_is_a_plain_answer_or_none(line, asked):
    async def decided():
        approver = ProgramApprover()
        waiting = asyncio.ensure_future(approver.decide(Proposal(asked, "it")))
        await asyncio.sleep(0)
        try:
            approver.answer(line)
        except _RefusedError:
            approver.hang_up()
        return await waiting

    told = asyncio.run(decided())
    if told.decision != "no":
        assert line["tool_use_id"] == asked.id
        assert told.decision == line["decision"]
        alone = line.get("command", False)
        assert alone in (True, False)
        assert told.command == ("rm x" if alone and told.decision == "always" else None)
