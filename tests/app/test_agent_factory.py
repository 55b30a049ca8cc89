"""What flags say holds for the conversation that the program starts with, and for no other."""

import pytest

from app.application import Conversations
from app.bootstrap import AgentFactory
from app.errors import NoSuchConversationError, UnreadableConversationError
from app.settings import OFFLINE_MODEL, run_settings
from infrastructure.errors import LeaseHeldError
from infrastructure.jsonl.locks import Lease
from tests.app.doubles import begin


@pytest.fixture
def make(tmp_path, monkeypatch):
    """Make a workshop by flags, all over one store, where a key is at hand."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    environment = {"LEFTFOLD_STORE": str(tmp_path / "store"), "LEFTFOLD_DURABILITY": "os"}
    with Conversations(environment) as conversations:
        yield lambda **flags: AgentFactory(run_settings(**flags), conversations, model=None)


@pytest.fixture
def other(make):
    """A conversation named "other", with a model and a thinking level of its own."""
    at_hand = make().conversations.start(begin(model="theirs"))
    at_hand.record(lambda talk: talk.rename("other"))
    return at_hand.id


FLAGS = {"model": "mine", "thinking": "high", "name": "my name"}


def told(at_hand):
    talk = at_hand.conversation
    return talk.model, talk.thinking_level, talk.name


def test_the_conversation_at_the_start_is_as_the_flags_say(make, other):
    assert told(make(**FLAGS).start()) == ("mine", "high", "my name")
    assert told(make(**FLAGS).start(other)) == ("mine", "high", "my name")


def test_a_later_new_one_has_the_same_model_and_no_name(make):
    workshop = make(**FLAGS)
    workshop.start()

    assert told(workshop.begin_new()) == ("mine", "high", None)


def test_one_that_is_resumed_later_stays_as_it_is(make, other):
    workshop = make(**FLAGS)
    before = workshop.conversations.get(other).version

    assert told(workshop.resume(other)) == ("theirs", "off", "other")
    assert workshop.conversations.get(other).version == before


def test_a_fork_goes_on_with_the_model_that_was_chosen_last(make):
    workshop = make(**FLAGS)
    at_hand = workshop.start()
    at_hand.record(lambda talk: workshop.change_model(talk, "another"))

    assert told(workshop.resume(workshop.conversations.fork(at_hand.id)))[0] == "another"


def test_the_offline_model_answers_only_offline(make, other, monkeypatch):
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    workshop = make()
    assert told(workshop.resume(other))[0] == OFFLINE_MODEL
    workshop.let_go(other)

    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    workshop = make()
    assert told(workshop.resume(other))[0] == workshop.settings.keys.model


def test_nobody_is_locked_out_of_what_could_not_be_opened(make, other):
    workshop = make()
    path = workshop.conversations.store.path / f"{other}.jsonl"
    path.write_bytes(path.read_bytes().partition(b"\n")[0] + b"\nno event\n")

    with pytest.raises(UnreadableConversationError):
        workshop.resume(other)

    Lease.acquire(workshop.conversations.store.path, other).release()


def test_what_was_held_before_stays_held(make, other):
    workshop = make()
    workshop.start(other)
    (workshop.conversations.store.path / f"{other}.jsonl").unlink()

    with pytest.raises(NoSuchConversationError):
        workshop.resume(other)

    with pytest.raises(LeaseHeldError):
        Lease.acquire(workshop.conversations.store.path, other)


def resumed(make, conversation_id, do=None):
    workshop = make()
    at_hand = workshop.resume(conversation_id)
    if do is not None:
        at_hand.record(do)
    workshop.let_go(conversation_id)
    return at_hand.conversation


def test_a_window_or_a_longest_answer_that_is_set_holds_for_an_earlier_conversation(
    make, other, monkeypatch
):
    monkeypatch.setenv("LEFTFOLD_CONTEXT_WINDOW", "8000")
    assert resumed(make, other).max_tokens == 2000

    monkeypatch.setenv("LEFTFOLD_MAX_TOKENS", "700")
    assert resumed(make, other).max_tokens == 700
    assert make().begin_new().conversation.max_tokens == 700


def test_a_larger_window_that_is_set_counts_against_a_smaller_one_that_was_learned(
    make, other, monkeypatch
):
    resumed(make, other, lambda talk: talk.learn_limits("theirs", context_window=8000))
    assert resumed(make, other).known_limits.within(200_000) == 8000

    monkeypatch.setenv("LEFTFOLD_CONTEXT_WINDOW", "32000")
    assert resumed(make, other).known_limits.within(200_000) == 32_000
