"""What may be said to a conversation, and what it then is."""

from datetime import timedelta

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain import events
from domain.calls import NEVER_STARTED, OUTCOME_UNKNOWN
from domain.conversation import Conversation
from domain.errors import (
    ConversationError,
    InvalidCommandError,
    UnknownCallError,
    UnknownEntryError,
)
from domain.thinking import THINKING_LEVELS
from domain.tree import Gap
from tests import builders as b


@pytest.fixture
def talk():
    return b.new_conversation()


@pytest.fixture
def asked(talk):
    """A conversation whose model just asked for the calls a and b."""
    talk.append_prompt("go")
    talk.append_answer([b.tool_use("a"), b.tool_use("b")], stop_reason="tool_use")
    return talk


def newest(talk):
    return talk.pending_events[-1]


def open_ids(talk):
    return [call.id for call in talk.open_calls()]


# -- life ----------------------------------------------------------------------------------------


def test_a_conversation_starts_with_where_and_by_whom():
    talk = Conversation.start(
        b.ID,
        timestamp=b.NOW,
        cwd="/w\udce9rk",
        program="p",
        version="1",
        metadata={"a": float("nan")},
    )

    assert (talk.id, talk.version, talk.cwd) == (b.ID, 1, "/w\ufffdrk")
    assert (talk.created_on, talk.modified_on) == (b.NOW, b.NOW)
    assert newest(talk).metadata == {"a": None}


def test_no_event_is_no_conversation():
    assert Conversation.replay(None, []) is None


def test_every_event_says_when_by_the_clock_that_was_handed_in(talk):
    before = talk.modified_on
    talk.append_prompt("hi")

    assert newest(talk).timestamp == talk.modified_on == before + timedelta(seconds=1)


def test_a_refused_command_changes_nothing(asked):
    before, pending = b.state(asked), len(asked.pending_events)
    for command in (
        lambda: asked.append_prompt("  "),
        lambda: asked.append_tool_result("z", "x"),
        lambda: asked.start_tool("z"),
        lambda: asked.change_model(" ", max_tokens=1),
        lambda: asked.change_model("m\nand a prompt", max_tokens=1),
        lambda: asked.change_model("m", max_tokens=0),
        lambda: asked.change_thinking_level("deep"),
    ):
        with pytest.raises(ConversationError):
            command()

    assert (b.state(asked), len(asked.pending_events)) == (before, pending)


# -- prompts and answers -------------------------------------------------------------------------


@pytest.mark.parametrize("blank", ["", "   \n", "\u2028", "\x1c"])
def test_a_blank_prompt_is_refused(talk, blank):  # B4
    with pytest.raises(InvalidCommandError):
        talk.append_prompt(blank)


def test_a_prompt_is_recorded_as_it_was_typed(talk):
    talk.append_prompt("  a\u2028b\n")

    assert newest(talk).content.text == "  a\u2028b\n"
    assert newest(talk).content.role == "user"


@pytest.mark.parametrize("typed", ["hi \udcff", "\ud83d\ude00\ud83d"])
def test_lone_surrogates_become_replacement_characters(talk, typed):  # E3, E4
    talk.append_prompt(typed)

    assert newest(talk).content.text in ("hi \ufffd", "😀\ufffd")


def test_an_answer_carries_the_model_that_was_asked(talk):
    talk.append_answer([b.text("yes")], stop_reason="end_turn", usage={"input_tokens": 3})

    assert (newest(talk).model, newest(talk).stop_reason) == (b.MODEL, "end_turn")
    assert newest(talk).content.blocks == [b.text("yes")]


@pytest.mark.parametrize("meanwhile", [None, "elsewhere"])
def test_a_late_answer_hangs_from_what_it_answers(talk, meanwhile):
    talk.append_prompt("go")
    asked = talk.leaf
    talk.move_leaf(None)
    if meanwhile:
        talk.append_prompt(meanwhile)
    talk.append_answer([b.text("done")], stop_reason="end_turn", answers=asked)

    assert newest(talk).parent == asked
    assert [message.content.text for message in talk.messages()] == ["go", "done"]


def test_thinking_that_cannot_be_recorded_byte_for_byte_loses_its_signature(talk):  # C2
    talk.append_answer([b.thinking("a\ud83d"), b.thinking("e\u0301")], stop_reason="end_turn")

    assert newest(talk).content.blocks == [b.thinking("a\ufffd", ""), b.thinking("e\u0301")]


def test_entries_hang_from_the_leaf(talk):
    talk.append_prompt("a")
    first = talk.leaf
    talk.append_answer([b.text("b")], stop_reason="end_turn")

    assert talk.parents == {first: None, first + 1: first}
    assert [entry.originator_version for entry in talk.path(talk.leaf)] == [first, first + 1]
    assert talk.messages() == talk.path(talk.leaf)


def test_a_path_to_what_is_no_entry_is_refused(talk):
    with pytest.raises(UnknownEntryError) as caught:
        talk.path(1)

    assert caught.value.version == 1


def test_the_path_to_nothing_is_empty(talk):
    assert talk.path(None) == ()


