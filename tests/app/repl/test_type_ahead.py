"""What is typed while the agent works: what stands in the log is handed out once, or not at all."""

import asyncio
from contextlib import asynccontextmanager, contextmanager

import pytest
from eventsourcing.persistence import OperationalError

from app.application import Conversations
from app.errors import NotRecordedError
from app.repl.type_ahead import TypeAhead
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


class Desk:
    """A desk, its screen and its work; it remembers what it was told."""

    def __init__(self, open_conversation, line):
        self.open_conversation, self.line = open_conversation, line
        self.complaints, self.stopped = [], []
        self.screen = self.work = self.attachments = self

    def show_waiting(self, waiting):
        self.waiting = list(waiting)

    def prompted(self, text):
        pass

    def say_of(self, text):
        pass

    def stop(self):
        self.stopped.append("stop")

    def interrupt(self):
        self.stopped.append("interrupt")

    def complain(self, error):
        self.complaints.append(type(error))


@contextmanager
def reading(type_ahead, *, is_turn):
    manager = type_ahead.reading(is_turn=is_turn)
    with asyncio.Runner() as runner:
        runner.run(manager.__aenter__())
        yield
        runner.run(manager.__aexit__(None, None, None))


@pytest.fixture
def desk():
    with Conversations({"PERSISTENCE_MODULE": "eventsourcing.popo"}) as conversations:
        desk = Desk(conversations.start(begin()), Line())
        desk.conversations = conversations
        yield desk


def full(*_args, **_kwargs):
    raise OperationalError("the disk is full")


@pytest.mark.parametrize(
    ("take", "nothing"),
    [(TypeAhead.took_back, None), (TypeAhead.take_all, "")],
    ids=["the last", "all"],
)
def test_what_cannot_be_taken_out_of_the_queue_is_not_handed_out(desk, monkeypatch, take, nothing):
    """Else the agent would say it, and the person once more."""
    type_ahead = TypeAhead(desk)
    with reading(type_ahead, is_turn=True):
        type_ahead.entered("once")
        with monkeypatch.context() as broken:
            broken.setattr(desk.conversations.recorder, "insert_events", full)

            assert take(type_ahead) == nothing

    assert desk.complaints == [NotRecordedError]
    assert list(desk.open_conversation.conversation.queue.values()) == ["once"]


@pytest.mark.parametrize(
    ("take", "taken"), [(TypeAhead.took_back, "two"), (TypeAhead.take_all, "one\n\ntwo")]
)
def test_what_was_handed_out_is_queued_no_more(desk, take, taken):
    type_ahead = TypeAhead(desk)
    with reading(type_ahead, is_turn=True):
        type_ahead.entered("one")
        type_ahead.entered("two")

        assert take(type_ahead) == taken
        if taken == "two":
            assert [text for text, _ in desk.waiting] == ["one"]  # on the screen

    left = list(desk.open_conversation.conversation.queue.values())
    assert left == (["one"] if taken == "two" else [])
    assert desk.complaints == []


@pytest.mark.parametrize("is_turn", [True, False])
def test_what_is_shown_as_queued_is_in_the_log_whatever_is_at_work(desk, is_turn):
    type_ahead = TypeAhead(desk)
    with reading(type_ahead, is_turn=is_turn):
        type_ahead.entered("a prompt")
        type_ahead.entered("/compact")

        assert [text for text, version in desk.waiting if version] == ["a prompt"]
        assert list(desk.open_conversation.conversation.queue.values()) == ["a prompt"]


def test_what_the_log_cannot_take_is_not_queued_and_stands_in_the_line(desk, monkeypatch):
    type_ahead = TypeAhead(desk)
    with reading(type_ahead, is_turn=False):
        monkeypatch.setattr(desk.conversations.recorder, "insert_events", full)
        type_ahead.entered("a prompt")

        assert (desk.waiting, desk.line.text) == ([], "a prompt")
    assert desk.complaints == [NotRecordedError]


COMMANDS = ["/compact", "  /model x", "!rm x", "!!ls", "q", " quit ", "/unknown"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_waits_as_one_and_never_stands_among_prompts(desk, command):
    type_ahead = TypeAhead(desk)
    with reading(type_ahead, is_turn=True):
        for text in ("one", command, "two"):
            type_ahead.entered(text)

        assert type_ahead.next_command() is None  # the prompt before it comes first
        assert type_ahead.take_all() == "one\n\ntwo"
        assert type_ahead.next_command() == command
    assert type_ahead.next_command() is None


def test_a_queued_prompt_moves_with_the_person_to_another_conversation(desk):
    type_ahead, before = TypeAhead(desk), desk.open_conversation
    with reading(type_ahead, is_turn=False):
        type_ahead.entered("for the new one")
        desk.open_conversation = desk.conversations.start(begin())
        type_ahead.move(before)

        assert dict(before.conversation.queue) == {}
        assert list(desk.open_conversation.conversation.queue.values()) == ["for the new one"]
        assert type_ahead.is_queued()


def test_while_any_key_is_waited_for_none_stops_the_work(desk):
    type_ahead = TypeAhead(desk)

    async def waited():
        waiting = asyncio.create_task(type_ahead.pressed(60))
        await asyncio.sleep(0)
        type_ahead.stop()
        type_ahead.interrupt()
        type_ahead.pressed_key()
        return await waiting

    assert asyncio.run(waited())
    assert desk.stopped == []
    type_ahead.stop()
    type_ahead.interrupt()
    assert desk.stopped == ["stop", "interrupt"]
