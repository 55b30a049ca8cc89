"""An answer as it arrives, event by event."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.answer import Answer
from domain.projections.context import context
from tests import builders as b
from tests.api_rules import violations
from tests.strategies import json_objects, json_text, json_values, odd_blocks


def start(index, block):
    return {"type": "content_block_start", "index": index, "content_block": block}


def delta(index, kind, field, value):
    return {"type": "content_block_delta", "index": index, "delta": {"type": kind, field: value}}


def stop(index):
    return {"type": "content_block_stop", "index": index}


def text_piece(index, said):
    return delta(index, "text_delta", "text", said)


def input_piece(index, said):
    return delta(index, "input_json_delta", "partial_json", said)


def ended(reason="end_turn", **usage):
    return {"type": "message_delta", "delta": {"stop_reason": reason}, "usage": usage}


def answer(*stream):
    found = Answer()
    for event in stream:
        found.apply(event)
    return found


HEAD = {
    "type": "message_start",
    "message": {"id": "msg_1", "usage": {"input_tokens": 9, "output_tokens": 1}},
}
CALL = {"type": "tool_use", "id": "a", "name": "bash", "input": {}}
THOUGHT = {"type": "thinking", "thinking": "", "signature": ""}


def test_pieces_make_blocks_in_order():
    found = answer(
        HEAD,
        start(0, THOUGHT),
        delta(0, "thinking_delta", "thinking", "h"),
        delta(0, "thinking_delta", "thinking", "m"),
        delta(0, "signature_delta", "signature", "sig"),
        stop(0),
        start(1, b.text("")),
        text_piece(1, "y"),
        text_piece(1, "es"),
        stop(1),
        start(2, CALL),
        input_piece(2, '{"command": '),
        input_piece(2, '"ls"}'),
        stop(2),
        ended("tool_use", output_tokens=7, input_tokens=None),
    )

    assert found.content == [b.thinking("hm", "sig"), b.text("yes"), b.tool_use("a", command="ls")]
    assert (found.response_id, found.stop_reason) == ("msg_1", "tool_use")
    assert found.calls_are_whole
    assert found.usage == {"input_tokens": 9, "output_tokens": 7}


@pytest.mark.parametrize(
    "stream",
    [
        [start(0, CALL)],
        [start(0, CALL), input_piece(0, '{"command": "l'), stop(0)],
        [start(0, CALL), stop(0), start(0, CALL)],
        [start(0, CALL | {"input": "ls"}), stop(0)],
    ],
)
def test_a_call_that_has_no_end_or_no_input_is_not_whole(stream):
    assert not answer(HEAD, *stream).calls_are_whole


@pytest.mark.parametrize(
    ("block", "says"),
    [
        (b.text("x"), True),
        (b.text(" \n"), False),
        ({"type": "text", "text": None}, False),
        (b.thinking("hm", "sig"), False),
        (b.redacted(), False),
        (CALL, True),
        ({"type": "server_tool_use"}, True),
    ],
)
def test_thinking_alone_and_blank_text_say_nothing(block, says):
    assert answer(start(0, block), stop(0)).says_something == says
    assert not answer(HEAD).says_something


def test_a_second_block_of_the_same_index_takes_nothing_away():
    found = answer(start(0, b.text("a")), start(0, b.text("b")), text_piece(0, "c"))

    assert found.content == [b.text("a"), b.text("bc")]


@pytest.mark.parametrize("count", [None, "9", 1.5, True, -1, 10**30, [], {"a": 1}])
def test_a_count_that_is_none_counts_nothing(count):
    head = {"type": "message_start", "message": {"id": 7, "usage": {"input_tokens": count}}}
    found = answer(head, {"type": "message_delta", "delta": {}, "usage": [count]})

    assert not found.usage.get("input_tokens")
    assert found.response_id is None


def test_a_call_without_input_has_an_empty_one():
    assert answer(start(0, CALL), stop(0)).content == [b.tool_use("a")]
    assert answer(start(0, CALL), input_piece(0, ""), stop(0)).content == [b.tool_use("a")]


@pytest.mark.parametrize(
    "piece", ['{"path": "a.py", "te', "[1, 2]", "3", "null", "{} {}", "[" * 10**5]
)
def test_an_input_that_is_no_object_is_kept_in_a_form_that_no_tool_takes(piece):
    assert answer(start(0, CALL), input_piece(0, piece)).content[0]["input"] == {"unparsed": piece}


def test_a_block_of_an_unknown_type_and_unknown_keys_are_kept():
    block = {"type": "server_tool_use", "id": "s", "caller": {"type": "direct"}, "input": {}}
    found = answer(start(0, block), input_piece(0, '{"q": 1}'), stop(0))

    assert found.content == [block | {"input": {"q": 1}}]


def test_citations_are_gathered():
    found = answer(
        start(0, b.text("", citations=None)),
        delta(0, "citations_delta", "citation", {"n": 1}),
        delta(0, "citations_delta", "citation", {"n": 2}),
    )

    assert found.content[0]["citations"] == [{"n": 1}, {"n": 2}]


def test_reading_an_answer_twice_gives_the_same():
    found = answer(start(0, b.text("a")), text_piece(0, "b"), start(1, CALL), input_piece(1, "{}"))

    assert found.content == found.content == [b.text("ab"), b.tool_use("a")]


ODD = ("text", "", None, 3, True, [], ["type"])


def test_a_piece_without_a_block_and_unknown_events_change_nothing():
    odd = [
        text_piece(3, "x"),
        {"type": "ping"},
        {"type": "content_block_delta"},
        {},
        {"type": "hologram"},
        *({"type": "content_block_start", "index": 0, "content_block": raw} for raw in ODD),
        *({"type": "content_block_delta", "index": 0, "delta": raw} for raw in ODD),
        *({"type": "message_start", "message": raw} for raw in ODD),
        *({"type": "message_delta", "delta": raw} for raw in ODD),
    ]

    assert answer(*odd).content == []


@given(
    st.lists(
        json_values.map(lambda value: {"type": "content_block_start", "x": value}) | json_objects
    )
)
def test_events_of_unknown_shapes_change_nothing(stream):
    assert answer(*stream).content == []


@given(json_objects, st.data())
def test_an_input_comes_out_however_it_was_cut(arguments, data):
    whole = json_text(arguments).decode()
    cuts = sorted(data.draw(st.lists(st.integers(0, len(whole)), max_size=4)))
    pieces = [whole[i:j] for i, j in zip([0, *cuts], [*cuts, len(whole)], strict=True)]

    found = answer(start(0, CALL), *(input_piece(0, piece) for piece in pieces))

    assert found.content[0]["input"] == arguments


@pytest.mark.parametrize(
    ("came", "kept"),
    [
        (b.text(5), b.text("5")),
        (b.text(None), b.text("")),
        (b.text(["a", {"b": 1}]), b.text('["a",{"b":1}]')),
        (b.text("x", citations=5), b.text("x")),
        (b.text("x", citations=[1, {"n": 1}]), b.text("x", citations=[{"n": 1}])),
        (b.thinking(5, "sig"), b.thinking("5", "")),  # it can be signed no more
        (b.thinking("hm", None), b.thinking("hm", "")),
        (b.text("x", citations=None, newer=1), b.text("x", citations=None, newer=1)),
    ],
)
def test_a_text_is_a_text_whatever_it_came_as(came, kept):  # R19
    assert answer(start(0, came), stop(0)).content == [kept]


@given(st.lists(odd_blocks(), max_size=4))
def test_blocks_of_odd_shapes_are_read_and_go_back_as_the_api_takes_them(blocks):
    found = answer(*(start(index, raw) for index, raw in enumerate(blocks)))
    talk = b.conversation(b.model(), b.user("hi"))
    talk.append_answer(found.content, stop_reason="end_turn")
    talk.append_prompt("go on")

    assert violations(context(talk, talk.leaf)) == []
    assert isinstance(found.says_something, bool)
    assert all(isinstance(raw["text"], str) for raw in found.content if raw["type"] == "text")


# -- cut short -----------------------------------------------------------------------------------


def test_of_an_answer_cut_short_text_and_whole_signed_thinking_are_kept():  # B5, C1
    found = answer(
        start(0, b.thinking("hm", "sig")), stop(0), start(1, b.text("I was ab")),
    )  # fmt: skip

    assert found.kept_if_cut_short == [b.thinking("hm", "sig"), b.text("I was ab")]


@pytest.mark.parametrize("block", [b.thinking("hm", ""), b.thinking("hm", "si"), b.redacted()])
def test_thinking_that_did_not_end_is_not_kept(block):  # C1
    found = answer(start(0, block), start(1, b.text("yes")))

    assert found.kept_if_cut_short == [b.text("yes")]


@pytest.mark.parametrize("said", ["", "\n\n"])
def test_of_an_answer_that_said_nothing_yet_nothing_is_kept(said):  # B1
    found = answer(start(0, b.thinking("hm", "sig")), stop(0), start(1, b.text(said)))

    assert found.kept_if_cut_short == []


def test_a_call_of_an_answer_cut_short_is_never_kept():  # A17
    found = answer(start(0, b.text("now")), start(1, CALL), input_piece(1, '{"command": "rm'))

    assert found.kept_if_cut_short == [b.text("now")]
