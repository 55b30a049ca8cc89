"""Hooks beside the real program, and what settings may say of them."""

import json
import signal

import pytest

from app.application import Conversations
from tests.app.hooks.test_runner import renamed, started
from tests.app.in_process import run
from tests.app.programs import Program, is_running, until
from tests.server import Gate, ScriptedServer, reply

HOOK = """
[[hooks]]
name = "one"
events = ["TurnEnded", "MessageAppended"]
command = 'cat >> "$LEFTFOLD_HOME/told"; env | grep -c SECRET >> "$LEFTFOLD_HOME/told"; true'
"""


def settings(program, text):
    program.home.mkdir(exist_ok=True)
    (program.home / "settings.toml").write_text(text)


def told(program):
    path = program.home / "told"
    lines = path.read_text().splitlines() if path.exists() else []
    return [json.loads(line) for line in lines if line.startswith("{")]


def outcomes(program):
    return [event["state"]["outcome"] for event in told(program) if event["topic"] == "TurnEnded"]


def pid_in(program):
    path = program.home / "pid"
    return path.exists() and path.read_text()


@pytest.fixture
def program(tmp_path):
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        found = Program(tmp_path, server, AWS_SECRET_ACCESS_KEY="SECRET")
        settings(found, HOOK)
        yield found


def test_a_turn_does_not_wait_for_hooks_and_they_are_run_to_the_end(program):
    assert program.run("-p", "hello").out == "One.\n"
    until(lambda: outcomes(program) == ["done"])

    program.run("-p", "hello", "-c")
    until(lambda: outcomes(program) == ["done", "done"])
    assert [event["topic"] for event in told(program)] == [
        *("MessageAppended", "MessageAppended", "TurnEnded") * 2
    ]
    assert "1" not in (program.home / "told").read_text().splitlines(), "a hook had a credential"


def test_what_a_killed_run_has_recorded_is_told(tmp_path):
    with Gate() as gate, ScriptedServer([reply("One.", gate=gate)]) as server:
        program = Program(tmp_path, server)
        settings(program, HOOK)
        with program.started("-p", "hello") as process:
            gate.wait()
            process.send_signal(signal.SIGKILL)
            process.wait()
        until(lambda: told(program))

    assert [event["topic"] for event in told(program)] == ["MessageAppended"]


def test_a_hook_that_is_parked_is_told_of_and_run_again_by_its_name(tmp_path, monkeypatch):
    monkeypatch.setattr("app.hooks.runner.PAUSES", ())
    monkeypatch.setenv("LEFTFOLD_HOME", str(tmp_path / "home"))
    program = Program(tmp_path)
    settings(program, one(name="bad", events=["Renamed"], command="exit 3"))
    assert run("hooks", "list", "--json").objects[0]["behind"] == 0
    with Conversations({"LEFTFOLD_STORE": str(program.store)}, home=program.home) as conversations:
        renamed(started(conversations, program.cwd), "one")
    ran = run("hooks", "run", "bad", "--json")
    (row,) = run("hooks", "list", "--json").objects

    assert (ran.code, [line["outcome"] for line in ran.objects]) == (1, ["parked"])
    assert (row["hook"], row["is_parked"], row["behind"]) == ("bad", True, 1)
    assert row["failure"]["message"] == "exit code 3"
    assert "hook bad is parked" in program.run("-p", "hello", "--offline").err
    settings(program, one(name="bad", events=["Renamed"], command="true"))
    assert run("hooks", "run", "bad").code == 0
    assert run("hooks", "list", "--json").objects[0]["failure"] is None


def test_a_runner_that_is_ended_by_a_signal_leaves_no_command_behind(tmp_path):
    program = Program(tmp_path)
    settings(program, HOOK.replace("cat >>", 'echo $$ > "$LEFTFOLD_HOME/pid"; sleep 1000; cat >>'))
    program.run("hooks", "list")
    with program.started("hooks", "run", "--follow") as process:
        program.run("-p", "hello", "--offline")
        pid = int(until(lambda: pid_in(program)))
        process.send_signal(signal.SIGTERM)
        until(lambda: not is_running(pid))


def test_a_run_inside_of_a_hook_over_its_own_store_is_refused(tmp_path):
    program = Program(tmp_path, LEFTFOLD_HOOK="one", LEFTFOLD_STORE=str(tmp_path / "store"))
    refused = program.run("-p", "again", "--offline")
    elsewhere = program.run("-p", "again", "--offline", "--store", str(tmp_path / "other"))

    assert refused.code == 2
    assert "hook one" in refused.err
    assert elsewhere.code == 0


# -- settings --------------------------------------------------------------------------------------


def one(**more):
    given = {"name": "one", "events": ["TurnEnded"], "command": "true"} | more
    return "[[hooks]]\n" + "".join(f"{key} = {json.dumps(value)}\n" for key, value in given.items())


@pytest.mark.parametrize(
    ("text", "complaint"),
    [
        (one(events=["TurnEnd"]), "TurnEnded"),
        (one(events=[]), "hooks"),
        (one(name="../x"), "hooks"),
        (one(name="one\n"), "hooks"),
        (one(timeout=0), "timeout"),
        (one(tools=["bash"]), "about a tool"),
        (one(cmd="x"), "cmd"),
        (one() + one(), "two hooks"),
        ("hooks = 5", "hooks"),
    ],
)
def test_a_hook_that_makes_no_sense_is_refused_with_its_place(
    tmp_path, monkeypatch, text, complaint
):
    monkeypatch.setenv("LEFTFOLD_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text(text)
    done = run("hooks", "list")

    assert done.code == 2
    assert complaint in done.complaint
    assert "settings.toml" in done.complaint


def test_a_project_names_no_hooks(tmp_path):
    program = Program(tmp_path)
    (program.cwd / ".leftfold.toml").write_text(one(command="touch pwned"))
    done = program.run("-p", "hello", "--offline")

    assert done.code == 2
    assert "'hooks' is for the user's own settings" in done.err
    assert not (program.cwd / "pwned").exists()


def test_config_shows_hooks_and_an_unknown_name_is_said(tmp_path, monkeypatch):
    monkeypatch.setenv("LEFTFOLD_HOME", str(tmp_path))
    (tmp_path / "settings.toml").write_text(one())

    assert run("config", "--json").objects[0]["hooks"]["value"][0]["name"] == "one"
    assert "'two'" in run("hooks", "run", "two").complaint
