"""A snapshot and what came after it are the same as all of it: snapshots change nothing but speed."""

import pytest
from eventsourcing.persistence import JSONTranscoder
from hypothesis import given, settings
from hypothesis import strategies as st

from domain import history
from domain.conversation import Conversation
from domain.errors import HistoryLostError
from domain.events import LeafMoved, MessageAppended, Renamed, Unrecognised
from domain.projections.context import context
from domain.projections.transcript import transcript
from domain.snapshot import ConversationSnapshot
from infrastructure.mapper import SnapshotMapper
from tests import builders as b
from tests.levels import examples
from tests.strategies import leaf_of, streams

mapper = SnapshotMapper(JSONTranscoder())


class Log:
    """Events that can be fetched by version, and which of them were."""

    def __init__(self, stream):
        self.stream, self.fetched = list(stream), []

    def __call__(self, first, last):
        self.fetched.append((first, last))
        return [e for e in self.stream if first <= e.originator_version <= last]


def recorded(snapshot):
    """The snapshot as it comes back from where it was kept."""
    return mapper.to_domain_event(mapper.to_stored_event(snapshot))


def rising(stream):
    """What a log makes of *stream*: versions rise."""
    found = []
    for event in stream:
        if not found or event.originator_version > found[-1].originator_version:
            found.append(event)
    return found


def reopened(stream, cut):
    """The conversation from a snapshot after *cut* events, or None if it has none."""
    snapshot = Conversation.replay(None, stream[:cut]).snapshot()
    if snapshot is None:
        return None
    return Conversation.replay(None, [recorded(snapshot), *stream[cut:]], load=Log(stream))


@settings(max_examples=examples(100))
@given(streams(), st.data(), st.integers(1, 5))
def test_a_snapshot_and_the_rest_are_the_whole(stream, data, block):
    stream = rising(stream)
    cut = data.draw(st.integers(1, len(stream))) if stream else 0
    whole = Conversation.replay(None, stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "_FIRST_BLOCK", block)
        if whole is None or (talk := reopened(stream, cut)) is None:
            return
        assert context(talk, talk.leaf) == context(whole, whole.leaf)
        assert talk.message_count() == len(whole.messages())
        leaf = leaf_of(data.draw, whole)
        assert context(talk, leaf) == context(whole, leaf)
        assert transcript(talk, leaf) == transcript(whole, leaf)
        assert b.state(talk) == b.state(whole)


def line_of(prompts):
    """A conversation of one line, and its events."""
    talk = b.new_conversation()
    for number in range(prompts):
        talk.append_prompt(f"Question {number}")
        talk.append_answer([b.text(f"Answer {number}")], stop_reason="end_turn")
        talk.end_turn("done")
    return talk, list(talk.collect_events())


def test_nothing_of_the_past_is_fetched_but_what_is_looked_at():
    talk, stream = line_of(1_000)
    talk.compact("What happened.", first_kept=talk.leaf, tokens_before=0, reason="manual")
    stream += talk.collect_events()
    log = Log(stream)

    again = Conversation.replay(None, [recorded(talk.snapshot())], load=log)
    again.append_prompt("And now?")

    assert (
        context(again, again.leaf)["messages"]
        == context(whole_of(again, stream), again.leaf)["messages"]
    )
    assert again.message_count() == 2_001
    assert again.open_calls() == ()
    assert log.fetched == [(talk.version - 511, talk.version)]


def whole_of(talk, stream):
    return Conversation.replay(None, [*stream, *talk.pending_events])


def test_a_damaged_log_has_no_snapshot():
    _, stream = line_of(3)

    assert Conversation.replay(None, b.lost(stream, 5)).snapshot() is None
    unread = Unrecognised(
        originator_id=b.ID,
        originator_version=len(stream) + 1,
        timestamp=b.NOW,
        topic="New",
        state=b"{}",
        reason="unknown",
    )
    assert Conversation.replay(None, [*stream, unread]).snapshot() is None


def test_what_is_not_recorded_is_in_no_snapshot():
    talk, _ = line_of(1)
    talk.rename("Pending")

    assert talk.snapshot() is None


