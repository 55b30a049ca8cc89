"""What ends a turn that would not end, and what does not: loops, money, silence, odd ends."""

import asyncio
from decimal import Decimal

import pytest

from app.application import Conversations
from app.turn_limits import MAX_REPEATED_ROUNDS, Spending, TurnLimits
from domain.events import Compacted
from domain.messages import result_text
from infrastructure.errors import ModelError
from tests import builders as b
from tests.app.doubles import Desk, Judge
from tests.server import ScriptedServer, call, refuse, reply, thinking


@pytest.fixture
def conversations():
    """Where events are kept does not matter here."""
    with Conversations({"PERSISTENCE_MODULE": "eventsourcing.popo"}) as found:
        yield found


LONG = "Tell me more about this. " * 400


def run(conversations, tmp_path, steps, *prompts, **options):
    """Run turns; return the desk, the last outcome and the requests."""
    with ScriptedServer(steps) as server:
        desk = Desk(conversations, server, tmp_path, **options)
        outcome = asyncio.run(desk.say(*(prompts or ["go"])))
    return desk, outcome, server.requests


def results(desk):
    return [
        result_text(result["content"])
        for message in desk.talk.messages()
        for result in message.content.tool_results
    ]


def error(desk):
    return desk.talk.last_turn.error


# -- loops -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("commands", [["echo 1"], ["echo 1", "echo 2"]])
def test_the_same_calls_with_the_same_results_end_the_turn(conversations, tmp_path, commands):
    steps = [reply(call("bash", command=commands[n % len(commands)])) for n in range(30)]
    desk, outcome, requests = run(conversations, tmp_path, steps)

    assert (outcome, error(desk).type) == ("failed", "repeated_calls")
    assert "bash" in error(desk).message
    assert len(requests) == len(commands) + MAX_REPEATED_ROUNDS


def test_a_call_that_is_refused_again_and_again_ends_the_turn(conversations, tmp_path):
    steps = [reply(call("bash", command="rm -rf /")) for _ in range(30)]
    desk, outcome, requests = run(
        conversations, tmp_path, steps, approver=Judge(*["Nobody is here."] * 30)
    )

    assert (outcome, error(desk).type) == ("failed", "repeated_calls")
    assert len(requests) == 1 + MAX_REPEATED_ROUNDS


def test_calls_that_repeat_between_others_are_work(conversations, tmp_path):
    steps = []
    for number in range(8):
        steps += [reply(call("bash", command=f"echo {number} > a"))]
        steps += [reply(call("bash", command="true"))]
    desk, outcome, _ = run(conversations, tmp_path, [*steps, reply("Done.")])

    assert (outcome, len(results(desk))) == ("done", 16)


def test_the_next_prompt_works_after_a_loop(conversations, tmp_path):
    loop = [reply(call("bash", command="true")) for _ in range(1 + MAX_REPEATED_ROUNDS)]
    _, outcome, _ = run(conversations, tmp_path, [*loop, reply("Hello.")], "go", "and now?")

    assert outcome == "done"


# -- limits ----------------------------------------------------------------------------------------


def test_a_turn_makes_no_more_requests_than_it_may(conversations, tmp_path):
    steps = [reply(call("bash", command=f"echo {number}")) for number in range(9)]
    desk, outcome, requests = run(conversations, tmp_path, steps, limits=TurnLimits(max_requests=4))

    assert (outcome, error(desk).type, len(requests)) == ("failed", "request_limit", 4)
    assert "max_requests" in error(desk).message
    assert len(results(desk)) == 4


@pytest.mark.parametrize("most", [1, 2, 3, 4])
def test_requests_that_are_refused_and_those_for_summaries_count(conversations, tmp_path, most):
    """An endless loop of refusals, retries and summaries was no request to the limit."""
    full = refuse(400, "prompt is too long: 30000 tokens > 20000 maximum")
    answers = [full, reply("## Goal\nAll."), reply(call("bash", command="true")), reply("Done.")]
    desk, outcome, requests = run(
        conversations,
        tmp_path,
        [reply(LONG), reply(LONG), *answers],
        *[LONG, LONG, "go"],
        limits=TurnLimits(max_requests=most),
    )

    assert len(requests) - 2 == min(max(most, 2), len(answers))  # a summary is not left half done
    assert (outcome, most) in [("failed", most), ("done", 4)]
    assert outcome == "done" or error(desk).type == "request_limit"


def test_attempts_count(conversations, tmp_path):
    steps = [refuse(529), refuse(529), reply(call("bash", command="true")), reply("Done.")]
    with ScriptedServer(steps) as server:
        desk = Desk(conversations, server, tmp_path, limits=TurnLimits(max_requests=3))
        desk.model._max_retries = 3
        outcome = asyncio.run(desk.say("go"))

    assert (outcome, error(desk).type, len(server.requests)) == ("failed", "request_limit", 3)


def test_each_turn_has_its_own_limit(conversations, tmp_path):
    steps = [reply("One."), reply("Two."), reply("Three.")]
    _, outcome, _ = run(
        conversations, tmp_path, steps, "1", "2", "3", limits=TurnLimits(max_requests=1)
    )

    assert outcome == "done"


