"""What people see of a path."""

import pytest

from domain.calls import NO_NAME, SAME_ID
from domain.conversation import Conversation
from domain.errors import UnknownEntryError
from domain.projections.outline import outline
from domain.projections.transcript import recent, transcript
from domain.projections.usage import total
from tests import builders as b


def shown(talk, leaf="newest"):
    return [
        (item.kind, item.text) for item in transcript(talk, talk.leaf if leaf == "newest" else leaf)
    ]


def test_every_block_is_an_item():
    talk = b.conversation(
        b.user("hi"),
        b.assistant(b.thinking("hm"), b.redacted(), "yes", b.tool_use("a", "bash", command="ls")),
        b.result("a", [b.text("one"), b.image(), b.text("two")]),
        b.note("listing"),
        b.compacted("the past"),
        b.branch_summarized("a try", left=2),
        b.assistant({"type": "hologram", "data": 1}),
    )

    assert shown(talk) == [
        ("user", "hi"), ("thinking", "hm"), ("thinking", "(redacted)"), ("assistant", "yes"),
        ("tool_use", "bash"), ("tool_result", "one\n[image]\ntwo"), ("note", "listing"),
        ("summary", "the past"), ("summary", "a try"), ("other", "(hologram)"),
    ]  # fmt: skip


def test_a_call_and_its_result_carry_their_raw_blocks():
    talk = b.conversation(
        b.assistant(b.tool_use("a", command="ls")), b.result("a", "x", is_error=True)
    )
    call, result = transcript(talk, talk.leaf)

    assert call.data == b.tool_use("a", command="ls")
    assert result.data == b.tool_result("a", "x", is_error=True)


def test_items_carry_version_time_and_label():
    talk = b.conversation(b.user("a"), b.labelled(1, "here"))
    (item,) = transcript(talk, 1)

    assert (item.version, item.timestamp, item.label) == (1, b.NOW, "here")


def test_blank_text_and_unsigned_thinking_are_shown_though_the_model_does_not_get_them():
    assert shown(b.conversation(b.assistant(" ", b.thinking("hm", "")))) == [
        ("assistant", " "),
        ("thinking", "hm"),
    ]


STREAM = b.numbered(b.user("a"), b.user("b"), b.user("c"), b.user("d"), b.turn_ended())


@pytest.mark.parametrize(
    ("versions", "expected"),
    [
        ([1], ["1 event lost here (1-1)", "b", "c", "d"]),
        ([2, 3], ["a", "2 events lost here (2-3)", "d"]),
        ([2, 4], ["a", "1 event lost here (2-2)", "c", "1 event lost here (4-4)"]),
        ([1, 2, 3, 4], ["4 events lost here (1-4)"]),
    ],
)
def test_a_gap_is_shown_where_it_is(versions, expected):  # J3
    talk = Conversation.replay(None, b.lost(STREAM, *versions))

    assert [text for _, text in shown(talk)] == expected


def test_an_event_that_cannot_be_read_is_shown_as_such():
    talk = b.conversation(b.user("a"), b.unrecognised(), b.user("b"))

    assert [kind for kind, _ in shown(talk)] == ["user", "gap", "user"]


def test_a_gap_of_one_branch_is_not_shown_on_another():
    stream = b.numbered(
        b.user("a"), b.user("b"), b.user("lost"), b.user("d"), b.moved(1), b.user("e")
    )
    talk = Conversation.replay(None, b.lost(stream, 3))

    assert shown(talk) == [("user", "a"), ("user", "e")]
    assert len(shown(talk, 4)) == 4


@pytest.mark.parametrize("body", [3, None, [], {}, {"role": "tool", "content": "x"}])
def test_a_message_that_makes_no_sense_is_shown_as_unreadable(body):
    ((kind, text),) = shown(b.conversation(b.message(body)))

    assert kind == "user"
    assert text.startswith("(unreadable: ")


def test_deep_nesting_is_no_obstacle():
    deep = []
    for _ in range(299):
        deep = [deep]
    talk = b.conversation(b.assistant(b.tool_use("a", deep=deep)))

    assert transcript(talk, 1)[0].data["input"] == {"deep": deep}


def test_a_leaf_that_is_no_entry_is_refused():
    with pytest.raises(UnknownEntryError):
        transcript(b.conversation(b.started()), 1)


def test_usage_is_summed_over_answers_and_summaries_and_counts_nothing_odd():
    talk = b.conversation(
        b.assistant("a", usage={"input_tokens": 3, "output_tokens": 2, "service_tier": "x"}),
        b.assistant(
            "b", usage={"input_tokens": 4, "output_tokens": None, "cache_read_input_tokens": 0}
        ),
        b.compacted("c", usage={"input_tokens": 10}),
        b.assistant("d", usage={"input_tokens": "many"}),
        b.user("e"),
    )

    assert total(talk) == {"input_tokens": 17, "output_tokens": 2}
    assert total(talk, since=2) == {"input_tokens": 14}
    assert total(talk, since=9) == {}


def test_the_recent_part_is_the_end_and_never_begins_with_a_result():
    talk = b.new_conversation()
    for number in range(5):
        talk.append_prompt(f"Question {number}")
        talk.append_answer([b.tool_use(f"c{number}")], stop_reason="tool_use")
        talk.append_tool_result(f"c{number}", "Result")
    whole = transcript(talk, talk.leaf)

    for count in range(1, 20):
        items, earlier = recent(talk, count)
        assert items == whole[len(whole) - len(items) :]
        assert items[0].kind != "tool_result"
        assert len(items) >= min(count, len(whole))
        assert earlier + len(items) == len(whole)  # each message is one item here

    assert recent(b.new_conversation(), 3) == ((), 0)


def test_a_call_that_nobody_can_run_is_shown_with_the_reason():
    nameless = {"type": "tool_use", "id": "b", "input": {}}
    talk = b.conversation(
        b.user("go"),
        b.assistant(b.tool_use("a"), b.tool_use("a"), nameless),
        b.result("a", "1"),
    )

    assert shown(talk)[1:] == [
        ("tool_use", "bash"),
        ("other", f"(bash: {SAME_ID})"),
        ("other", f"(tool_use: {NO_NAME})"),
        ("tool_result", "1"),
    ]
    assert [row.text for row in outline(talk)][1] == "→ bash → bash → ?"


def test_the_line_to_the_leaf_is_straight_and_last_whatever_is_newer():
    talk = b.conversation(b.user("one"), b.user("two"), b.moved(1), b.user("newer"), b.moved(2))

    rows = [(row.version, row.depth, row.is_on_path) for row in outline(talk)]
    assert rows == [(1, 0, True), (4, 1, False), (2, 0, True)]


def test_a_file_that_goes_with_a_prompt_is_not_in_its_row():
    talk = b.conversation(b.user("look", "(The user attached the file a.txt: x)"))

    assert [row.text for row in outline(talk)] == ["look"]
