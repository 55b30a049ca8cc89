"""What a person is told before the first prompt."""

import pytest

from app.application import Conversations
from app.bootstrap import AgentFactory
from app.damage import QUICK, report
from app.repl.restored import about
from app.settings import run_settings
from tests.app.test_outputs import begin, hurt


@pytest.fixture
def told(home):
    """What is told of a conversation that somebody has changed by *change*."""

    def told(change=None):
        store = home / "conversations"
        conversation_id = begin(store, "hello")
        if change is not None:
            change(store, conversation_id)
        with Conversations({"LEFTFOLD_STORE": str(store)}) as conversations:
            factory = AgentFactory(run_settings(offline=True), conversations, model=None)
            lines = list(about(factory, conversations.get(conversation_id)))
            return lines, getattr(report(conversations, conversation_id), "message", None)

    return told


def grown(store, conversation_id):
    hurt(store, conversation_id)
    with (store / f"{conversation_id}.jsonl").open("ab") as log:
        log.write(b"x" * QUICK + b"\n")


def test_damage_is_told_in_the_words_of_every_command(told):
    lines, sentence = told(hurt)

    assert "is damaged: line " in sentence
    assert sentence in lines


@pytest.mark.parametrize("change", [None, grown])
def test_of_a_log_that_is_whole_or_takes_too_long_nothing_is_told(told, change):
    lines, _sentence = told(change)

    assert "Restored" in lines[0]
    assert not any("damaged" in line for line in lines)
