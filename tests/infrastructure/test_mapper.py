"""Domain events to stored events and back."""

import json
import sys
from datetime import UTC, datetime

import msgspec
import pytest
from eventsourcing.cipher import AESCipher
from eventsourcing.compressor import ZlibCompressor
from eventsourcing.persistence import JSONTranscoder, StoredEvent
from eventsourcing.utils import Environment
from hypothesis import given, settings
from hypothesis import strategies as st

from domain import events
from domain.conversation import Conversation
from domain.events import Event, MessageAppended, Unrecognised
from infrastructure.mapper import LOCKED, ConversationMapper
from tests import builders as b
from tests.golden.examples import EXAMPLES
from tests.levels import examples
from tests.strategies import any_event, json_values

AT = '"timestamp":"2026-01-02T03:04:05Z"'
CIPHER = AESCipher(Environment(env={"CIPHER_KEY": AESCipher.create_key(16)}))


def mapper(**more):
    return ConversationMapper(JSONTranscoder(), **more)


plain = mapper()
wrapped = mapper(cipher=CIPHER, compressor=ZlibCompressor())


def read(topic, state, using=plain):
    state = state.encode() if isinstance(state, str) else state
    return using.to_domain_event(StoredEvent(b.ID, 3, topic, state))


def message(body):
    return read(
        "MessageAppended",
        b'{"timestamp":"2026-01-02T03:04:05Z","parent":null,"message":' + body + b"}",
    )


# -- round trips ---------------------------------------------------------------------------------


@settings(max_examples=examples(200))
@given(any_event(parent=st.none() | st.integers(1, 9)), st.integers(1, 10**9))
def test_every_event_comes_back_as_it_was(event, version):
    event = msgspec.structs.replace(event, originator_version=version)
    stored = plain.to_stored_event(event)
    back = plain.to_domain_event(stored)

    assert (stored.originator_id, stored.originator_version) == (b.ID, version)
    if isinstance(event, Unrecognised):
        assert plain.to_stored_event(back) == stored
        return
    try:
        msgspec.json.decode(stored.state)
    except msgspec.MsgspecError:  # an old log's lone surrogate is made valid when it is read
        assert type(back) is type(event)
        return
    assert back == event
    assert plain.to_stored_event(back) == stored


@pytest.mark.parametrize("event", EXAMPLES, ids=lambda event: event.TOPIC)
def test_a_state_that_is_encrypted_and_compressed_comes_back(event):
    stored = wrapped.to_stored_event(event)

    assert event.TOPIC.encode() not in stored.state
    assert b"timestamp" not in stored.state
    assert wrapped.to_domain_event(stored) == event


@pytest.mark.parametrize("using", [plain, wrapped], ids=["plain", "wrapped"])
def test_what_is_not_recognised_is_kept_with_its_time_and_its_bytes(using):
    state = b'{"timestamp":"2026-01-02T03:04:05Z","new":{"a": [1,  2]}}'
    stored = using.to_stored_event(b.unrecognised("FromTheFuture", state, version=3))

    event = using.to_domain_event(stored)

    assert isinstance(event, Unrecognised)
    assert (event.topic, event.state, event.timestamp) == ("FromTheFuture", state, b.NOW)
    assert using.to_domain_event(using.to_stored_event(event)) == event
    if using is wrapped:
        assert state not in stored.state


OTHER = AESCipher(Environment(env={"CIPHER_KEY": AESCipher.create_key(16)}))


@pytest.mark.parametrize(
    ("written", "using"),
    [
        (wrapped, mapper(cipher=OTHER, compressor=ZlibCompressor())),
        (wrapped, mapper(compressor=ZlibCompressor())),
        (wrapped, mapper(cipher=CIPHER)),
        (mapper(compressor=ZlibCompressor()), plain),
    ],
    ids=["another key", "no key", "no compressor beside the key", "no compressor"],
)
def test_what_these_settings_cannot_open_is_kept_and_says_so(written, using):
    stored = written.to_stored_event(b.user("hi", version=1, parent=None))
    event = using.to_domain_event(stored)

    assert event.reason == LOCKED
    assert event.state == stored.state or using.cipher is CIPHER
    assert using.to_domain_event(using.to_stored_event(event)) == event


