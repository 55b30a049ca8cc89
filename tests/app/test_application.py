"""The use cases over conversations, over every persistence module."""

import re
from copy import copy
from uuid import UUID

import msgspec
import pytest
from eventsourcing.cipher import AESCipher
from eventsourcing.persistence import OperationalError

from app.application import Conversations
from app.errors import (
    ChangedElsewhereError,
    LockedConversationError,
    NoSuchConversationError,
    NotRecordedError,
)
from domain.conversation import Conversation
from domain.errors import UnknownEntryError
from domain.events import Forked, MessageAppended, Renamed, Started
from domain.projections.catalogue import row
from infrastructure.mapper import LOCKED
from tests.app.programs import events as events_in
from tests.builders import state

NOBODY = UUID("01920000-0000-7000-8000-0000000000ff")


def begin(conversation_id, timestamp):
    return Conversation.start(conversation_id, timestamp=timestamp, cwd="/work")


def started(conversations, *prompts):
    """A conversation at hand with some prompts and answers."""
    at_hand = conversations.start(begin)
    for prompt in prompts:
        say(at_hand, prompt)
    return at_hand


def say(at_hand, prompt):
    at_hand.record(lambda talk: talk.append_prompt(prompt))
    answer = [{"type": "text", "text": f"You said {prompt}."}]
    at_hand.record(lambda talk: talk.append_answer(answer, stop_reason="end_turn"))


def bare(events):
    """*events* without whose they are."""
    return [msgspec.structs.replace(event, originator_id=NOBODY) for event in events]


def test_ids_come_newest_first(conversations):
    ids = [started(conversations, "hello").id for _ in range(3)]

    assert list(conversations.ids()) == ids[::-1]


def test_events_come_in_order_and_by_range(conversations):
    at_hand = started(conversations, "one", "two")

    events = list(conversations.events_of(at_hand.id))
    assert [event.originator_version for event in events] == [1, 2, 3, 4, 5]
    assert [type(event) for event in events] == [Started, *[MessageAppended] * 4]
    assert list(conversations.events_of(at_hand.id, since=3, until=4)) == events[2:4]
    assert list(conversations.events_of(at_hand.id, since=2, limit=2)) == events[1:3]
    assert list(conversations.events_of(at_hand.id, since=6)) == []
    assert conversations.last_event_of(at_hand.id) == events[-1]


def test_a_conversation_that_is_not_there_has_no_events_and_cannot_be_opened(conversations):
    assert list(conversations.events_of(NOBODY)) == []
    assert conversations.last_event_of(NOBODY) is None
    for look in (conversations.get, conversations.open, conversations.fork):
        with pytest.raises(NoSuchConversationError, match=str(NOBODY)):
            look(NOBODY)


def test_a_conversation_is_rebuilt_as_it_was_at_any_version(conversations):
    at_hand = conversations.start(begin)
    states = []
    for prompt in ("one", "two", "three"):
        at_hand.record(lambda talk, prompt=prompt: talk.append_prompt(prompt))
        # A copy: the live one goes on changing.
        states.append({key: copy(part) for key, part in state(at_hand.conversation).items()})

    versions = [conversations.get(at_hand.id, version=version) for version in (2, 3, 4)]
    assert [state(talk) for talk in versions] == states
    assert state(conversations.get(at_hand.id)) == states[-1]


def test_a_fork_has_the_events_of_its_parent_and_says_so(conversations):
    parent = started(conversations, "one", "two")
    before = list(conversations.events_of(parent.id))

    child = conversations.fork(parent.id, 3)

    *copied, forked = conversations.events_of(child)
    assert bare(copied) == bare(before[:3])
    assert {event.originator_id for event in copied} == {child}
    assert isinstance(forked, Forked)
    assert (forked.source_id, forked.source_version, forked.entry) == (parent.id, 3, 3)
    assert forked.originator_version == 4
    assert conversations.get(child).leaf == 3
    assert list(conversations.events_of(parent.id)) == before


def test_a_fork_of_all_of_it_stands_where_its_parent_stands(conversations):
    parent = started(conversations, "one", "two")

    child = conversations.fork(parent.id)

    assert child != parent.id
    talk = conversations.get(child)
    assert talk.leaf == parent.conversation.leaf
    assert talk.origin.source_version == parent.conversation.version
    assert [m.content.text for m in talk.messages()] == [
        m.content.text for m in parent.conversation.messages()
    ]


