"""Keys that leave, stop, wait and come back, with the real program."""

import json
import os

import pexpect
import pytest

from tests.app.programs import events, until
from tests.app.repl.terminal import CTRL_C, ENTER, ESC, PROMPT, Person, has
from tests.server import Gate, ScriptedServer, call, reply

CTRL_E, CTRL_X, CTRL_Z, CTRL_BACKSLASH = "\x05", "\x18", "\x1a", "\x1c"
AT_REST = rf"{PROMPT} *$"


@pytest.mark.parametrize("key", [ESC, " ", "q", ENTER, CTRL_C])
def test_any_key_ends_the_following_of_a_log_and_no_key_is_lost(tmp_path, key):
    with ScriptedServer([reply("One.")]) as server:
        person = Person(tmp_path, server)
        person.shows(AT_REST)
        person.presses("hello" + ENTER)
        person.shows(r"One\.", AT_REST)
        person.presses("/log follow" + ENTER)
        person.shows("any key ends this")
        person.presses(key)
        person.shows(rf"ends this\)[^>]*\n{AT_REST}")
        person.presses("/log follow" + ENTER)
        person.shows(r"(?s)ends this.*ends this")
        person.presses("/name Anna" + ENTER)
        person.shows("is named", AT_REST)
        person.presses("q" + ENTER)
        assert person.ended()[0] == 0


def test_what_is_typed_while_a_log_is_followed_loses_no_letter(tmp_path):
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        person = Person(tmp_path, server)
        person.shows(AT_REST)
        person.presses("hello" + ENTER)
        person.shows(r"One\.", AT_REST)
        person.presses("/log follow" + ENTER)
        person.shows("any key ends this")
        person.presses("w")
        person.shows(rf"ends this\)[^>]*\n{PROMPT} *w *$")
        person.presses("hy?" + ENTER)
        person.shows(r"Two\.", AT_REST)
        person.killed()

    assert "why?" in json.dumps(server.requests[1].json["messages"])


@pytest.mark.parametrize("end", ["killed", "twice"])
def test_what_is_queued_while_a_command_works_is_not_lost(tmp_path, end):
    with ScriptedServer() as server:
        person = Person(tmp_path, server)
        person.shows(AT_REST)
        person.presses("!sleep 100" + ENTER)
        person.shows(r"sleep 100 \d+s")
        person.presses("do not lose me" + ENTER)
        person.shows("queued: do not lose me")
        if end == "killed":
            person.killed()
        else:
            person.presses(CTRL_C + CTRL_C)
            person.ended()

    assert has("PromptQueued", text="do not lose me")(events(person.log()))
    assert not has("PromptWithdrawn")(events(person.log()))


def test_commands_that_were_typed_meanwhile_run_when_the_turn_was_stopped(tmp_path):
    with Gate() as gate, ScriptedServer([reply("Half", gate=gate, gate_after=1)]) as server:
        person = Person(tmp_path, server)
        person.shows(AT_REST)
        person.presses("go" + ENTER)
        person.shows("waiting for the first token")
        for line in ("first", "  /name Anna", "!touch done", "second"):
            person.presses(line + ENTER)
        person.shows("queued: first", "then: /name Anna", "then: !touch done", "queued: second")
        person.presses(ESC)
        until((person.cwd / "done").exists)
        person.shows("is named", r"leftfold> first\n +…\n +… second")
        person.presses(CTRL_C)
        person.shows("again leaves")
        person.presses("q" + ENTER)
        person.ended()

    assert has("Renamed", name="Anna")(events(person.log()))


class Shell(Person):
    """A person whose program is a job of a shell."""

    def at_terminal(self, *arguments, size):
        shell = pexpect.spawn(
            "/bin/bash",
            ["--norc", "--noediting", "-i"],
            cwd=str(self.cwd),
            env=self.environment | {"PS1": "shell> "},
            encoding="utf-8",
            dimensions=size,
            timeout=60,
        )
        shell.expect("shell> ")
        shell.sendline(" ".join(self.command(*arguments)))
        return shell

    def allows(self, command):
        self.waits(r"\[r\]eason ")
        self.presses("y")
        self.waits(rf"● \$ {command}")

    def comes_back(self):
        self.shows(r"(?s)Stopped.*shell> *$")
        self.presses("stty -a | grep -c ' echo '; stty -a | grep -c ' icanon '" + ENTER)
        self.shows(r"\n1\n1\nshell> *$")
        self.presses("fg" + ENTER)


