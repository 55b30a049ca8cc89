"""A real process is killed (SIGKILL) at every system call that touches the store, one by one.

`make test` kills at one call of `STRIDE`, and at another one of them in each step. The killing is
done in a process of its own, see `kills`; what must hold is in `history.check`.
"""

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.history import TAILS
from tests.faults.syscalls import AVAILABLE
from tests.levels import at_level
from tests.server import ScriptedServer

ROOT = Path(__file__).parents[2]
PATIENCE = 600
STRIDE = at_level(quick=5, whole=1)

pytestmark = pytest.mark.skipif(not AVAILABLE, reason="ptrace is Linux's")


def kill(folder, *sweeps, stride=STRIDE):
    """Run *sweeps*; return how many kills were survived, of each."""
    program = [sys.executable, "-m", "tests.faults.kills"]
    command = [*program, str(folder / "kills"), str(stride), *sweeps]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=PATIENCE, check=False
    )
    assert done.returncode == 0, done.stderr
    reports = [json.loads(line) for line in done.stdout.splitlines()]
    assert [report["sweep"] for report in reports] == list(sweeps)
    for report in reports:
        failures = report["failures"]
        assert not failures, f"{len(failures)} of {report['kills']} kills:\n{failures[0]}"
    return [report["kills"] for report in reports]


def test_a_program_that_has_run_for_a_while(fast_folder):
    [kills] = kill(fast_folder, "warm")

    assert kills > 350 // STRIDE


def test_a_program_that_has_just_started(fast_folder):
    [kills] = kill(fast_folder, "cold")

    assert kills > 650 // STRIDE


def test_a_program_that_goes_on_where_a_crash_has_hurt_the_log(fast_folder):
    kills = kill(fast_folder, *TAILS)

    assert min(kills) > 25 // STRIDE


def test_two_stores_that_are_brought_in_step(fast_folder):
    """The next sync completes what was begun: no event is lost, no conversation is there twice."""
    stride = at_level(quick=23, whole=1)
    [kills] = kill(fast_folder, "sync", stride=stride)

    assert kills > 300 // stride


def test_turns_of_the_agent(fast_folder):
    """No tool runs twice, no event that was acknowledged is lost, and the next turn just works."""
    with ScriptedServer() as server:
        stride = at_level(quick=2, whole=1)  # a turn is one step: each of its saves is met
        [kills] = kill(fast_folder, server.url, stride=stride)

    assert kills > 90 // stride
