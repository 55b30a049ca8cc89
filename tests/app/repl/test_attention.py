"""The bell and the title: when a person who looks elsewhere is called."""

import re
from types import SimpleNamespace

import pytest

from app.repl.attention import LONG, Attention
from tests.app.repl.terminal import CTRL_C, ENTER, PROMPT, Person
from tests.server import ScriptedServer, call, refuse, reply

AT_REST = rf"{PROMPT} *$"


@pytest.mark.parametrize(
    ("seconds", "has_failed", "rings"),
    [(LONG - 1, False, 0), (LONG, False, 1), (0, True, 1), (LONG, True, 1)],
)
def test_the_bell_rings_when_work_fails_or_took_long(seconds, has_failed, rings):
    now, written = [0.0], []
    attention = Attention(written.append, clock=lambda: now[0])
    attention.begins()
    now[0] += seconds
    attention.ends(has_failed=has_failed)

    assert written.count("\a") == rings


def test_a_title_is_one_line_without_control_characters():
    written = []
    Attention(written.append).look_at(SimpleNamespace(name="a\x1b]0;x\a\nb" * 50, cwd="/"))

    [title] = written
    assert re.fullmatch(r"\x1b\]2;[^\x00-\x1f\x7f]{1,90}\a", title)


def test_the_window_gets_its_own_title_back():
    written = []
    with Attention(written.append).kept():
        assert written == ["\x1b[22;2t"]

    assert written[1:] == ["\x1b]2;\a\x1b[23;2t"]


def test_a_question_rings_the_title_tells_and_is_given_back(tmp_path):
    with ScriptedServer([reply(call("bash", command="true")), refuse(400, "no")]) as server:
        person = Person(tmp_path, server)
        person.waits(PROMPT)
        person.presses("go" + ENTER)
        person.waits("\x1b\\]2;● work · leftfold\a", "\a\x1b\\]2;\\? work · leftfold\a", "Allow")
        person.presses("y")
        person.waits("● work", "\a\x1b\\]2;work · leftfold\a", PROMPT)  # it failed
        person.presses(CTRL_C + CTRL_C)
        _, rest = person.ended()

    assert "\x1b]2;\a" in rest


@pytest.mark.parametrize("quiet", [{"TERM": "dumb"}, {"LEFTFOLD_BELL": "false"}])
def test_neither_bell_nor_title_where_it_is_not_wanted(tmp_path, quiet):
    with ScriptedServer([reply(call("bash", command="true")), refuse(400, "no")]) as server:
        person = Person(tmp_path, server, **quiet)
        seen = person.waits(PROMPT)
        person.presses("go" + ENTER)
        seen += person.waits("Allow")
        person.presses("y" + ENTER)
        seen += person.waits("no", PROMPT)
        person.presses(CTRL_C + CTRL_C)
        seen += person.ended()[1]

    assert "\a" not in seen
    assert "\x1b]" not in seen
