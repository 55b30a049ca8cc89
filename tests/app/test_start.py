"""The first moments: Ctrl+C at any of them ends the program without a word."""

import subprocess
import sys

import pytest

from tests.app.in_process import run as run_here
from tests.app.programs import MAIN, PATIENCE, ROOT, Program, events, finish, said
from tests.app.repl.terminal import PROMPT, Person, has
from tests.server import ScriptedServer, reply

_AT_AN_IMPORT = f"""\
import os, runpy, signal, sys
name, sys.argv = sys.argv[1], [{str(MAIN)!r}, *sys.argv[2:]]
def hook(event, arguments):
    global name
    if event == "import" and arguments[0] == name:
        name = None
        os.kill(os.getpid(), signal.SIGINT)
        for _ in range(1000): pass  # a handler in Python runs between two steps
sys.addaudithook(hook)
runpy.run_path({str(MAIN)!r}, run_name="__main__")
"""


@pytest.mark.parametrize(
    "module",
    ["click", "app.repl.loop", "prompt_toolkit"],
)
def test_ctrl_c_while_something_is_imported_shows_no_traceback(tmp_path, module):
    program = Program(tmp_path)
    done = subprocess.run(
        [sys.executable, "-c", _AT_AN_IMPORT, module, "--offline"],
        cwd=ROOT,
        env=program.environment,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stderr) == (130, "")


def test_a_prompt_on_the_command_line_is_the_first_one(tmp_path):
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        person = Person(tmp_path, server, "do this", "--name", "Anna")
        person.shows("› do this", r"One\.", rf"{PROMPT} *$")
        person.presses("q\r")
        assert person.ended()[0] == 0

    found = events(person.log())
    assert said(found, "user") == ["do this"]
    assert has("Renamed", name="Anna")(found)


@pytest.mark.parametrize("where", ["--store", "LEFTFOLD_STORE"])
def test_a_store_that_is_not_there_is_said(tmp_path, where):
    program = Program(tmp_path)

    def run(path, *arguments):
        if where == "--store":
            return program.run(where, path, *arguments)
        return program.run(*arguments, environment={where: str(path)})

    gone = run(tmp_path / "typo" / "logs", "--offline", "-p", "hello")
    assert gone.code == 2
    assert f"{where}: {tmp_path}/typo/logs: there is no directory {tmp_path}/typo" in gone.complaint
    assert not (tmp_path / "typo").exists()
    looked = run(tmp_path / "logs", "list", "--all")
    assert (looked.code, looked.out) == (0, "")
    assert looked.err == f"leftfold: there is no store yet: {tmp_path}/logs\nno conversations\n"
    new = run(tmp_path / "logs", "--offline", "-p", "hello")
    assert (new.code, new.err) == (0, f"leftfold: a new store: {tmp_path}/logs\n")
    assert run(tmp_path / "logs", "--offline", "-p", "hello").err == ""


def test_a_pipe_that_stays_open_beside_a_prompt_is_waited_for_but_not_in_silence(tmp_path):
    program = Program(tmp_path)
    with program.started("--offline", "-p", "hello", stdin=subprocess.PIPE) as process:
        assert b"waiting for the end of standard input" in process.stderr.readline()
        done = finish(process)

    assert done.code == 0
    assert done.out


def test_what_is_whole_at_standard_input_is_read_in_silence(home):
    done = run_here("--offline", "-p", "-", stdin=b"hello")

    assert (done.code, "waiting" in done.err) == (0, False)
