"""Compaction, against a real server, over every persistence module."""

import asyncio
from itertools import groupby

import pytest

from domain.events import BranchSummarized, Compacted, TurnEnded
from domain.limits import Room
from domain.projections.compaction import context_tokens
from domain.projections.context import context
from domain.projections.usage import total
from infrastructure.errors import ModelError
from tests.app.doubles import Desk
from tests.server import ScriptedServer, call, overflow, refuse, reply

WINDOW = 8_000
LONG = "word " * 1200  # about 1,500 tokens


def compactions(talk):
    return [entry for entry in talk.entries.values() if isinstance(entry, Compacted)]


def texts(request):
    return [b.get("text", "") for m in request["messages"] for b in m["content"]]


def summary_or(text):
    """Answer a request for a summary with one, and anything else with *text*."""

    def answer(request):
        asked = "Summarise this" in texts(request)[-1]
        return reply("## Goal\n- notes" if asked else text)

    return answer


@pytest.fixture
def desk(conversations, tmp_path):
    """A desk whose model answers by rule, in a small window, with a long past."""
    with ScriptedServer([reply(f"Noted {n}. {LONG}") for n in range(3)]) as server:
        desk = Desk(conversations, server, tmp_path, window=WINDOW)
        desk.server = server
        asyncio.run(desk.say(*[f"Note number {n}" for n in range(3)]))
        yield desk


def test_a_context_that_leaves_no_room_is_compacted_before_the_request(desk):
    desk.server.add(*[summary_or("Here.")] * 3)
    assert asyncio.run(desk.say("and now? " + LONG)) == "done"

    [compaction] = compactions(desk.talk)
    assert compaction.reason == "threshold"
    assert compaction.summary.startswith("## Goal\n- notes")
    assert compaction.tokens_before > Room.of(WINDOW).limit
    assert compaction.usage["input_tokens"] > 0
    sent = texts(desk.server.requests[-1].json)
    assert "## Goal" in sent[0]
    assert any("and now?" in text for text in sent)


def test_what_was_kept_holds_the_recent_past_word_for_word(desk):
    desk.server.add(*[summary_or("Here.")] * 3)
    asyncio.run(desk.say("and now? " + LONG))

    sent = "".join(texts(desk.server.requests[-1].json))
    assert "Noted 2." in sent
    assert "Noted 0." not in sent


def test_nothing_is_deleted_and_the_tree_can_go_back(desk):
    before = desk.talk.leaf
    desk.server.add(*[summary_or("Here.")] * 3)
    asyncio.run(desk.say("and now? " + LONG))
    desk.at_hand.record(lambda talk: talk.move_leaf(before))

    assert "Noted 0." in str(context(desk.talk, desk.talk.leaf))


@pytest.mark.parametrize(
    "bad",
    [
        reply("cut off", stop_reason="max_tokens"),
        reply(" \n"),
        reply(call("bash", command="ls")),
        refuse(500),
        reply("dropped", drop_after=4),
    ],
)
def test_a_bad_summary_is_refused_and_nothing_changes(desk, bad):
    before = desk.talk.version
    desk.server.add(bad, bad)  # asked at the end of the conversation's request, then in pieces

    async def compact():
        try:
            await desk.compactor.compact(reason="manual")
        finally:
            await desk.model.close()

    with pytest.raises(ModelError):
        asyncio.run(compact())

    assert desk.talk.version == before


def test_an_interrupted_compaction_changes_nothing(desk):
    before = desk.talk.version

    async def interrupt():
        work = asyncio.create_task(desk.compactor.compact(reason="manual"))
        await asyncio.sleep(0)
        work.cancel()
        with pytest.raises(asyncio.CancelledError):
            await work
        await desk.model.close()

    asyncio.run(interrupt())

    assert desk.talk.version == before