@pytest.mark.parametrize("hurt", ["lost", "unread", "no entry"])
def test_a_past_that_is_not_what_it_was_makes_the_snapshot_worthless(hurt):
    talk, stream = line_of(400)
    snapshot = recorded(talk.snapshot())
    at = 300
    match hurt:
        case "lost":
            stream = b.lost(stream, at)
        case "unread":
            stream[at] = Unrecognised(
                originator_id=b.ID,
                originator_version=at + 1,
                timestamp=b.NOW,
                topic="New",
                state=b"{}",
                reason="unknown",
            )
        case "no entry":
            place = next(i for i in range(at, 0, -1) if isinstance(stream[i], MessageAppended))
            stream[place] = renamed(place + 1)
    reopened = Conversation.replay(None, [snapshot], load=Log(stream))
    reopened.append_prompt("One more")

    whole = whole_of(reopened, stream)
    if (
        hurt == "facts"
    ):  # a fact that was changed in place, and nothing else, is seen by nobody here
        assert reopened.name is None
        return
    assert context(reopened, reopened.leaf) == context(whole, whole.leaf)
    assert b.state(reopened) == b.state(whole)
    assert len(reopened.pending_events) == 1


def renamed(version):
    return Renamed(originator_id=b.ID, originator_version=version, timestamp=b.NOW, name="Edited")


def test_a_leaf_that_is_no_entry_is_found_out_at_once():
    talk, stream = line_of(5)
    snapshot = recorded(talk.snapshot())
    moved = LeafMoved(
        originator_id=b.ID, originator_version=talk.version + 1, timestamp=b.NOW, target=1
    )
    stream.append(moved)

    again = Conversation.replay(None, [snapshot, moved], load=Log(stream))

    assert b.state(again) == b.state(Conversation.replay(None, stream))


def test_a_log_that_is_gone_is_said_to_be():
    talk, _ = line_of(2)
    talk.collect_events()

    with pytest.raises(HistoryLostError):
        Conversation.replay(None, [recorded(talk.snapshot())], load=Log([]))


def test_a_snapshot_of_another_fold_is_none():
    talk, _ = line_of(1)
    stored = mapper.to_stored_event(talk.snapshot())
    other = type(stored)(
        stored.originator_id, stored.originator_version, "ConversationSnapshot/0", stored.state
    )

    assert isinstance(mapper.to_domain_event(stored), ConversationSnapshot)
    assert isinstance(mapper.to_domain_event(other), Unrecognised)


@pytest.mark.parametrize("block", range(1, 26))
def test_what_stands_between_entries_is_the_same_wherever_a_block_begins(block, monkeypatch):
    monkeypatch.setattr(history, "_FIRST_BLOCK", block)
    talk = b.new_conversation()
    for number in range(3):
        talk.append_prompt(f"Question {number}")
        talk.append_answer([b.tool_use("a"), b.tool_use("b")], stop_reason="tool_use")
        first = talk.leaf
        talk.start_tool("a")
        talk.append_tool_result("a", "Result")
        talk.start_tool("b")
        talk.end_turn("interrupted")
        talk.move_leaf(first)
        talk.end_turn("failed")
    stream = list(talk.collect_events())

    again = Conversation.replay(None, [recorded(talk.snapshot())], load=Log(stream))

    assert again.outcome_of("b", asked_at=first) == talk.outcome_of("b", asked_at=first)
    assert b.state(again) == b.state(Conversation.replay(None, stream))


def test_what_the_newest_events_take_for_an_entry_is_looked_up_before_a_snapshot_says_so():
    """The leaf was moved to a `ToolStarted`: replayed whole it was not orderly, reopened it was."""
    stream = [
        b.tool_started("t1", version=1),
        b.moved(1, version=2),
        b.user("hello", parent=None, version=3),
    ]
    whole = Conversation.replay(None, stream)
    again = reopened(stream, 1)

    assert (whole.is_orderly, whole.snapshot()) == (False, None)
    assert (again.is_orderly, again.snapshot()) == (False, None)
    assert b.state(again) == b.state(whole)


@settings(max_examples=examples(100))
@given(streams(), st.data(), st.integers(1, 5))
def test_a_reopened_conversation_takes_a_snapshot_if_and_only_if_the_whole_one_does(
    stream, data, block
):
    stream = rising(stream)
    cut = data.draw(st.integers(1, len(stream))) if stream else 0
    whole = Conversation.replay(None, stream)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(history, "_FIRST_BLOCK", block)
        if whole is not None and (talk := reopened(stream, cut)) is not None:
            assert talk.snapshot() == whole.snapshot()
