"""The navigator, used by a person at a terminal."""

import pytest

from tests.app.programs import events, said
from tests.app.repl.terminal import ENTER, ESC, LEFT, PROMPT, RIGHT, UP, Person, has
from tests.server import ScriptedServer, reply

CTRL_F, CTRL_L, CTRL_S, CTRL_U = "\x06", "\x0c", "\x13", "\x15"


@pytest.fixture
def server():
    with ScriptedServer([reply("One."), reply("Two."), reply("Three.")]) as server:
        yield server


@pytest.fixture
def person(tmp_path, server):
    """In the tree of two branches, both of which hang from the answer One."""
    person = Person(tmp_path, server)
    person.says("first question")
    person.waits("One.")
    person.says("second question")
    person.waits("Two.")
    person.says("/tree -2")
    person.waits("You are (here|at the beginning)", PROMPT, "second question")
    person.presses(" anew" + ENTER)
    person.waits("Three.", PROMPT)
    person.presses(ESC + ESC)
    person.shows("The tree", "second question\n", "Three. ◀ leaf", r"\(6 of 6\)", "Esc leaves")
    yield person
    person.presses("q" + ENTER)
    assert person.ended()[0] == 0


def test_branches_are_folded_counted_and_found(person):
    person.presses(UP * 3 + LEFT)
    person.shows(r"⋯ 1 folded ⋯ second question\n", r"\(5 of 6\)")
    person.presses(LEFT + LEFT)
    person.shows(r"⋯ 4 folded ⋯ One\.", r"\(2 of 6\)")
    person.presses(RIGHT)
    person.shows(r"⋯ 1 folded ⋯ second question\n", r"\(5 of 6\)")
    person.presses("two")
    person.shows(r"\(1 of 6\)", r"▸ +\d+ │ ○ assistant +Two\.")
    person.presses(ENTER)
    person.shows("You are (here|at the beginning)", rf"{PROMPT}\s*$")
    [two] = [e["v"] for e in events(person.log()) if "Two." in str(e)]

    assert has("LeafMoved", target=two)(events(person.log()))


def test_a_fork_leaves_the_original_as_it_is(person, server):
    original, before = person.log(), person.log().read_bytes()
    server.add(reply("Four."))
    person.presses("one" + CTRL_F)
    person.shows("Going on in a copy", rf"{PROMPT}\s*$")
    person.presses("another way" + ENTER)
    person.shows("Four.", rf"{PROMPT}\s*$")
    [copy] = set(person.logs()) - {original}

    assert said(events(copy), "user") == ["first question", "another way"]
    assert original.read_bytes() == before


def test_a_label_is_given_seen_and_taken_away(person):
    person.presses("two" + CTRL_L)
    person.shows("Label of entry")
    person.presses("good one" + ENTER)
    person.shows(r"\[good one\] Two\.", "Esc leaves")
    person.presses(CTRL_L)
    person.shows("Label of entry .* good one")
    person.presses(CTRL_U + ENTER)
    person.shows(r"assistant +Two\.", "Esc leaves")
    person.presses(ESC)
    person.shows(rf"{PROMPT}\s*$")
    labels = [e["state"]["label"] for e in events(person.log()) if e["topic"] == "LabelChanged"]

    assert labels == ["good one", None]


def test_leaving_with_a_summary_tells_the_model_what_was_left(person, server):
    server.add(reply("They went another way."), reply("Four."))
    person.presses("two" + CTRL_S)
    person.shows("Summarising the branch", "You are (here|at the beginning)", rf"{PROMPT}\s*$")
    person.presses("and now?" + ENTER)
    person.shows("Four.", rf"{PROMPT}\s*$")

    assert has("BranchSummarized", summary="They went another way.")(events(person.log()))
    assert "They went another way." in str(server.requests[-1].json["messages"])