# -- calls ---------------------------------------------------------------------------------------


def test_calls_are_open_until_they_have_a_result_of_any_kind(asked):  # A3
    assert open_ids(asked) == ["a", "b"]

    asked.append_tool_result("b", "no", is_error=True)
    assert open_ids(asked) == ["a"]

    asked.append_tool_result("a", [])
    assert open_ids(asked) == []


def test_a_call_has_one_result(asked):  # A3
    asked.append_tool_result("a", "1")

    with pytest.raises(UnknownCallError) as caught:
        asked.append_tool_result("a", "2")
    assert caught.value.tool_use_id == "a"


def test_a_call_that_has_a_result_is_not_started_again(asked):  # A3
    asked.append_tool_result("a", OUTCOME_UNKNOWN, is_error=True)

    with pytest.raises(UnknownCallError):
        asked.start_tool("a")


@pytest.mark.parametrize(
    "odd",
    [
        {"content": None},
        {"content": [3]},
        {"content": {"a": 1}},
        {"is_error": None},
        {"is_error": "x"},
    ],
)
def test_a_result_of_an_odd_shape_is_a_result(odd):  # A3
    talk = b.conversation(b.assistant(b.tool_use("a")), b.user(b.tool_result("a", "x") | odd))

    assert open_ids(talk) == []


def test_closing_says_of_each_call_what_is_known_and_a_second_time_nothing(asked):  # A1
    asked.start_tool("b")
    asked.close_open_calls()
    a, result_b = (entry.content.tool_results[0] for entry in asked.messages()[-2:])

    assert a == b.tool_result("a", NEVER_STARTED, is_error=True)
    assert result_b == b.tool_result("b", OUTCOME_UNKNOWN, is_error=True)

    version = asked.version
    asked.close_open_calls()
    assert asked.version == version


def test_calls_with_one_id_are_one_call_and_can_be_closed(talk):
    talk.append_answer([b.tool_use("a"), b.tool_use("a", x=1)], stop_reason="tool_use")
    assert open_ids(talk) == ["a"]

    talk.close_open_calls()
    assert open_ids(talk) == []


def test_only_the_calls_of_the_newest_answer_on_the_path_are_open(asked):
    asked.append_answer([b.text("never mind")], stop_reason="end_turn")

    assert open_ids(asked) == []


def test_an_id_that_is_used_again_is_a_new_call(asked):
    asked.start_tool("a")
    asked.append_tool_result("a", "1")
    asked.append_tool_result("b", "1")
    asked.append_answer([b.tool_use("a")], stop_reason="tool_use")
    assert open_ids(asked) == ["a"]

    asked.close_open_calls()
    assert asked.messages()[-1].content.tool_results[0]["content"] == NEVER_STARTED


# -- facts ---------------------------------------------------------------------------------------


def test_facts_are_recorded_only_if_they_differ(talk):
    talk.change_thinking_level("high")
    talk.rename("a")
    version = talk.version

    talk.change_model(b.MODEL, max_tokens=1000)
    talk.change_instructions("Be brief.", [b.BASH])
    talk.change_thinking_level("high")
    talk.rename(" a ")
    assert talk.version == version

    talk.change_model(b.MODEL, max_tokens=1001)
    talk.change_instructions("Be brief.", [])
    talk.change_thinking_level("low")
    talk.rename("b")
    assert talk.version == version + 4


@pytest.mark.parametrize("level", THINKING_LEVELS)
def test_every_thinking_level_is_taken(talk, level):
    talk.change_thinking_level(level)

    assert talk.thinking_level == level


@pytest.mark.parametrize(
    ("given", "kept"), [(" a\r\n b ", "a b"), (" \n", None), (None, None), ("\ud83d", "\ufffd")]
)
def test_a_name_is_one_line_or_none(talk, given, kept):
    talk.rename("x")
    talk.rename(given)

    assert talk.name == kept


def test_a_turn_that_failed_says_why_in_valid_text(talk):
    talk.end_turn(
        "failed", error=events.TurnError("e", "x\ud83d", "req"), spent={"n": float("inf")}
    )

    assert newest(talk).error == events.TurnError("e", "x\ufffd", "req")
    assert newest(talk).spent == {"n": None}


def test_the_last_turn_is_known_until_the_next_entry(talk):
    talk.end_turn("done")
    assert talk.last_turn.outcome == "done"

    talk.append_prompt("hi")
    assert talk.last_turn is None


def test_queued_prompts_wait_until_they_are_withdrawn():
    talk = b.conversation(b.queued("a"), b.queued("b"), b.withdrawn(1), b.withdrawn(9))

    assert talk.queue == {2: "b"}


def test_a_fork_knows_its_origin_and_has_an_empty_queue():
    talk = b.conversation(b.started(), b.queued("a"), b.forked(2, entry=None))

    assert (talk.origin.source_version, talk.queue) == (2, {})


def test_labels_come_and_go():
    assert b.conversation(b.labelled(1, "x"), b.labelled(2, "y"), b.labelled(1, None)).labels == {
        2: "y"
    }


