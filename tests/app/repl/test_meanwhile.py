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
def reading(meanwhile, *, is_turn):
    manager = meanwhile.reading(is_turn=is_turn)
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
    [(Meanwhile.took_back, None), (Meanwhile.take_all, "")],
    ids=["the last", "all"],
)
def test_what_cannot_be_taken_out_of_the_queue_is_not_handed_out(desk, monkeypatch, take, nothing):
    """Else the agent would say it, and the person once more."""
    meanwhile = Meanwhile(desk)
    with reading(meanwhile, is_turn=True):
        meanwhile.entered("once")
        with monkeypatch.context() as broken:
            broken.setattr(desk.conversations.recorder, "insert_events", full)

            assert take(meanwhile) == nothing

    assert desk.complaints == [NotRecordedError]
    assert list(desk.open_conversation.conversation.queue.values()) == ["once"]


@pytest.mark.parametrize(
    ("take", "taken"), [(Meanwhile.took_back, "two"), (Meanwhile.take_all, "one\n\ntwo")]
)
def test_what_was_handed_out_is_queued_no_more(desk, take, taken):
    meanwhile = Meanwhile(desk)
    with reading(meanwhile, is_turn=True):
        meanwhile.entered("one")
        meanwhile.entered("two")

        assert take(meanwhile) == taken
        if taken == "two":
            assert [text for text, _ in desk.waiting] == ["one"]  # on the screen

    left = list(desk.open_conversation.conversation.queue.values())
    assert left == (["one"] if taken == "two" else [])
    assert desk.complaints == []


@pytest.mark.parametrize("is_turn", [True, False])
def test_what_is_shown_as_queued_is_in_the_log_whatever_is_at_work(desk, is_turn):
    meanwhile = Meanwhile(desk)
    with reading(meanwhile, is_turn=is_turn):
        meanwhile.entered("a prompt")
        meanwhile.entered("/compact")

        assert [text for text, version in desk.waiting if version] == ["a prompt"]
        assert list(desk.open_conversation.conversation.queue.values()) == ["a prompt"]


def test_what_the_log_cannot_take_is_not_queued_and_stands_in_the_line(desk, monkeypatch):
    meanwhile = Meanwhile(desk)
    with reading(meanwhile, is_turn=False):
        monkeypatch.setattr(desk.conversations.recorder, "insert_events", full)
        meanwhile.entered("a prompt")

        assert (desk.waiting, desk.line.text) == ([], "a prompt")
    assert desk.complaints == [NotRecordedError]


COMMANDS = ["/compact", "  /model x", "!rm x", "!!ls", "q", " quit ", "/unknown"]


@pytest.mark.parametrize("command", COMMANDS)
def test_a_command_waits_as_one_and_never_stands_among_prompts(desk, command):
    meanwhile = Meanwhile(desk)
    with reading(meanwhile, is_turn=True):
        for text in ("one", command, "two"):
            meanwhile.entered(text)

        assert meanwhile.next_command() is None  # the prompt before it comes first
        assert meanwhile.take_all() == "one\n\ntwo"
        assert meanwhile.next_command() == command
    assert meanwhile.next_command() is None


def test_a_queued_prompt_moves_with_the_person_to_another_conversation(desk):
    meanwhile, before = Meanwhile(desk), desk.open_conversation
    with reading(meanwhile, is_turn=False):
        meanwhile.entered("for the new one")
        desk.open_conversation = desk.conversations.start(begin())
        meanwhile.move(before)

        assert dict(before.conversation.queue) == {}
        assert list(desk.open_conversation.conversation.queue.values()) == ["for the new one"]
        assert meanwhile.is_queued()


def test_while_any_key_is_waited_for_none_stops_the_work(desk):
    meanwhile = Meanwhile(desk)

    async def waited():
        waiting = asyncio.create_task(meanwhile.pressed(60))
        await asyncio.sleep(0)
        meanwhile.stop()
        meanwhile.interrupt()
        meanwhile.pressed_key()
        return await waiting

    assert asyncio.run(waited())
    assert desk.stopped == []
    meanwhile.stop()
    meanwhile.interrupt()
    assert desk.stopped == ["stop", "interrupt"]
