"""The way through a log that is as written, and the one through any log, tell the same events."""

import msgspec
import pytest
from eventsourcing.cipher import AESCipher
from hypothesis import event, given, settings
from hypothesis import strategies as st

import domain.history
from app.application import Conversations
from domain.conversation import Conversation
from domain.events import TOPICS, Unrecognised
from domain.projections.context import request_of
from infrastructure.errors import NewerFormatError
from infrastructure.jsonl import one_pass
from infrastructure.jsonl.line import encode
from infrastructure.jsonl.one_pass import NotAsWrittenError
from infrastructure.mapper import LOCKED
from tests import builders as b
from tests.faults.damage import corrupted, histories, history_of, hospital
from tests.levels import examples
from tests.strategies import json_objects, json_values

MANY = settings(max_examples=examples(150))
BOUNDS = st.none() | st.integers(0, 40)
PIECES = st.sampled_from([150, 600, 3_000, 1 << 16])


def pieces_of(monkeypatch, size):
    """Read so many bytes at once."""
    monkeypatch.setattr(one_pass, "_CHUNK", size)


def told_both_ways(conversations, conversation_id, *, gt=None, lte=None):
    """Return the events as they are told, and as the reader of any log tells them."""
    lines = conversations.recorder.select_lines(conversation_id, gt=gt, lte=lte)
    expected = list(conversations.events.of_lines(conversation_id, lines))
    return list(conversations.events.get(conversation_id, gt=gt, lte=lte)), expected


def is_one_pass(conversations, conversation_id):
    """Whether all of the log can be read in one pass."""
    decoder = conversations.events.decoder
    try:
        for _ in conversations.recorder.read_once(conversation_id, decoder, gt=None, lte=None):
            pass
    except NotAsWrittenError:
        return False
    return True


@MANY
@given(histories, BOUNDS, BOUNDS, PIECES)
def test_a_log_as_written_is_read_in_one_pass(history, gt, lte, size):
    with hospital(history, history.data) as conversations, pytest.MonkeyPatch.context() as patch:
        pieces_of(patch, size)
        told, expected = told_both_ways(conversations, history.id, gt=gt, lte=lte)

        assert told == expected
        cut_short = b',"base":' in history.data  # a fork, from the middle of a save
        assert is_one_pass(conversations, history.id) or cut_short


@MANY
@given(histories, st.data(), BOUNDS, BOUNDS, PIECES)
def test_whatever_happened_to_a_log_both_ways_tell_the_same(history, data, gt, lte, size):
    hurt = data.draw(corrupted(history))
    with hospital(history, hurt) as conversations, pytest.MonkeyPatch.context() as patch:
        pieces_of(patch, size)
        try:
            told, expected = told_both_ways(conversations, history.id, gt=gt, lte=lte)
        except NewerFormatError:
            return

        assert told == expected
        event(f"in one pass: {is_one_pass(conversations, history.id)}")


WHOLE = history_of(["answer", "call", "prompt", "answer"])
HEAD, *LINES = WHOLE.data.splitlines(keepends=True)
IN_BATCH = [place for place, line in enumerate(LINES) if b',"batch":[2,' in line]


def without(*places):
    return [line for place, line in enumerate(LINES) if place not in places]


HURT = {
    "a letter is another": [line.replace(b"hello", b"hallo") for line in LINES],
    "blanks are put in": [line.replace(b'"role":"', b'"role": "') for line in LINES],
    "a line is lost": without(4),
    "a line stands twice": [*LINES[:5], LINES[4], *LINES[5:]],
    "two lines stand the other way round": [*LINES[:4], LINES[5], LINES[4], *LINES[6:]],
    "the end of a save is lost, and what came after": LINES[: IN_BATCH[-1]],
    "the end of a save says that it is its beginning": [
        *LINES[: IN_BATCH[-1]], LINES[IN_BATCH[-1]].replace(b'"batch":[2,', b'"batch":[1,'),
    ],
    "the beginning of a save says that there is more of it": [
        *LINES[: IN_BATCH[-1] - 1],
        LINES[IN_BATCH[-1] - 1],
        LINES[IN_BATCH[-1]].replace(b'"batch":[2,3', b'"batch":[2,2'),
    ],
    "a line of no save stands in one": [
        *LINES[: IN_BATCH[-1] - 1],
        LINES[IN_BATCH[-1] - 1].replace(b'"batch":[1,3', b'"batch":[1,2'),
        LINES[IN_BATCH[-1]].replace(b',"batch":[2,3]', b""),
        LINES[IN_BATCH[-1] + 1].replace(b'"batch":[3,3', b'"batch":[2,2'),
    ],
    "the end of a save does not say what it is of": [
        *LINES[: IN_BATCH[-1]], LINES[IN_BATCH[-1]].partition(b',"batch"')[0] + b"}\n",
    ],
    "a part of a save is lost": without(IN_BATCH[0]),
    "two lines are one, and one is blank": [*LINES[:4], LINES[4][:-1], LINES[5], b"\n", *LINES[6:]],
    "a checksum is left out": [*LINES[:4], LINES[4][:-19] + b"}\n", *LINES[5:]],
    "the end is torn": [*LINES[:-1], LINES[-1][:-9]],
    "the last newline is lost": [*LINES[:-1], LINES[-1][:-1]],
    "a save stands between the parts of another": [
        *LINES[: IN_BATCH[0]], *LINES[-1:], *LINES[IN_BATCH[0] :],
    ],
}  # fmt: skip


