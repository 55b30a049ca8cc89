"""Secrets in what tools print reach neither the log nor the model; what a person types does."""

import json

import pytest

from tests.app.programs import Program
from tests.server import ScriptedServer, call, reply

KEY = "AKIAQWERTYUIOPASDFGH"
MARK = "[masked: AWS access key]"


def masks(program, value):
    program.home.mkdir(exist_ok=True)
    (program.home / "settings.toml").write_text(f"mask_secrets = {value}\n")


def everything(program):
    """All that was written into the home."""
    return b"".join(path.read_bytes() for path in program.home.rglob("*") if path.is_file()).decode(
        "utf-8", "replace"
    )


def test_a_key_that_a_tool_prints_is_neither_recorded_nor_sent_and_the_person_is_told(tmp_path):
    (tmp_path / "work").mkdir()
    (tmp_path / "work" / ".env").write_text(f"KEY={KEY}\n")
    thinking = {"type": "thinking", "thinking": "hm", "signature": f"sig{KEY}"}
    replies = [
        reply(thinking, call("bash", command="cat .env; seq 4000; cat .env")),
        reply("Done."),
    ]
    with ScriptedServer(replies) as server:
        program = Program(tmp_path, server)
        done = program.run("-p", "look", "--yes", "--thinking", "low")

    (result,) = (
        block
        for message in server.requests[1].json["messages"]
        for block in message["content"]
        if block["type"] == "tool_result"
    )
    assert json.dumps(result).count(MARK) == 2
    assert "2 secrets masked here" in json.dumps(result)
    assert "masked in the output of bash: AWS access key" in done.err
    assert everything(program).replace(f"sig{KEY}", "").count(KEY) == 0
    assert f"sig{KEY}" in json.dumps(server.requests[1].json), "a signature was touched"


def test_what_the_person_types_stays_as_it_is(tmp_path):
    with ScriptedServer([reply("I see.")]) as server:
        program = Program(tmp_path, server)
        done = program.run("-p", f"is {KEY} a key?")

    assert KEY in json.dumps(server.requests[0].json)
    assert KEY in everything(program)
    assert done.err == ""


def test_the_setting_switches_it_off(tmp_path):
    with ScriptedServer([reply(call("bash", command=f"echo {KEY}")), reply("Done.")]) as server:
        program = Program(tmp_path, server)
        masks(program, "false")
        program.run("-p", "look", "--yes")

    assert MARK not in json.dumps(server.requests[1].json)


@pytest.mark.parametrize("value", ["true", "false"])
def test_a_project_may_not_say_it(tmp_path, value):
    program = Program(tmp_path)
    (program.cwd / ".leftfold.toml").write_text(f"mask_secrets = {value}\n")
    done = program.run("-p", "hello", "--offline")

    assert done.code == 2
    assert "'mask_secrets' is for the user's own settings" in done.err