def test_a_conversation_is_put_away_and_brought_back():
    assert b.conversation(b.archived()).archived
    assert not b.conversation(b.archived(), b.archived(False)).archived


def test_moving_the_leaf_makes_the_next_entry_a_branch():
    talk = b.conversation(
        b.user("a"), b.user("b"), b.moved(1), b.user("c"), b.moved(None), b.user("d")
    )

    assert talk.parents == {1: None, 2: 1, 4: 1, 6: None}


# -- damage --------------------------------------------------------------------------------------

LINE = b.numbered(b.user("a"), b.user("b"), b.user("c"), b.moved(1), b.user("d"), b.user("e"))


@pytest.mark.parametrize(
    ("versions", "parents", "gaps"),
    [
        ([1], {2: None, 3: 2, 5: 3, 6: 5}, [Gap(1, 1, None)]),
        ([2], {1: None, 3: 1, 5: 1, 6: 5}, [Gap(2, 2, 1)]),
        ([2, 3], {1: None, 5: 1, 6: 5}, [Gap(2, 3, 1)]),
        ([5], {1: None, 2: 1, 3: 2, 6: 1}, [Gap(5, 5, 1)]),
        ([6], {1: None, 2: 1, 3: 2, 5: 1}, []),
        ([1, 2, 3, 4, 5], {6: None}, [Gap(1, 5, None)]),
    ],
)
def test_what_hung_from_a_lost_entry_hangs_from_the_nearest_one_before(
    versions, parents, gaps
):  # J3
    talk = Conversation.replay(None, b.lost(LINE, *versions))

    if versions == [1]:
        parents = parents | {5: None}  # moved to what is lost: before the gap there was nothing
    assert (talk.parents, talk.gaps) == (parents, gaps)


def test_what_hung_from_an_unreadable_event_hangs_from_the_leaf_before_it():
    stream = [
        b.user("a"),
        b.user("b"),
        b.moved(1),
        b.unrecognised(),
        b.moved(2),
        b.user("c", parent=4),
    ]
    talk = b.conversation(*stream)

    assert talk.parents[6] == 1
    assert [event.topic for event in talk.unrecognised] == ["Newer"]


@pytest.mark.parametrize("parent", [-5, 0, 2, 3, 99])
def test_a_parent_that_never_was_an_entry_is_read_as_the_leaf(parent):
    assert b.conversation(b.user("a"), b.started(), b.user("b", parent=parent)).parents[3] == 1


def test_a_version_that_comes_twice_counts_once():
    talk = b.conversation(b.user("a"), b.user("b", version=1), b.user("c", version=1))

    assert (talk.version, talk.leaf) == (1, 1)
    assert talk.entries[1].content.text == "a"


@given(st.lists(st.sampled_from(["prompt", "call", "result", "close"]), max_size=12))
def test_versions_of_commands_have_no_gaps(commands):
    talk = b.new_conversation()
    for command in commands:
        match command:
            case "prompt":
                talk.append_prompt("hi")
            case "call":
                talk.append_answer([b.tool_use("a"), b.tool_use("b")], stop_reason="tool_use")
            case "result" if talk.open_calls():
                talk.append_tool_result(talk.open_calls()[-1].id, "x")
            case "close":
                talk.close_open_calls()

    versions = [event.originator_version for event in talk.pending_events]
    assert versions == list(range(1, talk.version + 1))
    assert b.state(Conversation.replay(None, talk.pending_events)) == b.state(talk)


# -- the tree, by commands -----------------------------------------------------------------------


def test_the_leaf_moves_only_to_entries(talk):
    talk.append_prompt("a")
    first = talk.leaf
    talk.append_prompt("b")
    talk.move_leaf(first)
    assert talk.leaf == first

    with pytest.raises(UnknownEntryError):
        talk.move_leaf(1)


def test_leaving_a_branch_says_where_it_ended(talk):
    talk.append_prompt("a")
    first = talk.leaf
    talk.append_prompt("b")
    left = talk.leaf

    talk.leave_branch(first, "tried b")

    assert (newest(talk).left, newest(talk).parent) == (left, first)
    assert talk.leaf == newest(talk).originator_version


def test_a_compaction_keeps_only_from_what_is_on_the_path(talk):
    talk.append_prompt("a")
    first = talk.leaf
    talk.move_leaf(None)
    talk.append_prompt("b")

    with pytest.raises(UnknownEntryError):
        talk.compact("s", first_kept=first, tokens_before=1, reason="full")
    with pytest.raises(InvalidCommandError):
        talk.compact(" ", first_kept=talk.leaf, tokens_before=1, reason="full")


@pytest.mark.parametrize("label", ["7", "-1", " 12 "])
def test_a_label_that_reads_as_a_version_is_refused(talk, label):
    talk.append_prompt("a")

    with pytest.raises(InvalidCommandError):
        talk.label(talk.leaf, label)


def test_only_a_prompt_that_is_queued_can_be_withdrawn(talk):
    talk.queue_prompt("later")
    (target,) = talk.queue
    talk.withdraw_prompt(target)

    with pytest.raises(InvalidCommandError):
        talk.withdraw_prompt(target)