@pytest.mark.parametrize("lines", HURT.values(), ids=HURT)
@pytest.mark.parametrize("size", [300, 1 << 16])
def test_what_is_hit_both_ways_tell_the_same(lines, size, monkeypatch):
    pieces_of(monkeypatch, size)
    with hospital(WHOLE, HEAD + b"".join(lines)) as conversations:
        for gt, lte in ((None, None), (3, None), (None, 6), (5, 9)):
            told, expected = told_both_ways(conversations, WHOLE.id, gt=gt, lte=lte)

            assert told == expected


IN_ORDER = {
    "a letter is another", "blanks are put in", "a checksum is left out", "the last newline is lost",
}  # fmt: skip
"""What `Reader` can tell of a piece without the others."""


@pytest.mark.parametrize("name", [name for name in HURT if name not in IN_ORDER])
@pytest.mark.parametrize("size", [300, 1 << 16])
def test_one_pass_ends_where_a_look_at_all_of_the_log_has_to_tell(name, size, monkeypatch):
    pieces_of(monkeypatch, size)
    with hospital(WHOLE, HEAD + b"".join(HURT[name])) as conversations:
        assert not is_one_pass(conversations, WHOLE.id)


@pytest.mark.parametrize("version", [2, 9])
def test_an_event_of_a_newer_version_is_not_taken_for_one_of_this(version):
    state = b'{"timestamp":"2026-01-02T03:04:05Z","name":"x","class_version":%d}' % version
    newer = encode(len(LINES) + 1, "Renamed", state)
    with hospital(WHOLE, WHOLE.data + newer) as conversations:
        told, expected = told_both_ways(conversations, WHOLE.id)

    assert told == expected
    assert told[-1].is_newer


@pytest.mark.parametrize("first", [0, 1, 7])
def test_a_log_may_begin_with_any_version(first):
    state = b'{"timestamp":"2026-01-02T03:04:05Z","name":"x"}'
    lines = [encode(version, "Renamed", state) for version in range(first, first + 3)]
    with hospital(WHOLE, HEAD + b"".join(lines)) as conversations:
        for bounds in ({}, {"gt": 0}, {"gt": first}, {"lte": first + 1}):
            told, expected = told_both_ways(conversations, WHOLE.id, **bounds)

            assert told == expected
        assert is_one_pass(conversations, WHOLE.id)


def test_what_was_not_sealed_is_locked_where_logs_are_sealed(tmp_path):
    (tmp_path / f"{WHOLE.id}.jsonl").write_bytes(WHOLE.data)
    environment = {
        "LEFTFOLD_STORE": str(tmp_path),
        "CIPHER_TOPIC": "eventsourcing.cipher:AESCipher",
        "CIPHER_KEY": AESCipher.create_key(16),
    }
    with Conversations(environment) as conversations:
        events = list(conversations.events_of(WHOLE.id))

    assert {each.reason for each in events} == {LOCKED}


def first_version(conversations, conversation_id):
    return next(conversations.events_of(conversation_id, limit=1)).originator_version


@MANY
@given(histories, st.data(), PIECES, st.integers(1, 40), st.integers(1, 9))
def test_a_replay_without_the_messages_is_one_with_them(history, data, size, cut, block):
    """From the whole log, and from a snapshot with the past fetched in blocks."""
    hurt = data.draw(st.just(history.data) | corrupted(history))
    with hospital(history, hurt) as conversations, pytest.MonkeyPatch.context() as patch:
        pieces_of(patch, size)
        patch.setattr(domain.history, "_FIRST_BLOCK", block)
        try:
            whole = Conversation.replay(None, conversations.events_of(history.id))
        except NewerFormatError:
            return
        if whole is None:
            return
        if first_version(conversations, history.id) <= cut:
            conversations.keep_snapshot(conversations.get(history.id, version=cut))
        talk = conversations.get(history.id)

        assert request_of(talk, talk.leaf) == request_of(whole, whole.leaf)
        assert b.state(talk) == b.state(whole)
        event(f"from a snapshot: {talk.restored_from > 0}")


def odd_states():
    """States of every topic that another program may have written, and vouched for."""
    known = st.fixed_dictionaries(
        {"timestamp": st.just("2026-01-02T03:04:05Z"), "parent": st.none() | st.integers(0, 3)},
        optional={
            "message": json_values,
            "class_version": st.integers(0, 3),
            "usage": json_values,
            "seen": json_values,
            "duration": json_values,
            "originator_version": st.integers(0, 9),
            "target": st.none() | st.integers(0, 3),
            "cwd": st.just("/shop"),
            "label": st.none() | st.just("x"),
        },
    )
    return known.map(msgspec.json.encode) | json_objects.map(msgspec.json.encode)


topics = st.sampled_from(
    [*TOPICS, "MessageAppended", "MessageAppended", "FromTheFuture", "T\u00e9"]
)


@MANY
@given(histories, st.lists(st.tuples(topics, odd_states()), min_size=1, max_size=4))
def test_what_another_program_vouches_for_both_ways_tell_the_same(history, states):
    first = len(history.lines) + 1
    lines = [encode(version, *state) for version, state in enumerate(states, first)]
    with hospital(history, history.data + b"".join(lines)) as conversations:
        told, expected = told_both_ways(conversations, history.id)

        assert told == expected
        event(f"unreadable: {any(isinstance(each, Unrecognised) for each in told)}")