def test_an_overflow_that_the_api_reports_compacts_and_retries_once(desk):
    desk.server.add(overflow(), *[summary_or("Here.")] * 3)
    assert asyncio.run(desk.say("short")) == "done"

    assert [each.reason for each in compactions(desk.talk)] == ["overflow"]
    asked_for = [purpose for purpose, _ in groupby(desk.screen.asked_for)]
    assert asked_for[-3:] == ["answer", "summary", "answer"]


def test_a_second_overflow_is_an_error_and_the_log_is_whole(desk):
    desk.server.add(overflow(), *[summary_or(None)] * 2, overflow())
    assert asyncio.run(desk.say("short")) == "failed"

    assert "prompt is too long" in desk.talk.last_turn.error.message


def test_no_room_even_so_is_a_clear_error_and_no_request(desk):
    desk.server.add(reply("## Goal\n- notes"))
    requests = len(desk.server.requests)
    assert asyncio.run(desk.say("x" * 60_000)) == "failed"

    assert "compaction could not make room" in desk.talk.last_turn.error.message
    assert all(
        "Summarise this" in texts(request.json)[-1] for request in desk.server.requests[requests:]
    )


@pytest.mark.parametrize("big", ["prompt", "result"])
def test_what_is_too_long_for_the_window_ends_one_turn_and_not_the_next(desk, big):
    desk.server.add(
        *([] if big == "prompt" else [reply(call("bash", command="seq -s, 9000"))]),
        *[summary_or("Here.")] * 20,
    )
    assert asyncio.run(desk.say("x" * 60_000 if big == "prompt" else "go")) == "failed"
    assert "compaction could not make room" in desk.talk.last_turn.error.message

    assert asyncio.run(desk.say("and now?")) == "done"


def test_every_summary_request_fits_the_window(conversations, tmp_path):
    big = "y" * 40_000
    with ScriptedServer([reply(f"{n} {LONG * 6}") for n in range(3)]) as server:
        desk = Desk(conversations, server, tmp_path, window=200_000)
        asyncio.run(desk.say("one " + big, "two", "three"))
        desk.compactor.window_of = lambda _: WINDOW
        asyncio.run(desk.say("four"))
        asked = [r.json for r in server.requests if "Summarise this" in texts(r.json)[-1]]

    assert len(asked) > 1
    for request in asked:
        assert len(str(request)) / 4 + request["max_tokens"] <= WINDOW


def test_a_turn_too_long_to_be_kept_is_split_and_the_request_stays_word_for_word(
    conversations, tmp_path
):
    steps = [reply(call("bash", command=f"echo {n} {'z' * 3000}")) for n in range(8)]
    summaries = []

    def answer(request):
        if "Summarise this" in texts(request)[-1]:
            summaries.append(texts(request)[-1])
            return reply("## Goal\n- go on")
        return steps.pop(0) if steps else reply("All done.")

    with ScriptedServer([answer] * 40) as server:
        desk = Desk(conversations, server, tmp_path, window=WINDOW)
        assert asyncio.run(desk.say("Print exactly these EIGHT numbers")) == "done"
        final = server.requests[-1].json

    assert compactions(desk.talk)
    assert "Print exactly these EIGHT numbers" in str(final["messages"][0])
    assert context_tokens(desk.talk) < WINDOW


# -- after the answer --------------------------------------------------------------------------


def while_room_is_made(desk, do):
    """Have the next answer fill the window, and *do* something when its past is summarised."""

    def summarise(request):
        assert "Summarise this" in texts(request)[-1]
        do()
        return reply("## Goal\n- notes")

    desk.server.add(reply(f"Noted 3. {LONG}"), summarise)


