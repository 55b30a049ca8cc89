"""Two programs on one conversation: the second is told, and offered a copy or a look."""

import os
import subprocess
import sys
from pathlib import Path

import pexpect
import pytest

MAIN = Path(__file__).parents[2] / "app" / "main.py"


@pytest.fixture
def first(home, tmp_path):
    """A REPL that has a conversation open; yields its id."""
    work = tmp_path / "work"
    work.mkdir()
    environment = {**os.environ, "TERM": "dumb"}
    repl = pexpect.spawn(
        sys.executable, [str(MAIN), "--offline"], cwd=work, env=environment, encoding="utf-8"
    )
    repl.expect("leftfold>", timeout=120)
    repl.send("hello there\r")
    repl.expect("offline model", timeout=120)
    repl.expect("leftfold>", timeout=120)
    [log] = (home / "conversations").glob("*.jsonl")
    yield repl, log.stem, work
    repl.close(force=True)


def test_a_second_program_is_told_who_holds_it_until_the_holder_dies(first):
    repl, conversation_id, work = first
    again = [sys.executable, str(MAIN), "--offline", "-r", conversation_id]

    told = subprocess.run(
        [*again, "-p", "hi"], cwd=work, capture_output=True, text=True, check=False
    )
    assert told.returncode == 1
    assert f"pid {repl.pid}" in told.stderr
    assert f"--fork {conversation_id}" in told.stderr

    second = pexpect.spawn(again[0], again[1:], cwd=work, encoding="utf-8", env=dict(os.environ))
    second.expect(f"pid {repl.pid}", timeout=120)
    second.expect("Go on in a copy")
    second.send("fork\r")
    second.expect("Restored 2 messages", timeout=120)
    second.close(force=True)

    third = pexpect.spawn(again[0], again[1:], cwd=work, encoding="utf-8", env=dict(os.environ))
    third.expect("Go on in a copy", timeout=120)
    third.send("look\r")
    third.expect("hello there", timeout=120)
    third.expect(pexpect.EOF)

    repl.kill(9)
    repl.wait()
    after = subprocess.run(
        [*again, "-p", "hi"], cwd=work, capture_output=True, text=True, check=False
    )
    assert after.returncode == 0
