"""What holds of the context and of the fold for every stream of events, sane or not."""

import copy

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.canonical import canonical
from domain.conversation import Conversation
from domain.events import MessageAppended
from domain.projections.context import context
from domain.projections.transcript import transcript
from domain.projections.usage import total
from tests import builders as b
from tests.api_rules import prefix_violations, violations
from tests.levels import examples
from tests.strategies import KINDS, leaf_of, streams

many = settings(max_examples=examples(120))
some = settings(max_examples=examples(40))


def replayed(stream):
    return Conversation.replay(Conversation.blank(b.ID, b.NOW), stream)


@many
@given(streams())
def test_whatever_a_log_holds_every_leaf_makes_a_request_that_keeps_the_rules(stream):
    talk = replayed(stream)

    for leaf in [None, *talk.entries]:
        assert violations(context(talk, leaf)) == []


@some
@given(streams(), st.data())
def test_the_same_log_makes_the_same_bytes(stream, data):
    one, two = replayed(stream), replayed(copy.deepcopy(stream))
    leaf = leaf_of(data.draw, one)

    # repr, not canonical JSON: the order of keys counts for the API's cache.
    assert repr(context(one, leaf)) == repr(context(one, leaf)) == repr(context(two, leaf))


@some
@given(streams())
def test_projecting_changes_nothing(stream):
    talk = replayed(stream)
    before = copy.deepcopy(b.state(talk))

    for leaf in [None, *talk.entries]:
        canonical(context(talk, leaf))
        transcript(talk, leaf)
    total(talk)
    talk.open_calls()

    assert b.state(talk) == before


@some
@given(streams(), st.data())
def test_a_stream_folded_in_two_parts_is_the_stream_folded_at_once(stream, data):
    cut = data.draw(st.integers(0, len(stream)))

    parts = Conversation.replay(replayed(stream[:cut]), stream[cut:])

    assert b.state(parts) == b.state(replayed(stream)) | {"_created_on": parts.created_on}


@some
@given(streams())
def test_folding_a_stream_a_second_time_changes_nothing(stream):
    talk = replayed(stream)
    before = copy.deepcopy(b.state(talk))

    assert b.state(Conversation.replay(talk, stream)) == before


@some
@given(streams())
def test_parents_are_entries_and_older_than_their_children(stream):
    talk = replayed(stream)

    assert talk.parents.keys() == talk.entries.keys()
    assert all(
        parent is None or (parent in talk.entries and parent < v)
        for v, parent in talk.parents.items()
    )
    assert talk.leaf is None or talk.leaf in talk.entries


@some
@given(streams())
def test_every_path_has_a_transcript_that_names_each_of_its_messages_blocks(stream):
    talk = replayed(stream)

    for leaf in [None, *talk.entries]:
        shown = {item.version for item in transcript(talk, leaf) if item.kind != "gap"}
        expected = {
            entry.originator_version
            for entry in talk.path(leaf)
            if not isinstance(entry, MessageAppended) or entry.content.blocks
        }
        assert expected <= shown


@some
@given(streams())
def test_open_calls_can_always_be_closed_and_then_none_is_open(stream):
    talk = replayed(stream)
    before = context(talk, talk.leaf)
    talk.close_open_calls()

    assert talk.open_calls() == ()
    assert context(talk, talk.leaf) == before


@some
@given(streams(), st.data())
def test_a_log_that_lost_an_event_is_still_projected(stream, data):
    if stream:
        del stream[data.draw(st.integers(0, len(stream) - 1))]
    talk = replayed(stream)

    assert violations(context(talk, talk.leaf)) == []


# -- a conversation as it really goes on, with content that servers refuse -----------------------

HOSTILE = [
    b.image(), b.image(data="AAAA"), b.image(media_type="image/jpeg"), b.text("so"),
    {"type": "document", "source": {"type": "text", "data": "page"}},
]  # fmt: skip
SAID = [
    b.thinking("hm"), b.redacted(), {"type": "hologram", "data": "x"}, b.text("so"),
    b.tool_use("a"), b.tool_use(""), {"type": "tool_use", "name": "bash", "input": {}},
]  # fmt: skip
TURNS = st.lists(
    st.tuples(
        st.lists(st.sampled_from(HOSTILE), max_size=3),
        st.lists(st.sampled_from(SAID), max_size=4),
        st.sampled_from(["nothing", "withhold", "learn", "nothing"]),
        st.lists(KINDS, max_size=3),
        st.integers(-1, 2000),
    ),
    min_size=1,
    max_size=6,
)


@many
@given(TURNS)
def test_requests_extend_each_other_but_where_the_log_says_that_content_was_withheld(turns):
    talk, requests, announced = b.new_conversation(), [], set()
    for seen, answer, fact, kinds, number in turns:
        talk.append_prompt("look", seen)
        if fact == "withhold":
            talk.withhold(sorted(talk.entries)[-3:], kinds, reason="no")
            announced.add(len(requests))
        if fact == "learn":
            talk.learn_limits(b.MODEL, context_window=number, max_tokens=number // 2)
        requests.append((talk.version, context(talk, talk.leaf)))
        talk.append_answer([*answer, b.text("yes")], stop_reason="tool_use")
        for call in talk.open_calls():
            talk.append_tool_result(call.id, [b.text("out"), *seen])
        if any(block["type"] == "tool_use" for block in answer):
            requests.append((talk.version, context(talk, talk.leaf)))

    stream = list(talk.collect_events())
    for version, request in requests:
        assert violations(request) == []
        past = Conversation.replay(None, stream[:version])
        assert repr(context(past, past.leaf)) == repr(request)
    for place in range(1, len(requests)):
        if place not in announced:
            assert prefix_violations(requests[place - 1][1], requests[place][1]) == []
