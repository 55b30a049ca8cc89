"""Branches, labels, rotation and usage, over every persistence module."""

import asyncio
from decimal import Decimal

import pytest

from app.bootstrap import AgentFactory
from app.figures import statistics, text_of
from app.headless.one_turn import SilentScreen
from app.settings import run_settings
from app.verification import verify
from app.view.lines import tree_line
from domain.errors import InvalidCommandError, UnknownEntryError
from domain.events import BranchSummarized, Compacted
from domain.projections.context import context
from domain.projections.outline import outline
from domain.projections.usage import own_entries, usage_of
from tests import builders as b
from tests.app.doubles import Desk
from tests.server import ScriptedServer, refuse, reply


@pytest.fixture
def desk(conversations, tmp_path):
    with ScriptedServer([reply("One."), reply("Two."), reply("Three.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        desk.server = server
        asyncio.run(desk.say("first", "second"))
        yield desk


def entries(desk):
    return [entry.originator_version for entry in desk.talk.path(desk.talk.leaf)]


def test_a_moved_leaf_survives_a_restart(desk, conversations):
    first_answer = entries(desk)[1]
    desk.at_hand.record(lambda talk: talk.move_leaf(first_answer))

    assert conversations.get(desk.talk.id).leaf == first_answer


def test_editing_an_earlier_prompt_makes_a_sibling(desk):
    second = desk.talk.path(desk.talk.leaf)[2]
    desk.at_hand.record(lambda talk: talk.move_leaf(second.parent))
    asyncio.run(desk.say("second, but better"))

    siblings = [v for v, parent in desk.talk.parents.items() if parent == second.parent]
    assert len(siblings) == 2
    assert "second, but better" in str(context(desk.talk, desk.talk.leaf))
    assert "Two." not in str(context(desk.talk, desk.talk.leaf))


def test_facts_never_move_the_leaf(desk):
    leaf = desk.talk.leaf
    desk.at_hand.record(lambda talk: talk.label(leaf, "here"))
    desk.at_hand.record(lambda talk: talk.rename("a name"))
    desk.at_hand.record(lambda talk: talk.change_model("other", max_tokens=9))

    assert desk.talk.leaf == leaf


def test_the_latest_label_wins_and_a_blank_one_clears(desk, conversations):
    leaf = desk.talk.leaf
    for text in ("one", "two  words", ""):
        desk.at_hand.record(lambda talk, text=text: talk.label(leaf, text))
        labels = conversations.get(desk.talk.id).labels
        assert labels == ({leaf: " ".join(text.split())} if text else {})


def test_a_label_that_reads_as_a_number_is_refused(desk):
    with pytest.raises(InvalidCommandError):
        desk.at_hand.record(lambda talk: talk.label(talk.leaf, "-3"))


def test_leaving_a_branch_with_a_summary_is_one_save(desk, conversations):
    first_answer, left = entries(desk)[1], desk.talk.leaf
    desk.at_hand.record(lambda talk: talk.leave_branch(first_answer, "It was about two."))

    summary = conversations.get(desk.talk.id).entries[desk.talk.leaf]
    assert isinstance(summary, BranchSummarized)
    assert (summary.parent, summary.left) == (first_answer, left)
    assert "It was about two." in str(context(desk.talk, desk.talk.leaf))


def test_an_entry_that_is_not_there_cannot_be_gone_to(desk):
    before = desk.talk.version
    with pytest.raises(UnknownEntryError):
        desk.at_hand.record(lambda talk: talk.move_leaf(99))

    assert desk.talk.version == before


def test_the_outline_shows_leaf_labels_branches_and_what_was_compacted(desk):
    second = desk.talk.path(desk.talk.leaf)[2]
    desk.at_hand.record(lambda talk: talk.move_leaf(second.parent))
    asyncio.run(desk.say("better"))
    desk.at_hand.record(lambda talk: talk.label(talk.leaf, "good"))
    kept = desk.talk.path(desk.talk.leaf)[2].originator_version
    desk.at_hand.record(
        lambda talk: talk.compact("short", first_kept=kept, tokens_before=9, reason="manual")
    )
    lines = [tree_line(row) for row in outline(desk.talk)]

    assert lines[0].split()[1:] == ["·", "user", "first"]
    assert [text.split()[1:3] for text in lines[2:4]] == [["│", "○"], ["│", "○"]]
    assert "[good]" in lines[5]
    assert lines[-1].endswith("compaction short ◀ leaf")
    assert len(lines) == len(desk.talk.entries)


def test_a_rotated_conversation_needs_nothing_of_its_source(conversations, tmp_path, monkeypatch):
    long = "word " * 1200
    monkeypatch.setenv("LEFTFOLD_CONTEXT_WINDOW", "8000")
    monkeypatch.setenv("ANTHROPIC_API_KEY", "key")
    with ScriptedServer([reply(f"Noted {n}. {long}") for n in range(3)]) as server:
        desk = Desk(conversations, server, tmp_path, window=8000)
        asyncio.run(desk.say("zero", "one", "two"))
        desk.at_hand.record(lambda talk: talk.learn_limits("test-model", context_window=9000))
        desk.at_hand.record(lambda talk: talk.append_prompt("look", [b.image()]))
        desk.at_hand.record(lambda talk: talk.withhold([talk.leaf], ["image"], reason="no"))
        before = list(conversations.events_of(desk.talk.id))
        server.add(reply("## Goal\n- notes"), reply("## Goal\n- notes"))

        async def rotate():
            workshop = AgentFactory(run_settings(), conversations, desk.model)
            try:
                return await workshop.rotate(desk.at_hand, SilentScreen())
            finally:
                await desk.model.close()

        new = asyncio.run(rotate()).conversation

    assert new.origin.source_id == desk.talk.id
    assert isinstance(new.path(new.leaf)[0], Compacted)
    request = str(context(new, new.leaf))
    assert "## Goal" in request
    assert "Noted 2." in request
    assert "Noted 0." not in request
    assert own_entries(new) == ()
    assert new.limits == desk.talk.limits != {}
    assert new.withheld == {("test-model", new.leaf, "image")}
    assert new.model == "test-model"
    assert "the API refused it" in request
    assert list(conversations.events_of(desk.talk.id)) == before
    assert verify(conversations, new.id).ok


def test_usage_counts_each_response_once_and_a_fork_only_its_own(desk, conversations):
    prices = {"input_tokens": Decimal(1), "output_tokens": Decimal(2)}

    def cost(model, usage):
        return sum((prices.get(kind, 0) * n for kind, n in usage.items()), Decimal(0))

    whole = usage_of(own_entries(desk.talk), cost)
    fork = conversations.open(conversations.fork(desk.talk.id))
    inherited = usage_of(own_entries(fork.conversation), cost)
    again = Desk(conversations, desk.server, desk.toolbox._cwd, at_hand=fork)
    asyncio.run(again.say("third"))
    own = usage_of(own_entries(again.talk), cost)

    assert whole.answers == 2
    assert whole.cost == whole.tokens["input_tokens"] + 2 * whole.tokens["output_tokens"]
    assert inherited.tokens == {}
    assert own.answers == 1


def test_failed_attempts_count(conversations, tmp_path):
    with ScriptedServer([reply("Partial", drop_after=3), refuse(500), reply("Ok.")]) as server:
        desk = Desk(conversations, server, tmp_path)
        asyncio.run(desk.say("one", "two", "three"))
    found = statistics(desk.talk)

    assert desk.talk.turns[0].lost["input_tokens"] > 0
    answer = desk.talk.path(desk.talk.leaf)[-1]
    lost = desk.talk.turns[0].lost["input_tokens"]
    assert found.total.tokens["input_tokens"] == answer.usage["input_tokens"] + lost
    assert "cost unknown" in text_of(found)