def test_an_originator_id_may_be_text():
    stored = StoredEvent(
        str(b.ID), 3, "Renamed", b'{"timestamp":"2026-01-02T03:04:05Z","name":"x"}'
    )

    assert plain.to_domain_event(stored).originator_id == b.ID


def test_who_and_which_are_not_written_twice():
    assert b"originator" not in plain.to_stored_event(b.renamed("x", version=3)).state


# -- a log is data -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "topic",
    [
        "os:system",
        "antigravity:x",
        "trap:Boom",
        "trap",
        "domain.events:Started",
        "Unrecognised",
        "Event",
        "Entry",
        "",
    ],
)
def test_a_topic_is_never_imported(topic, tmp_path, monkeypatch):  # Z2, M3
    (tmp_path / "trap.py").write_text("raise SystemExit('imported')")
    monkeypatch.chdir(tmp_path)
    monkeypatch.syspath_prepend(tmp_path)
    before = set(sys.modules)

    event = read(topic, "{" + AT + ',"cwd":"/"}')

    assert isinstance(event, Unrecognised)
    assert event.reason == f"unknown topic {topic!r}"
    assert set(sys.modules) == before


@pytest.mark.parametrize(
    "state",
    [
        b"", b"\0\0", b"{", b"[]", b"null", b"3", b"{}", b'{"timestamp":"yesterday","cwd":"/"}',
        b'{"timestamp":"2026-01-02T03:04:05Z"}', b'{"timestamp":"2026-01-02T03:04:05Z","cwd":3}',
        b"[" * 100_000,
    ],
    ids=lambda state: state[:20].decode(),
)  # fmt: skip
def test_a_state_of_another_shape_is_kept_and_skipped(state):
    event = read("Started", state)

    assert isinstance(event, Unrecognised)
    assert (event.topic, event.state, event.originator_version) == ("Started", state, 3)
    assert Conversation.replay(None, [event]).unrecognised == [event]
    assert plain.to_stored_event(event).state == state


def test_an_event_without_a_readable_time_has_the_beginning_of_time():
    assert read("Newer", b"{").timestamp == datetime.fromtimestamp(0, UTC)


@given(st.binary(max_size=30), st.sampled_from([*events.TOPICS, "Newer"]))
def test_no_state_makes_reading_fail(state, topic):
    assert isinstance(read(topic, state), Event)


@given(st.sampled_from(EXAMPLES), st.data())
def test_no_damaged_byte_makes_reading_fail(event, data):
    state = bytearray(plain.to_stored_event(event).state)
    state[data.draw(st.integers(0, len(state) - 1))] = data.draw(st.integers(0, 255))

    found = read(event.TOPIC, bytes(state))

    assert isinstance(found, Event)
    if isinstance(found, MessageAppended):
        assert isinstance(found.content.text, str)


# -- what JSON can hold, and what it cannot ------------------------------------------------------


@given(json_values)
def test_any_json_in_a_message_comes_back(value):
    assert message(json.dumps({"role": "user", "content": [value]}).encode()).content.blocks == [
        value
    ]


@pytest.mark.parametrize(
    "value",
    [
        {"_type_": "uuid_hex", "_data_": "x"}, {"_type_": "a", "_data_": {"_type_": "b", "_data_": 1}},  # Z2
        10**20, -(10**20), 1e300, 5e-324, "a\u2028b\x85c\x0cd\x1ce\0", {"": {"\0": 1}}, [[], {}], None,
    ],
    ids=repr,
)  # fmt: skip
def test_odd_values_come_back_as_they_were(value):
    talk = b.new_conversation()
    talk.append_answer([b.tool_use("a", x=value)], stop_reason="tool_use")

    back = plain.to_domain_event(plain.to_stored_event(talk.pending_events[-1]))

    assert back.content.blocks == [b.tool_use("a", x=value)]


def test_nesting_of_300_levels_comes_back():  # Z6
    deep = json.loads("[" * 300 + "]" * 300)
    talk = b.new_conversation()
    talk.append_answer([b.tool_use("a", x=deep)], stop_reason="tool_use")

    back = plain.to_domain_event(plain.to_stored_event(talk.pending_events[-1]))

    assert back.content.tool_uses[0]["input"] == {"x": deep}


