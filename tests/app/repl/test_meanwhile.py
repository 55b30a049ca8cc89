"""What is typed while the agent works: what stands in the log is handed out once, or not at all."""

from contextlib import contextmanager

import pytest
from eventsourcing.persistence import OperationalError

from app.application import Conversations
from app.errors import NotRecordedError
from app.repl.meanwhile import Meanwhile
from tests.app.doubles import begin


class Line:
    """A line on which nothing is typed."""

    text = ""

    @contextmanager
    def reading(self, typist):
        yield

    def take(self):
        return ""


class Place:
    """Where the work goes on; it remembers what it was told."""

    def __init__(self, at_hand):
        self.at_hand, self.complaints = at_hand, []

    def show_typing(self, text, queued):
        pass

    def show_said(self, text):
        pass

    def complain(self, error):
        self.complaints.append(type(error))


@pytest.fixture
def place():
    with Conversations({"PERSISTENCE_MODULE": "eventsourcing.popo"}) as conversations:
        place = Place(conversations.start(begin()))
        place.conversations = conversations
        yield place


def full(*_args, **_kwargs):
    raise OperationalError("the disk is full")


@pytest.mark.parametrize(
    ("take", "nothing"),
    [(Meanwhile.took_back, None), (Meanwhile.take_all, [])],
    ids=["the last", "all"],
)
def test_what_cannot_be_taken_out_of_the_queue_is_not_handed_out(place, monkeypatch, take, nothing):
    """Else the agent would say it, and the person once more."""
    meanwhile = Meanwhile(place, Line())
    with meanwhile.reading(is_turn=True):
        meanwhile.entered("once")
        with monkeypatch.context() as broken:
            broken.setattr(place.conversations.recorder, "insert_events", full)

            assert take(meanwhile) == nothing

    assert place.complaints == [NotRecordedError]
    assert list(place.at_hand.conversation.queue.values()) == ["once"]


@pytest.mark.parametrize(
    ("take", "taken"), [(Meanwhile.took_back, "two"), (Meanwhile.take_all, ["one", "two"])]
)
def test_what_was_handed_out_is_queued_no_more(place, take, taken):
    meanwhile = Meanwhile(place, Line())
    with meanwhile.reading(is_turn=True):
        meanwhile.entered("one")
        meanwhile.entered("two")

        assert take(meanwhile) == taken

    left = list(place.at_hand.conversation.queue.values())
    assert left == (["one"] if taken == "two" else [])
    assert place.complaints == []
