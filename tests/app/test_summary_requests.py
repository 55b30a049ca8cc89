"""Requests for summaries are requests too: recorded, proven, shown, and cheap where that is possible."""

import asyncio

import msgspec
import pytest
from click.testing import CliRunner

from app.application import Conversations
from app.cli import leftfold
from app.requests import requests_for
from app.verification import verify
from domain.events import BranchSummarized, Compacted, LimitsLearned
from domain.projections.compaction import context_tokens
from domain.projections.proofs import proofs
from tests import builders as b
from tests.api_rules import prefix_violations
from tests.app.doubles import Desk
from tests.server import ScriptedServer, call, overflow, reply

LONG = "word " * 1200  # about 1,500 tokens
SUMMARY = "## Goal\n- notes"


@pytest.fixture
def conversations(home):
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as application:
        yield application


@pytest.fixture
def server():
    with ScriptedServer([reply(f"Noted {n}. {LONG}") for n in range(3)]) as server:
        yield server


@pytest.fixture
def desk(conversations, server, tmp_path):
    desk = Desk(conversations, server, tmp_path)
    desk.server = server
    asyncio.run(desk.say(*[f"Note number {n}" for n in range(3)]))
    return desk


def is_question(request):
    return "Summarise this" in str(request["messages"][-1]["content"][-1])


def do(desk, work):
    async def session():
        try:
            return await work
        finally:
            await desk.model.close()

    return asyncio.run(session())


def compact(desk, *, window=200_000, **more):
    desk.compactor.window_of = lambda _: window
    return do(desk, desk.compactor.compact(**({"reason": "manual", "keep": 1} | more)))


def summary_of(desk):
    kinds = (Compacted, BranchSummarized)
    return [e for e in desk.talk.entries.values() if isinstance(e, kinds)][-1]


def shown(conversations, desk):
    entry = summary_of(desk).originator_version
    return [r.request.body for r in requests_for(conversations, desk.talk, entry)]


def test_a_summary_shares_the_prefix_of_the_conversation_where_it_fits(desk, conversations):
    last = desk.server.requests[-1].json
    desk.server.add(reply(SUMMARY))
    assert compact(desk, focus="the numbers")

    [sent] = [r.json for r in desk.server.requests[3:]]
    assert is_question(sent)
    assert "the numbers" in str(sent["messages"][-1])
    assert prefix_violations(last, sent) == []
    assert summary_of(desk).summary.startswith(SUMMARY)


@pytest.mark.parametrize("window", [200_000, 4_000])
@pytest.mark.parametrize("how", ["compact", "leave_branch"])
def test_each_request_for_a_summary_is_recorded_proven_and_shown(desk, conversations, window, how):
    desk.server.add(*[reply(SUMMARY)] * 9)
    if how == "compact":
        compact(desk, window=window, focus="all")
    else:
        desk.compactor.window_of = lambda _: window
        talk = desk.talk
        target = talk.messages()[1].originator_version
        left = [e for e in talk.path(talk.leaf) if e.originator_version > target]
        do(desk, desk.compactor.leave_branch(target, left, focus="all"))

    sent = [r.body for r in desk.server.requests[3:]]
    assert len(sent) == 1 if window > 100_000 else len(sent) > 1
    assert shown(conversations, desk) == sent
    report = verify(conversations, desk.talk.id)
    assert report.ok
    assert report.requests_proven == 3 + len(sent)


@pytest.mark.parametrize("window", [200_000, 4_000])
def test_text_that_no_json_can_carry_costs_no_summary(desk, conversations, window):
    desk.server.add(*[reply(SUMMARY + " \ud83d")] * 9)
    assert compact(desk, window=window, focus="all \udcff")

    assert shown(conversations, desk) == [r.body for r in desk.server.requests[3:]]
    assert verify(conversations, desk.talk.id).ok


def test_the_command_shows_every_request_behind_a_summary(desk, conversations):
    desk.server.add(*[reply(SUMMARY)] * 9)
    compact(desk, window=4_000)
    store = str(conversations.store.path)
    conversations.store.close()
    entry = summary_of(desk).originator_version
    result = CliRunner().invoke(
        leftfold, ["--store", store, "context", f"{desk.talk.id}@{entry}", "--json"]
    )

    sent = [r.body for r in desk.server.requests[3:]]
    assert result.stdout.encode().splitlines() == sent


def test_what_was_changed_in_a_log_unproves_the_summary_that_it_went_into(desk, conversations):
    desk.server.add(*[reply(SUMMARY)] * 9)
    compact(desk, window=4_000)
    events = list(conversations.events_of(desk.talk.id))
    assert all(proof.holds for proof in proofs(events))

    place, event = next((n, e) for n, e in enumerate(events) if isinstance(e, Compacted))
    steps = event.asked.steps
    forged = (msgspec.structs.replace(steps[0], answer="another"), *steps[1:])
    asked = msgspec.structs.replace(event.asked, steps=forged)
    events[place] = msgspec.structs.replace(event, asked=asked)
    held = [proof.holds for proof in proofs(events) if isinstance(proof.answer, Compacted)]
    assert held[0]
    assert not held[1]


def test_a_model_that_calls_a_tool_in_place_of_a_summary_is_asked_without_tools(
    desk, conversations
):
    usage = {"input_tokens": 100, "output_tokens": 1}
    desk.server.add(reply(call("bash", command="ls"), usage=usage), reply(SUMMARY, usage=usage))
    assert compact(desk)

    asked_with_tools, asked = desk.server.requests[3:]
    assert "tools" in asked_with_tools.json
    assert "tools" not in asked.json
    assert summary_of(desk).usage["input_tokens"] == 200
    assert shown(conversations, desk) == [asked.body]


def test_a_summary_that_overflows_is_made_in_pieces_that_fit(desk, conversations):
    def small(request):
        if len(str(request)) // 4 > 3_000:
            return overflow("maximum context length is 4096 tokens")
        return reply(SUMMARY)

    desk.server.add(*[small] * 12)
    assert compact(desk)

    facts = conversations.events_of(desk.talk.id)
    learned = [f.context_window for f in facts if isinstance(f, LimitsLearned)]
    assert learned == [4096]
    assert len(summary_of(desk).asked.steps) > 1
    assert verify(conversations, desk.talk.id).ok


# -- how much ------------------------------------------------------------------------------------


@pytest.mark.parametrize("place", ["prompt", "result", "prompt after a summary"])
def test_the_bytes_of_an_image_are_not_counted_as_text(place):
    """Base64 of 2 MB would be half a million tokens: no window could take a single screenshot."""
    shot = b.image(data="A" * 2_000_000)
    streams = {
        "prompt": [b.user("look", shot)],
        "result": [b.user("go"), b.assistant(b.tool_use("a"), usage={"input_tokens": 9}),
                   b.result("a", [b.text("x"), shot])],
        "prompt after a summary": [b.user("go"), b.compacted("past"), b.user("look", shot)],
    }  # fmt: skip
    assert 1_000 < context_tokens(b.conversation(b.model(), *streams[place])) < 10_000
