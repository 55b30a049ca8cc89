"""Messages in columns: they tell what each of them tells, alone and in any group."""

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.conversation import Conversation
from domain.plain import ANSWER, NOT_PLAIN, RESULT, ROUND, TEXTS, THINKS, THINKS_FIRST, shapes
from domain.projections.context import context
from domain.tree import Tree
from domain.unread import Bodies, Run
from tests import builders as b
from tests.api_rules import violations
from tests.strategies import TEXTS as SAYINGS
from tests.strategies import json_values

CALL = b.tool_use("toolu_1", command="ls")
BODIES = {
    "a prompt": ({"role": "user", "content": [b.text("hi"), b.text("you")]}, TEXTS, ()),
    "a result": ({"role": "user", "content": [b.tool_result("t", "ok")]}, RESULT, ("t",)),
    "a result of texts": ({"role": "user", "content": [b.tool_result("t", [b.text("ok")])]}, RESULT, ("t",)),
    "an answer": ({"role": "assistant", "content": [b.text("a")]}, ANSWER, ()),
    "a call": ({"role": "assistant", "content": [b.text("a"), CALL]}, ANSWER, ("toolu_1",)),
    "two calls": (
        {"role": "assistant", "content": [CALL, b.tool_use("toolu_2")]}, ANSWER, ("toolu_1", "toolu_2"),
    ),
    "thinking": ({"role": "assistant", "content": [b.thinking("hm"), CALL]}, ANSWER | THINKS | THINKS_FIRST, ("toolu_1",)),
    "thinking, later": ({"role": "assistant", "content": [CALL, b.thinking("hm"), b.text("a")]}, ANSWER | THINKS, ("toolu_1",)),
    "a blank text": ({"role": "user", "content": [b.text(" ")]}, NOT_PLAIN, ()),
    "a blank result": ({"role": "user", "content": [b.tool_result("t", [b.text("")])]}, NOT_PLAIN, ()),
    "two results": ({"role": "user", "content": [b.tool_result("t", "a"), b.tool_result("u", "b")]}, NOT_PLAIN, ()),
    "the same id twice": ({"role": "assistant", "content": [CALL, CALL]}, NOT_PLAIN, ()),
    "no name": ({"role": "assistant", "content": [b.tool_use("toolu_1", "a b")]}, NOT_PLAIN, ()),
    "thinking at the end": ({"role": "assistant", "content": [CALL, b.thinking("hm")]}, NOT_PLAIN, ()),
    "nothing": ({"role": "assistant", "content": []}, NOT_PLAIN, ()),
    "an image": ({"role": "user", "content": [b.image()]}, NOT_PLAIN, ()),
}  # fmt: skip


def raw(value):
    return msgspec.Raw(msgspec.json.encode(value))


@pytest.mark.parametrize(("body", "kind", "ids"), BODIES.values(), ids=BODIES)
def test_a_message_alone_has_its_shape(body, kind, ids):
    assert shapes([raw(body)], [None]) == (bytes([kind]), [ids])
    assert shapes([raw(body)], ["interrupted"]).kinds == bytes([NOT_PLAIN])


@given(
    st.lists(
        st.sampled_from(list(BODIES.values())) | json_values.map(lambda v: (v, NOT_PLAIN, ())),
        max_size=80,
    )
)
def test_in_a_group_each_has_the_shape_that_it_has_alone(messages):
    kinds, ids = shapes([raw(body) for body, _, _ in messages], [None] * len(messages))

    assert [kind & ~ROUND for kind in kinds] == [kind for _, kind, _ in messages]
    assert ids == [ids for _, _, ids in messages]


class Log:
    """What messages are read from."""

    def __init__(self, messages):
        self.messages = {each.originator_version: each for each in messages}

    def message(self, version):
        return self.messages[version]


@st.composite
def trees(draw):
    """Messages that hang from any before them, from nothing, or from what is not there."""
    versions = range(1, draw(st.integers(1, 30)) + 1)
    return [
        msgspec.structs.replace(
            b.message(raw(b.text("x"))),
            originator_version=version,
            parent=draw(
                st.sampled_from([version - 1 or None] * 3 + [None]) | st.integers(-1, version + 2)
            ),
        )
        for version in versions
    ]