def test_values_that_json_does_not_have_are_recorded_as_null():  # Z5, Z7
    talk = b.new_conversation()
    talk.append_answer([b.tool_use("a", x=[float("nan"), float("inf")])], stop_reason="tool_use")

    assert talk.messages()[-1].content.blocks == [b.tool_use("a", x=[None, None])]


@pytest.mark.parametrize(
    ("written", "value"),
    [
        (rb'"x\ud83d"', "x\ufffd"),
        (rb'"\udc00"', "\ufffd"),
        (b"NaN", None),
        (b"1e999", None),
        (b'"\xff"', "\ufffd"),
    ],
)
def test_values_that_an_old_writer_let_through_are_read_as_valid_ones(written, value):  # E3, Z4
    event = message(
        b'{"role":"user","content":[{"type":"text","text":"y"},{"x":' + written + b"}]}"
    )

    assert isinstance(event, MessageAppended)
    assert event.content.blocks == [b.text("y"), {"x": value}]
    assert plain.to_domain_event(plain.to_stored_event(event)) == event


@pytest.mark.parametrize(
    "event", [b.renamed("\ud83d"), b.queued("\udcff")], ids=lambda event: event.TOPIC
)
def test_lone_surrogates_outside_of_messages_are_read_as_replacement_characters(event):
    field = "name" if isinstance(event, events.Renamed) else "text"
    state = "{" + AT + f',"{field}":{json.dumps(getattr(event, field))}' + "}"

    assert getattr(read(event.TOPIC, state), field) == "\ufffd"


# -- upcasting -----------------------------------------------------------------------------------


class Greeted(Event, frozen=True, kw_only=True):
    """A third shape: ``{"who": {"name": …}, "loud": …}``."""

    TOPIC = "Greeted"
    class_version = 3
    who: dict[str, str]
    loud: bool


def _named(state):
    state["who"] = {"name": state.pop("name")}
    return state


UPCASTS = {("Greeted", 1): _named, ("Greeted", 2): lambda state: state | {"loud": False}}
upcasting = mapper(topics={"Greeted": Greeted}, upcasts=UPCASTS)


@pytest.mark.parametrize(
    "state",
    ['"name":"x"', '"name":"x","class_version":1', '"who":{"name":"x"},"class_version":2',
     '"who":{"name":"x"},"loud":false,"class_version":3'],
)  # fmt: skip
def test_an_old_shape_is_read_as_the_newest(state):
    event = read("Greeted", "{" + AT + "," + state + "}", upcasting)

    assert (event.who, event.loud) == ({"name": "x"}, False)


def test_the_newest_shape_says_its_number_and_comes_back():
    event = Greeted(
        originator_id=b.ID, originator_version=3, timestamp=b.NOW, who={"name": "x"}, loud=True
    )
    stored = upcasting.to_stored_event(event)

    assert json.loads(stored.state)["class_version"] == 3
    assert upcasting.to_domain_event(stored) == event


@pytest.mark.parametrize(
    "state",
    ["{}", "[]", "3", "{", '{"class_version":"x"}', '{"class_version":null}', '{"name":[]}'],
)
def test_an_old_state_that_cannot_be_upcast_is_kept_and_skipped(state):
    assert isinstance(read("Greeted", state, upcasting), Unrecognised)


def test_an_upcast_that_is_missing_is_no_silent_success():  # M4
    event = read(
        "Greeted", "{" + AT + ',"name":"x"}', mapper(topics={"Greeted": Greeted}, upcasts={})
    )

    assert isinstance(event, Unrecognised)
    assert event.reason.startswith("not a Greeted")


@pytest.mark.parametrize("name", ['"x"', '"\\ud83d"', "NaN", "1e999"])
def test_a_newer_version_is_one_whatever_else_its_state_holds(name):
    event = read("Renamed", "{" + AT + f',"name":{name},"class_version":2' + "}")

    assert isinstance(event, Unrecognised)
    assert event.is_newer