def test_parent_and_fork_go_on_each_for_itself(conversations):
    parent = started(conversations, "one")
    child = conversations.open(conversations.fork(parent.id))

    say(child, "left")
    say(parent, "right")
    texts = [[m.content.text for m in each.conversation.messages()] for each in (parent, child)]
    assert texts == [
        ["one", "You said one.", "right", "You said right."],
        ["one", "You said one.", "left", "You said left."],
    ]
    assert conversations.get(conversations.fork(child.id)).origin.source_id == child.id


@pytest.mark.parametrize("entry", [1, 99, 0, -1])
def test_a_fork_needs_an_entry(conversations, entry):
    """Version 1 is there, but it is a fact: not a place to go on from."""
    parent = started(conversations, "one")

    with pytest.raises(UnknownEntryError):
        conversations.fork(parent.id, entry)
    assert list(conversations.ids()) == [parent.id]


def test_of_two_writers_the_second_is_told_and_nothing_is_lost(conversations):
    """Case F2: two objects in one process; both believe to know the end."""
    one = started(conversations, "hello")
    two = conversations.open(one.id)
    _ = two.conversation

    say(one, "first")
    with pytest.raises(ChangedElsewhereError, match="another program"):
        two.record(lambda talk: talk.append_prompt("second"))
    said = [m.content.text for m in two.conversation.messages()]
    assert said == ["hello", "You said hello.", "first", "You said first."]

    say(two, "second")
    assert [m.content.text for m in conversations.get(one.id).messages()] == [
        *said,
        "second",
        "You said second.",
    ]


def test_a_new_conversation_that_could_not_be_saved_is_offered_again(conversations, monkeypatch):
    insert = conversations.recorder.insert_events
    failures = [OperationalError("the disk is full")]

    def insert_events(stored_events, **kwargs):
        if failures:
            raise failures.pop()
        return insert(stored_events, **kwargs)

    monkeypatch.setattr(conversations.recorder, "insert_events", insert_events)
    at_hand = conversations.start(begin)

    with pytest.raises(NotRecordedError, match="full"):
        at_hand.record(lambda talk: talk.append_prompt("hello"))
    assert list(conversations.ids()) == []
    at_hand.record(lambda talk: talk.append_prompt("hello"))
    assert [event.TOPIC for event in conversations.events_of(at_hand.id)] == [
        "Started",
        "MessageAppended",
    ]


def test_a_save_that_is_tried_again_after_it_was_done_is_done_once(conversations, monkeypatch):
    """The library tries again when a connection is lost; the answer alone may have been."""
    opened = started(conversations, "hello")
    insert = conversations.recorder.insert_events

    def insert_events(stored_events, **kwargs):
        insert(stored_events, **kwargs)
        return insert(stored_events, **kwargs)

    monkeypatch.setattr(conversations.recorder, "insert_events", insert_events)
    opened.record(lambda talk: talk.append_prompt("once"))
    opened.record(lambda talk: talk.rename("also once"), anywhere=True)

    names = [event.TOPIC for event in conversations.events_of(opened.id)]
    assert names == ["Started", *["MessageAppended"] * 3, "Renamed"]


def test_a_save_tells_each_event_and_its_notification(conversations):
    talk = begin(NOBODY, conversations.clock())
    talk.rename("of two events")

    recordings = conversations.save(talk)

    noted = conversations.recorder.select_notifications(1, 10)
    assert [each.domain_event for each in recordings] == list(conversations.events_of(talk.id))
    assert [each.notification for each in recordings] == list(noted)
    assert (len(recordings), recordings[-1], recordings[:1]) == (
        2,
        list(recordings)[1],
        [*recordings][:1],
    )
    assert len(conversations.save(talk)) == 0


def test_a_refused_command_changes_nothing(conversations):
    at_hand = started(conversations, "hello")
    before = state(at_hand.conversation)

    def half(talk):
        talk.rename("half done")
        talk.append_tool_result("no such call", "x")

    with pytest.raises(Exception, match="no such call"):
        at_hand.record(half)
    assert state(at_hand.conversation) == before
    assert state(conversations.get(at_hand.id)) == before


def test_a_command_that_changes_nothing_records_nothing(conversations):
    at_hand = started(conversations, "hello")

    at_hand.record(lambda talk: talk.rename(None))

    assert conversations.last_event_of(at_hand.id).originator_version == 3


