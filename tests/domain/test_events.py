"""The events: a closed registry, and bytes that never change."""

import msgspec
import pytest
from eventsourcing.persistence import StoredEvent

from domain import events
from domain.upcasts import UPCASTS
from tests import builders as b
from tests.golden.examples import BARE, EXAMPLES, FULL, LATER, golden, mapper

TABLE = {
    "Started", "Forked", "MessageAppended", "Compacted", "BranchSummarized", "NoteAppended",
    "ModelChanged", "ThinkingLevelChanged", "InstructionsChanged", "ToolStarted", "PromptQueued",
    "PromptWithdrawn", "TurnEnded", "LeafMoved", "LabelChanged", "Renamed", "Archived",
    "ApprovalDecided", "LimitsLearned", "ContentWithheld",
}  # fmt: skip
"""The table of the design, section 3, and what issue 6 adds to it: decisions are events."""

ENTRIES = {"MessageAppended", "Compacted", "BranchSummarized", "NoteAppended"}
PAIRS = list(zip(EXAMPLES, golden(), strict=True))


def name(value):
    return getattr(value, "TOPIC", "")


def test_the_registry_has_exactly_the_events_of_the_design():
    assert set(events.TOPICS) == TABLE


def test_every_event_class_is_registered_under_its_own_topic_and_only_there():
    classes = {
        cls
        for cls in vars(events).values()
        if isinstance(cls, type) and issubclass(cls, events.Event) and "TOPIC" in vars(cls)
    }

    assert classes - {events.Unrecognised} == set(events.TOPICS.values())
    assert all(topic == cls.TOPIC for topic, cls in events.TOPICS.items())
    assert len({cls.TOPIC for cls in classes}) == len(classes)


def test_the_registry_cannot_be_changed():
    with pytest.raises(TypeError):
        events.TOPICS["New"] = events.Started


def test_entries_are_the_entries_of_the_design():
    assert {t for t, cls in events.TOPICS.items() if issubclass(cls, events.Entry)} == ENTRIES


@pytest.mark.parametrize("event", EXAMPLES, ids=name)
def test_events_are_frozen(event):
    with pytest.raises(AttributeError):
        event.timestamp = None


def test_every_event_has_a_full_and_a_bare_example():
    assert {event.TOPIC for event in FULL + LATER} == TABLE
    assert {event.TOPIC for event in BARE + LATER} == TABLE


@pytest.mark.parametrize(("event", "line"), PAIRS, ids=name)
def test_an_event_is_written_as_it_always_was(event, line):
    stored = mapper.to_stored_event(event)

    assert (stored.topic, stored.originator_version) == (line["topic"], line["version"])
    assert stored.state.decode() == line["state"]


@pytest.mark.parametrize(("event", "line"), PAIRS, ids=name)
def test_what_was_written_is_read_as_that_event(event, line):
    stored = StoredEvent(b.ID, line["version"], line["topic"], line["state"].encode())

    assert mapper.to_domain_event(stored) == event


@pytest.mark.parametrize("event", EXAMPLES, ids=name)
def test_every_field_that_may_be_missing_has_its_default_when_it_is(event):  # M1
    state = msgspec.json.decode(mapper.to_stored_event(event).state)
    for field in msgspec.structs.fields(event):
        if field.required or field.encode_name not in state:
            continue
        older = {key: value for key, value in state.items() if key != field.encode_name}
        stored = StoredEvent(b.ID, 7, event.TOPIC, msgspec.json.encode(older))

        read = mapper.to_domain_event(stored)

        assert type(read) is type(event)
        assert not getattr(read, field.name)


@pytest.mark.parametrize("event", FULL, ids=name)
def test_fields_of_a_newer_version_are_passed_over(event):
    stored = mapper.to_stored_event(event)
    newer = stored.state[:-1] + b',"newer":{"a":[1]}}'

    assert mapper.to_domain_event(msgspec_replace(stored, newer)) == event


def msgspec_replace(stored, state):
    return StoredEvent(stored.originator_id, stored.originator_version, stored.topic, state)


def test_a_body_is_decoded_anew_at_each_look():
    message = b.assistant(b.tool_use("a", x=[1]))
    message.content.blocks[0]["input"]["x"].append(2)
    instructions = b.instructions()
    instructions.tool_definitions[0]["name"] = "changed"

    assert message.content.blocks == [b.tool_use("a", x=[1])]
    assert instructions.tool_definitions == [b.BASH]


def test_upcasts_lead_from_every_old_version_to_the_newest():
    steps = {(t, v) for t, cls in events.TOPICS.items() for v in range(1, cls.class_version)}

    assert set(UPCASTS) == steps
