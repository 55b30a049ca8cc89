"""The keys of vi at the prompt, in the real program."""

from tests.app.programs import events, said
from tests.app.repl.terminal import ENTER, ESC, PROMPT, Person
from tests.server import ScriptedServer, reply


def test_vi_edits_the_line_and_esc_on_an_empty_one_opens_the_tree(tmp_path):
    with ScriptedServer([reply("One.")]) as server:
        person = Person(tmp_path, server, LEFTFOLD_EDITING_MODE="vi")
        person.waits(PROMPT)
        person.presses("say oneXX" + ESC + "xx0dwiplease " + ENTER)
        person.waits("One.", PROMPT)
        person.presses(ESC + ESC)
        person.waits("The tree", "Esc leaves")
        person.presses(ESC)
        person.says("q")

        assert person.ended()[0] == 0
    assert said(events(person.log()), "user") == ["please one"]