def test_ctrl_z_gives_the_terminal_to_the_shell_and_comes_back(tmp_path):
    bash = call("bash", command="sleep 1; echo built > out.txt")
    with ScriptedServer([reply(bash), reply("Done.")]) as server:
        person = Shell(tmp_path, server)
        person.shows(AT_REST)
        person.presses(CTRL_Z)  # at the prompt
        person.comes_back()
        person.shows(AT_REST)
        person.presses("build" + ENTER)
        person.shows("Allow", r"\[r\]eason")
        person.presses(CTRL_Z)  # at a question
        person.comes_back()
        person.shows("Allow", r"\[r\]eason")
        person.presses("r")
        person.shows("Why not")
        person.presses("no idea" + CTRL_Z)  # at a question whose answer is a line
        person.comes_back()
        person.shows(r"Why not.*no idea$")
        person.presses(ESC)
        person.shows(r"\[r\]eason *$")
        person.presses("y")
        person.shows(r"sleep 1.*\ds|Done\.")
        person.presses(CTRL_Z)  # while it works
        person.comes_back()
        person.shows(r"Done\.", AT_REST)
        person.presses("/tree" + ENTER)
        person.shows("Esc leaves")
        person.presses(CTRL_Z)  # in a list
        person.comes_back()
        person.shows("Esc leaves")
        person.presses(ESC)
        person.shows(AT_REST)
        person.presses("q" + ENTER)
        person.shows(r"To resume.*\nshell> *$")

    assert (person.cwd / "out.txt").read_text() == "built\n"


def test_a_dumb_terminal_keeps_the_same_word_of_ctrl_c(tmp_path):
    with ScriptedServer([reply("One.")]) as server:
        person = Person(tmp_path, server, TERM="dumb")
        person.waits(PROMPT)
        person.presses("abc" + CTRL_C)
        person.waits("Ctrl\\+C again leaves", PROMPT)
        person.presses("hello" + ENTER)
        person.waits(r"One\.", PROMPT)
        person.presses(CTRL_C + CTRL_C)
        assert person.ended()[0] == 0


def test_a_dumb_terminal_loses_nothing_that_was_typed_meanwhile(tmp_path):
    wait = reply(call("bash", command="cat pipe"))
    with ScriptedServer([wait, wait, wait, reply("Done.")]) as server:
        person = Shell(tmp_path, server, TERM="dumb")
        os.mkfifo(person.cwd / "pipe")
        person.says("go")
        person.allows("cat pipe")
        person.presses("firts\x7f\x7fst\rsecond")
        (person.cwd / "pipe").write_text("piped\n")
        person.allows("cat pipe")  # a question throws away what is not read
        person.presses("third" + CTRL_Z)  # a shell would run it
        person.comes_back()
        (person.cwd / "pipe").write_text("piped\n")
        person.allows("cat pipe")
        person.presses("fourth" + CTRL_C)  # the system would throw it away
        person.waits("Interrupted", f"{PROMPT} first\r\nsecond\r\nthird\r\nfourth$")
        person.presses(ENTER)
        person.waits(r"Done\.", f"{PROMPT} $")
        person.presses("q" + ENTER)
        person.waits("To resume", "shell> $")

    assert b"first\\nsecond\\nthird\\nfourth" in server.requests[-1].body


@pytest.mark.parametrize("key", [CTRL_C, CTRL_BACKSLASH])
def test_a_key_that_stops_the_editor_stops_nothing_else(tmp_path, key):
    editor = tmp_path / "editor"
    editor.write_text("#!/bin/sh\necho the editor is open\nexec sleep 600\n")
    editor.chmod(0o700)
    with ScriptedServer([reply("One.")]) as server:
        person = Person(tmp_path, server, EDITOR=str(editor))
        person.shows(AT_REST)
        person.presses("half a line" + CTRL_X + CTRL_E)
        person.shows("the editor is open")
        person.presses(key)
        person.shows("Editing failed", rf"{PROMPT} *half a line *$")
        person.presses(ENTER)
        person.shows(r"One\.", AT_REST)
        person.killed()

    assert "half a line" in json.dumps(server.requests[0].json["messages"])
