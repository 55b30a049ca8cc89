"""Waiting inside a compaction, as a person at the terminal sees it."""

import pytest

from tests.app.programs import events
from tests.app.repl.terminal import CTRL_C, ESC, Person, has
from tests.server import ScriptedServer, refuse, reply

SOON = 0.01
LONG = "word " * 1700


@pytest.fixture
def server():
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        yield server


@pytest.fixture
def person(tmp_path, server):
    """Somebody with two long turns behind them, in a small window."""
    person = Person(tmp_path, server, LEFTFOLD_CONTEXT_WINDOW="8000")
    for answer in ("One.", "Two."):
        person.pastes(LONG)
        person.waits(answer)
    return person


@pytest.mark.parametrize("key", [ESC, CTRL_C])
def test_waiting_for_a_retry_in_a_compaction_is_shown_and_stops_at_once(person, server, key):
    server.add(refuse(529, "overloaded", retry_after=100))
    person.says("/compact")
    person.waits("Compacting", "Retrying in 100 s, try 1 of 3")
    person.presses(key)
    person.waits("Interrupted")
    person.says("q")

    assert person.ended()[0] == 0
    assert not has("Compacted")(events(person.log()))


def test_a_compaction_goes_on_after_a_retry(person, server):
    server.add(refuse(529, "overloaded", retry_after=SOON), *[reply("## Goal\n- notes")] * 2)
    person.says("/compact")
    person.waits("Retrying in 0 s, try 1 of 3", "Compacted")
    person.says("q")

    assert person.ended()[0] == 0
    assert has("Compacted")(events(person.log()))


def test_what_a_refused_summary_has_spent_is_in_the_end_of_the_next_turn(person, server):
    server.add(  # asked for at the end of the conversation's own request, then in pieces
        reply("cut", usage={"input_tokens": 600}, stop_reason="max_tokens"),
        reply("cut", usage={"input_tokens": 100}, stop_reason="max_tokens"),
        reply("Three.", usage={"input_tokens": 30}),
    )
    person.says("/compact")
    person.waits("no whole summary")
    person.says("go on")
    person.waits(r"Three\.")
    person.says("q")

    assert person.ended()[0] == 0
    end = events(person.log())[-1]["state"]
    assert (end["outcome"], end["lost"]["input_tokens"]) == ("done", 700)
    assert end["spent"]["input_tokens"] == 730
