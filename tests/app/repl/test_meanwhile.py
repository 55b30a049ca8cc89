"""What is typed while the agent works: what stands in the log is handed out once, or not at all."""

import asyncio
from contextlib import asynccontextmanager, contextmanager

import pytest
from eventsourcing.persistence import OperationalError

from app.application import Conversations
from app.errors import NotRecordedError
from app.repl.meanwhile import Meanwhile
from tests.app.doubles import begin


class Line:
    """A line on which nothing is typed."""

    text = ""

    @asynccontextmanager
    async def reading(self, typist):
        yield

    def take(self):
        text, self.text = self.text, ""
        return text

    def give_back(self, text):
        self.text = text


class Place:
    """Where the work goes on; it remembers what it was told."""

    def __init__(self, at_hand):
        self.open_conversation, self.complaints, self.stopped = at_hand, [], []

    def show_waiting(self, waiting):
        self.waiting = list(waiting)

    def show_nothing(self):
        pass

    def show_said(self, text):
        pass

    def stop(self):
        self.stopped.append("stop")

    def interrupt(self):
        self.stopped.append("interrupt")

    def complain(self, error):
        self.complaints.append(type(error))


@contextmanager
def reading(meanwhile, *, is_turn):
    manager = meanwhile.reading(is_turn=is_turn)
    with asyncio.Runner() as runner:
        runner.run(manager.__aenter__())
        yield
        runner.run(manager.__aexit__(None, None, None))


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
    [(Meanwhile.took_back, None), (Meanwhile.take_all, "")],
    ids=["the last", "all"],
)
def test_what_cannot_be_taken_out_of_the_queue_is_not_handed_out(place, monkeypatch, take, nothing):
    """Else the agent would say it, and the person once more."""
    meanwhile = Meanwhile(place, Line())
    with reading(meanwhile, is_turn=True):
        meanwhile.entered("once")
        with monkeypatch.context() as broken:
            broken.setattr(place.conversations.recorder, "insert_events", full)

            assert take(meanwhile) == nothing

    assert place.complaints == [NotRecordedError]
    assert list(place.open_conversation.conversation.queue.values()) == ["once"]


@pytest.mark.parametrize(
    ("take", "taken"), [(Meanwhile.took_back, "two"), (Meanwhile.take_all, "one\n\ntwo")]
)
def test_what_was_handed_out_is_queued_no_more(place, take, taken):
    meanwhile = Meanwhile(place, Line())
    with reading(meanwhile, is_turn=True):
        meanwhile.entered("one")
        meanwhile.entered("two")

        assert take(meanwhile) == taken
        if taken == "two":
            assert [text for text, _ in place.waiting] == ["one"]  # on the screen

    left = list(place.open_conversation.conversation.queue.values())
    assert left == (["one"] if taken == "two" else [])
    assert place.complaints == []


@pytest.mark.parametrize("is_turn", [True, False])
def test_what_is_shown_as_queued_is_in_the_log_whatever_is_at_work(place, is_turn):
    meanwhile = Meanwhile(place, Line())
    with reading(meanwhile, is_turn=is_turn):
        meanwhile.entered("a prompt")
        meanwhile.entered("/compact")

        assert [text for text, version in place.waiting if version] == ["a prompt"]
        assert list(place.open_conversation.conversation.queue.values()) == ["a prompt"]


def test_what_the_log_cannot_take_is_not_queued_and_stands_in_the_line(place, monkeypatch):
    line = Line()
    meanwhile = Meanwhile(place, line)
    with reading(meanwhile, is_turn=False):
        monkeypatch.setattr(place.conversations.recorder, "insert_events", full)
        meanwhile.entered("a prompt")

        assert (place.waiting, line.text) == ([], "a prompt")
    assert place.complaints == [NotRecordedError]


COMMANDS = ["/compact", "  /model x", "!rm x", "!!ls", "q", " quit ", "/unknown"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_waits_as_one_and_never_stands_among_prompts(place, command):
    meanwhile = Meanwhile(place, Line())
    with reading(meanwhile, is_turn=True):
        for text in ("one", command, "two"):
            meanwhile.entered(text)

        assert meanwhile.next_command() is None  # the prompt before it comes first
        assert meanwhile.take_all() == "one\n\ntwo"
        assert meanwhile.next_command() == command
    assert meanwhile.next_command() is None


def test_a_queued_prompt_moves_with_the_person_to_another_conversation(place):
    meanwhile, before = Meanwhile(place, Line()), place.open_conversation
    with reading(meanwhile, is_turn=False):
        meanwhile.entered("for the new one")
        place.open_conversation = place.conversations.start(begin())
        meanwhile.move(before)

        assert dict(before.conversation.queue) == {}
        assert list(place.open_conversation.conversation.queue.values()) == ["for the new one"]
        assert meanwhile.is_queued()


def test_while_any_key_is_waited_for_none_stops_the_work(place):
    meanwhile = Meanwhile(place, Line())

    async def waited():
        waiting = asyncio.create_task(meanwhile.pressed(60))
        await asyncio.sleep(0)
        meanwhile.stop()
        meanwhile.interrupt()
        meanwhile.pressed_key()
        return await waiting

    assert asyncio.run(waited())
    assert place.stopped == []
    meanwhile.stop()
    meanwhile.interrupt()
    assert place.stopped == ["stop", "interrupt"]
