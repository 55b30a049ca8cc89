"""Typing at rest, and what stands below it, with the real program."""

import stat

import pytest

from tests.app.programs import events, said
from tests.app.repl.terminal import ENTER, ESC, LEFT, PROMPT, UP, Person, has
from tests.server import ScriptedServer, reply

TAB, BACKSPACE, CTRL_A, CTRL_R = "\t", "\x7f", "\x01", "\x12"
AT_REST = rf"{PROMPT} *$"


@pytest.fixture
def server():
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        yield server


def leaves(person):
    person.presses("q" + ENTER)
    assert person.ended()[0] == 0


def test_the_status_line_says_what_goes_on(tmp_path, server):
    person = Person(tmp_path, server, "--model", "claude-sonnet-4-5", size=(24, 90), answers=True)
    person.shows(rf"{PROMPT}\s*\nclaude-sonnet-4-5 · [\d.]+k/200k tokens \(1%\)$")
    person.presses("hello" + ENTER)
    person.shows(
        r"One\.", rf"{PROMPT}\s*\nclaude-sonnet-4-5 · [\d.]+k/200k tokens \(1%\) · \$0\.\d+$"
    )
    person.presses("/label here" + ENTER)
    person.shows("is labelled", r" · \$0\.\d+ · \[here\]$")
    person.presses("/name Anna 安娜" + ENTER)
    person.shows("is named", r" · \[here\] · Anna 安娜$")
    person.presses("/thinking high" + ENTER)
    person.shows("Thinking is high", r" tokens \(1%\) · thinking high · \$0\.\d+ · \[here\] · Anna")
    person.presses("/model claude-opus-4-1" + ENTER)
    person.shows("The model is", rf"{PROMPT}\s*\nclaude-opus-4-1 · [\d.]+k/200k tokens")
    person.resizes(24, 30)
    person.shows(r"\nclaude-opus-4-1$")
    leaves(person)


def test_no_color_takes_away_the_colours_and_nothing_else(tmp_path, server):
    person = Person(tmp_path, server, size=(24, 90), answers=True, NO_COLOR="1")
    person.presses("**hello**" + ENTER)
    person.shows(r"One\.", rf"{PROMPT}\s*\n\s*claude.* tokens \(0%\)")
    person.presses("/tree" + ENTER)
    person.shows(r"▸.*One\.", "Esc leaves")
    cells = [cell for row in person.screen.buffer.values() for cell in row.values()]
    assert {(cell.fg, cell.bg) for cell in cells} == {("default", "default")}
    person.presses(ESC)
    person.shows(rf"{PROMPT}\s*\n\s*claude.* tokens \(0%\)")
    leaves(person)


def test_wide_characters_are_typed_and_changed(tmp_path, server):
    person = Person(tmp_path, server)
    person.shows(AT_REST)
    person.presses("你好吗" + BACKSPACE + "呀" + LEFT * 3 + "👋" + CTRL_A + ">")
    person.shows("leftfold> >👋你好呀")
    person.presses(ENTER)
    person.shows(r"One\.", AT_REST)
    leaves(person)

    assert said(events(person.log()), "user") == [">👋你好呀"]


def test_what_was_typed_once_is_found_again_after_a_restart_and_by_nobody_else(tmp_path, server):
    person = Person(tmp_path, server)
    person.presses("about apples" + ENTER)
    person.shows(r"One\.", AT_REST)
    person.presses("about pears" + ENTER)
    person.shows(r"Two\.", AT_REST)
    leaves(person)
    person.starts()
    person.shows(AT_REST)
    person.presses(UP * 3)
    person.shows("leftfold> about apples")
    person.presses("\x03")
    person.shows("again leaves")
    person.presses(CTRL_R)
    person.shows("I-search backward: *$")
    person.presses("pea")
    person.shows("leftfold> about pears", "I-search backward: pea")
    person.presses("\x03")
    person.shows(AT_REST)
    leaves(person)

    assert stat.S_IMODE((person.home / "history").stat().st_mode) == 0o600


def test_tab_completes_commands_what_they_take_and_files(tmp_path, server):
    person = Person(tmp_path, server)
    (person.cwd / "two words.txt").write_text("x")
    person.presses("/thi")
    person.shows("/thinking +.LEVEL", "Change or show how hard")
    person.presses(TAB)
    person.shows("leftfold> /thinking")
    person.presses("hi")
    person.shows(r"/thinking hi\n +high")
    person.presses(TAB)
    person.shows("leftfold> /thinking high")
    person.presses("\x03")
    person.shows("again leaves")
    person.presses("see @tw")
    person.shows("\n +two words.txt")
    person.presses(TAB)
    person.shows('leftfold> see @"two words.txt"')
    person.presses(ENTER + ENTER)
    person.shows("attached two words.txt", r"One\.", AT_REST)
    person.presses("/label start" + ENTER)
    person.shows("is labelled", AT_REST)
    person.presses("/tree st")
    person.shows("start +entry")
    person.presses(TAB)
    person.shows("leftfold> /tree start")
    person.presses(ENTER)
    person.shows("You are (here|at the beginning)", AT_REST)
    leaves(person)


def test_the_instructions_of_the_project_are_named_at_the_start(tmp_path, server):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / "AGENTS.md").write_text("Be brief.")
    person = Person(tmp_path, server, size=(24, 200))
    person.shows(r"Instructions: .*AGENTS\.md", AT_REST)
    leaves(person)


def test_the_picker_shows_all_directories_what_was_said_last_and_archives(tmp_path, server):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    person = Person(tmp_path, server, size=(30, 120))
    person.presses("about apples" + ENTER)
    person.shows(r"One\.", AT_REST)
    leaves(person)
    person.cwd = elsewhere
    person.starts()
    person.presses("about pears" + ENTER)
    person.shows(r"Two\.", AT_REST)
    person.presses("/resume" + ENTER)
    person.shows("Resume: conversations of .*elsewhere", r"▸ .*about pears", r"\(1 of 1\)")
    person.presses(TAB)
    person.shows("Resume: all conversations", "about apples +/tmp", r"\(2 of 2\)")
    person.presses("apples")
    person.shows(r"▸ .*about apples", r"\n  › about apples\n +One\.", r"\(1 of 2\)")
    person.presses("\x01")
    person.shows("archived; Tab shows it · Resume", r"\(archived\) about apples")
    person.presses(ESC)
    person.shows("Still in the same conversation", AT_REST)
    leaves(person)

    assert [has("Archived", archived=True)(events(log)) for log in person.logs()] == [True, False]