def in_columns(messages):
    return Bodies(
        Log(messages),
        [each.originator_version for each in messages],
        [each.parent for each in messages],
        [each.model for each in messages],
        bodies=[each.message for each in messages],
        stop_reasons=[each.stop_reason for each in messages],
    )


@given(trees(), st.data())
def test_a_run_hangs_as_its_messages_do(messages, data):
    cut = data.draw(st.integers(0, len(messages)))
    unread = in_columns(messages)
    one_by_one, by_runs = Tree(), Tree()
    for message in messages:
        one_by_one.record(message)
    for run in (Run(unread, 0, cut), Run(unread, cut, len(messages))):
        if run.length:
            by_runs.record(run)

    for name in ("parents", "leaf", "gaps", "is_orderly", "presumed", "is_leaf_known"):
        assert getattr(by_runs, name) == getattr(one_by_one, name)
    assert dict(by_runs.entries) == dict(one_by_one.entries)


@given(trees(), st.data())
def test_a_path_over_runs_is_the_path_over_messages(messages, data):
    unread = in_columns(messages)
    by_runs = Conversation.replay(None, [Run(unread, 0, len(messages))])
    one_by_one = Conversation.replay(None, messages)
    leaf = data.draw(st.sampled_from(messages)).originator_version
    looked_at = data.draw(st.lists(st.sampled_from(messages), max_size=3))
    for message in looked_at:
        assert by_runs.entry(message.originator_version) == message

    path = one_by_one.path(leaf)

    assert by_runs.path(leaf) == path
    assert by_runs.message_count() == one_by_one.message_count()
    found = [
        version
        for known in by_runs.known_backwards(leaf)
        for version in reversed(
            known.versions if isinstance(known, Run) else [known.originator_version]
        )
    ]
    assert found == [each.originator_version for each in reversed(path)]


@given(st.integers(0, 12), st.integers(0, 12))
def test_what_is_within_bounds(first, last):
    messages = [
        msgspec.structs.replace(b.message(raw(1)), originator_version=v) for v in range(1, 11)
    ]
    run = Run(in_columns(messages), 2, 8).within(first, last)

    expected = [version for version in range(3, 9) if first <= version <= last]
    assert (run.versions if run else []) == expected


IDS = st.sampled_from("abc")
SAID = st.one_of(
    SAYINGS.map(lambda said: {"role": "user", "content": [b.text(said)]}),
    IDS.map(lambda call_id: {"role": "user", "content": [b.tool_result(call_id, "ok")]}),
    st.lists(IDS, max_size=2).map(
        lambda ids: {"role": "assistant", "content": [b.text("a"), *map(b.tool_use, ids)]}
    ),
    st.just({"role": "assistant", "content": [b.thinking("hm"), b.text("a")]}),
)


@st.composite
def round_of_calls(draw):
    """An answer with calls of their own, results of them or of others, and what is said then."""
    ids = draw(st.permutations("defghijk"))[: draw(st.integers(1, 2))]
    answered = draw(st.just(ids) | st.permutations(ids) | st.lists(IDS, max_size=2))
    results = [{"role": "user", "content": [b.tool_result(each)]} for each in answered]
    calls = {"role": "assistant", "content": [b.tool_use(each) for each in ids]}
    return [calls, *results, *draw(st.lists(SAID, max_size=2))]


@given(st.lists(round_of_calls(), max_size=8))
def test_rounds_are_passed_on_as_their_messages_are(rounds):
    """What comes out is compared with what decoding makes of it, as in each test."""
    bodies = [b.user("hi").message, *(raw(body) for round_ in rounds for body in round_)]
    messages = [
        msgspec.structs.replace(
            b.message(body, model=b.MODEL), originator_version=version, parent=version - 1 or None
        )
        for version, body in enumerate(bodies, 1)
    ]
    talk = Conversation.replay(None, [Run(in_columns(messages), 0, len(messages))])
    talk.model = b.MODEL

    sent = context(talk, talk.leaf)

    assert violations(sent) == []