def test_a_turn_costs_no_more_than_it_may(conversations, tmp_path):
    def a_dollar_for_ten_thousand(_model, usage):
        return Decimal(usage.get("output_tokens", 0)) / 10_000

    steps = [
        reply(call("bash", command=f"echo {number}"), usage={"output_tokens": 30_000})
        for number in range(9)
    ]
    limits = TurnLimits(max_cost=5.0, cost=a_dollar_for_ten_thousand)
    desk, outcome, requests = run(conversations, tmp_path, steps, limits=limits)

    assert (outcome, error(desk).type, len(requests)) == ("failed", "cost_limit", 2)
    assert "$6.00" in error(desk).message
    assert "max_cost" in error(desk).message


def test_what_attempts_without_an_answer_have_used_is_money_too():
    """Nothing of it is in the log when the next request goes out."""
    limits = TurnLimits(max_cost=5.0, cost=lambda _model, usage: usage.get("output_tokens", 0))
    spending, talk = Spending(limits, 1, 0), b.conversation(b.model(), b.user("go"))

    spending.ask(talk, {}, 0)
    with pytest.raises(ModelError, match=r"cost \$9000000\.00"):
        spending.ask(talk, {"output_tokens": 9_000_000}, 1)


# -- odd ends --------------------------------------------------------------------------------------


@pytest.mark.parametrize("blocks", [[], [""], [thinking("Hm.")], [thinking("Hm."), " \n"]])
def test_an_answer_of_nothing_is_asked_for_once_more(conversations, tmp_path, blocks):
    desk, outcome, requests = run(conversations, tmp_path, [reply(*blocks), reply("Here I am.")])

    assert (outcome, len(requests)) == ("done", 2)
    assert ("streamed", "retry") in desk.screen.shown


def test_nothing_twice_is_said(conversations, tmp_path):
    steps = [reply(), reply(thinking("Hm.")), reply("never"), reply("Here.")]
    desk, outcome, requests = run(conversations, tmp_path, steps)

    assert (outcome, error(desk).type, len(requests)) == ("failed", "empty_answer", 2)
    assert "nothing" in error(desk).message


@pytest.mark.parametrize("reason", ["end_turn", "stop_sequence", "stop", "tool_calls"])
def test_a_call_that_is_complete_runs_whatever_the_server_calls_its_end(
    conversations, tmp_path, reason
):
    steps = [reply(call("bash", command="echo 1"), stop_reason=reason), reply("Done.")]
    desk, outcome, _ = run(conversations, tmp_path, steps)

    assert (outcome, results(desk)) == ("done", ["1\n"])


@pytest.mark.parametrize("reason", ["max_tokens", "refusal", "model_context_window_exceeded"])
def test_a_call_in_an_answer_that_did_not_end_never_runs(conversations, tmp_path, reason):
    steps = [reply(call("bash", command="touch a"), stop_reason=reason)] * 3
    desk, _, _ = run(conversations, tmp_path, steps)

    assert not (tmp_path / "a").exists()
    assert "cut off" in results(desk)[0]


def test_an_unknown_end_is_an_end(conversations, tmp_path):
    desk, outcome, _ = run(conversations, tmp_path, [reply("So.", stop_reason="galaxy")])

    assert (outcome, list(desk.talk.messages())[-1].stop_reason) == ("done", "galaxy")


def test_a_refusal_is_said(conversations, tmp_path):
    details = {"type": "refusal", "category": "bio", "explanation": "This may do harm."}
    steps = [reply("I", stop_reason="refusal", stop_details=details), reply("Better.")]
    desk, outcome, _ = run(conversations, tmp_path, steps)

    assert (outcome, error(desk).type) == ("failed", "refusal")
    assert "bio: This may do harm." in error(desk).message
    assert "/tree" in error(desk).message


def test_an_answer_that_fills_the_window_makes_room_and_goes_on(conversations, tmp_path):
    full = reply("Half of", stop_reason="model_context_window_exceeded")
    steps = [reply(LONG), reply(LONG), full, reply("## Goal\nAll."), reply("Done.")]
    desk, outcome, _ = run(conversations, tmp_path, steps, LONG, LONG, "go")

    assert outcome == "done"
    assert [entry.reason for entry in desk.talk.since(1) if isinstance(entry, Compacted)] == [
        "overflow"
    ]


def test_a_window_that_is_full_again_and_again_ends_the_turn(conversations, tmp_path):
    def answer(request):
        is_summary = "Summarise this" in str(request["messages"][-1])
        return reply("## Goal\nAll.") if is_summary else full

    full = reply("x", stop_reason="model_context_window_exceeded")
    desk, outcome, requests = run(conversations, tmp_path, [answer] * 20)

    assert (outcome, error(desk).type) == ("failed", "no_room")
    assert len(requests) < 10


def test_a_refusal_in_unknown_words_is_tried_with_one_compaction_if_the_window_is_full(
    conversations, tmp_path
):
    odd = refuse(400, "Computer says no")
    steps = [reply(LONG), reply(LONG), odd, reply("## Goal\nAll."), reply("Done.")]
    desk, outcome, _ = run(conversations, tmp_path, steps, LONG, LONG, "go", window=20_000)

    assert outcome == "done"
    assert len([entry for entry in desk.talk.since(1) if isinstance(entry, Compacted)]) == 1


def test_in_a_small_conversation_it_is_a_refusal(conversations, tmp_path):
    desk, outcome, requests = run(
        conversations, tmp_path, [reply("Hi."), refuse(400, "Computer says no")], "hi", "go"
    )

    assert (outcome, len(requests)) == ("failed", 2)
    assert "Computer says no" in error(desk).message