def test_what_is_typed_while_room_is_made_belongs_to_the_turn(desk, conversations):
    def ends():
        events = conversations.events_of(desk.talk.id)
        return sum(isinstance(event, TurnEnded) for event in events)

    def type_two():
        for text in ("and this", "and that"):
            desk.at_hand.record(lambda talk, text=text: talk.queue_prompt(text))

    while_room_is_made(desk, type_two)
    desk.server.add(reply("Both."))
    before = ends()

    assert asyncio.run(desk.say("Note number 3")) == "done"

    said = [
        message.content.text for message in desk.talk.messages() if message.content.role == "user"
    ]
    assert said[-3:] == ["Note number 3", "and this", "and that"]
    assert desk.talk.queue == {}
    assert ends() == before + 1
    assert texts(desk.server.requests[-1].json)[-2:] == ["and this", "and that"]


def test_stopping_while_room_is_made_leaves_what_was_typed_in_the_queue(desk):
    async def session():
        loop = asyncio.get_running_loop()
        turn = asyncio.ensure_future(desk.say("Note number 3"))

        def type_and_stop():
            desk.at_hand.record(lambda talk: talk.queue_prompt("not yet"))
            loop.call_soon_threadsafe(turn.cancel)

        while_room_is_made(desk, type_and_stop)
        return await turn

    assert asyncio.run(session()) == "interrupted"
    assert list(desk.talk.queue.values()) == ["not yet"]
    assert compactions(desk.talk) == []
    assert "Noted 3." in desk.talk.messages()[-1].content.text


def test_what_a_refused_summary_has_spent_is_in_the_turns_end(desk):
    """Room has to be made twice: the first summary is recorded, the second one is no good."""
    big = "## Goal\n" + "- note " * 3000
    before = total(desk.talk)

    def summarise(_):
        if compactions(desk.talk):
            return reply("", usage={"input_tokens": 200}, stop_reason="max_tokens")
        return reply(big, usage={"input_tokens": 100})

    desk.server.add(
        reply("word " * 2400, call("bash", command="true"), usage={"input_tokens": 9}),
        reply("word " * 1500, usage={"input_tokens": 7000}),
        *[summarise] * 4,
    )
    assert asyncio.run(desk.say("Note number 3")) == "done"

    [compaction] = compactions(desk.talk)
    end, recorded = desk.talk.last_turn, 7009 + compaction.usage["input_tokens"]
    assert end.lost["input_tokens"] == 200
    assert end.spent["input_tokens"] == recorded + 200
    assert total(desk.talk)["input_tokens"] == before["input_tokens"] + recorded


@pytest.mark.parametrize("how", ["compact", "leave_branch"])
def test_what_a_good_summary_has_used_is_accounted_for_once(desk, how):
    def summarise(_):
        return reply("## Goal\n- notes", usage={"input_tokens": 100})

    async def summarised():
        try:
            if how == "compact":
                await desk.compactor.compact(reason="manual")
            else:
                await desk.compactor.leave_branch(None, desk.talk.path(desk.talk.leaf))
        finally:
            await desk.model.close()

    desk.server.add(*[summarise] * 3)
    before = len(desk.server.requests)
    asyncio.run(summarised())
    asked = len(desk.server.requests) - before

    [summary] = [
        e for e in desk.talk.entries.values() if isinstance(e, Compacted | BranchSummarized)
    ]
    assert summary.usage["input_tokens"] == 100 * asked > 0
    assert desk.compactor.summariser.unrecorded == {}


def test_a_summary_that_is_too_long_leaves_room_for_what_is_said_next(desk):
    """Its server knows no max_tokens: the summary overflowed each later request, and each summary
    of it.
    """

    def endless(request):
        asked = "Summarise this" in texts(request)[-1]
        return reply("## Goal\n" + "- notes\n" * 50_000 if asked else f"Here. {LONG}")

    desk.server.add(*[endless] * 40)
    outcomes = asyncio.run(desk.say(*[f"and now {n}? {LONG}" for n in range(4)]))

    assert outcomes == "done"
    assert len(compactions(desk.talk)) > 1
    assert context_tokens(desk.talk) < WINDOW
    assert max(len(request.body) for request in desk.server.requests) < WINDOW * 4