@pytest.mark.parametrize(
    "settings",
    [
        {"CIPHER_KEY": AESCipher.create_key(16)},
        {"COMPRESSOR_TOPIC": "zlib"},
        {"CIPHER_KEY": AESCipher.create_key(32), "COMPRESSOR_TOPIC": "zlib"},
    ],
    ids=["cipher", "compressor", "both"],
)
def test_with_cipher_or_compressor_the_log_holds_no_plain_text_and_all_else_is_the_same(
    home, settings
):
    environment = {"LEFTFOLD_DURABILITY": "os", **settings}
    with Conversations(environment) as conversations:
        at_hand = started(conversations, "a secret word")
        at_hand.record(lambda talk: talk.rename("hidden"))
        child = conversations.fork(at_hand.id, 2)

    log = home / "conversations" / f"{at_hand.id}.jsonl"
    lines = log.read_bytes().splitlines()
    assert len(lines) == 5
    assert all(b'"state64"' in line for line in lines[1:])
    assert b"secret" not in log.read_bytes()
    assert log.with_name(f"{child}.jsonl").read_bytes().splitlines()[1:3] == lines[1:3]
    with Conversations(environment) as conversations:
        talk = conversations.get(at_hand.id)
        assert [m.content.text for m in talk.messages()] == [
            "a secret word",
            "You said a secret word.",
        ]
        assert talk.name == "hidden"
        assert conversations.get(child).origin.source_id == at_hand.id
        assert isinstance(conversations.last_event_of(at_hand.id), Renamed)


def test_one_damaged_ciphertext_costs_one_event_and_a_wrong_key_is_told(home):
    environment = {"LEFTFOLD_DURABILITY": "os", "CIPHER_KEY": AESCipher.create_key(16)}
    with Conversations(environment) as conversations:
        at_hand = started(conversations, "a secret word")
    [log] = (home / "conversations").glob("*.jsonl")
    lines = log.read_bytes().split(b"\n")
    lines[2] = re.sub(rb',"crc":"\w+"', b"", lines[2].replace(b'64":"', b'64":"AAAA'))
    log.write_bytes(b"\n".join(lines))

    with Conversations(environment) as conversations:
        talk = conversations.get(at_hand.id)
        assert [message.content.text for message in talk.messages()] == ["You said a secret word."]
        assert [event.reason for event in talk.unrecognised] == [LOCKED]
    other = {**environment, "CIPHER_KEY": AESCipher.create_key(16)}
    with (
        Conversations(other) as conversations,
        pytest.raises(LockedConversationError, match="CIPHER_KEY"),
    ):
        conversations.get(at_hand.id)


def test_plain_logs_are_read_without_any_setting(home):
    with Conversations() as conversations:
        at_hand = started(conversations, "hello")

    [log] = (home / "conversations").glob("*.jsonl")
    assert log.stem == str(at_hand.id)
    assert [event["v"] for event in events_in(log)] == [1, 2, 3]


def test_a_glance_shows_the_newest_facts_wherever_they_stand(conversations):
    at_hand = started(conversations, *map(str, range(20)))
    at_hand.record(lambda talk: talk.rename("Old"))
    at_hand.record(lambda talk: talk.rename("New"))
    lookalike = '"v":1,"topic":"Renamed","state":{"name":"Quoted"}'
    at_hand.record(lambda talk: talk.append_prompt(lookalike))
    block = {"type": "x", "v": 1, "topic": "Renamed", "state": {"name": "Nested"}}
    at_hand.record(lambda talk: talk.append_answer([block], stop_reason="end_turn"))
    for number in range(20):
        at_hand.record(lambda talk, number=number: talk.append_prompt(str(number)))

    seen = row(conversations.summary_events(at_hand.id))

    assert (seen.name, seen.title) == ("New", "New")
    assert seen.events == at_hand.conversation.version
    assert [e.originator_version for e in conversations.summary_events(at_hand.id)][:16] == list(
        range(1, 17)
    )


def test_a_glance_at_a_short_conversation_is_all_of_it(conversations):
    at_hand = started(conversations, "one", "two")

    assert conversations.summary_events(at_hand.id) == list(conversations.events_of(at_hand.id))
    assert conversations.summary_events(NOBODY) == []
