"""Start-up: whole processes, what they import, and when the prompt is on the screen."""

import os
import subprocess
import sys
import time
from pathlib import Path

import pexpect

from tests.benchmarks import workload
from tests.benchmarks.measure import Budget, Comparison

MAIN = Path(__file__).parents[2] / "app" / "main.py"
HEAVY = (
    "anthropic",
    "prompt_toolkit",
    "rich",
    "pydantic",
    "asyncio",
    "click",
    "eventsourcing",
    "msgspec",
)
BARE = "limit: python -c pass"
PATIENCE = 20


def environment(home):
    """Return an environment with a home of its own and no key."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    return kept | {
        "LEFTFOLD_HOME": str(home),
        "TERM": "xterm-256color",
        "PROMPT_TOOLKIT_NO_CPR": "1",
    }


def fill(home):
    """Write a few conversations of moderate length; return the id of one."""
    folder = home / "conversations"
    for _ in range(20):
        talk = workload.fill(folder, 30)
    return workload.fill(folder, 300) if folder.exists() else talk


def commands(home, conversation_id):
    """Whole processes, from start to end."""
    given = {
        "leftfold --help": ["--help"],
        "leftfold list --all": ["list", "--all"],
        "leftfold show": ["show", str(conversation_id)],
        "leftfold log": ["log", str(conversation_id)],
    }
    runs = {BARE: _process([sys.executable, "-c", "pass"], home)}
    runs |= {
        name: _process([sys.executable, str(MAIN), *args], home) for name, args in given.items()
    }
    runs["REPL, prompt on screen"] = _prompt(home)
    budgets = [Budget(name, 0.3) for name in given]
    return Comparison("start-up", runs, (*budgets, Budget("REPL, prompt on screen", 0.4)))


def _process(command, home):
    def run():
        began = time.perf_counter()
        subprocess.run(command, env=environment(home), stdout=subprocess.DEVNULL, check=True)
        return [time.perf_counter() - began]

    return run


def _prompt(home):
    """Return a run that starts the REPL in a terminal and waits until it asks for a prompt."""

    def run():
        began = time.perf_counter()
        child = pexpect.spawn(
            sys.executable, [str(MAIN), "--offline"], env=environment(home), timeout=PATIENCE
        )
        child.delaybeforesend = None
        child.expect("leftfold>")
        took = time.perf_counter() - began
        child.sendeof()
        child.close(force=True)
        return [took]

    return run


def imported(args, home):
    """Return which heavy modules a command imports, how many modules in all, and the slowest."""
    command = [sys.executable, "-X", "importtime", str(MAIN), *args]
    done = subprocess.run(
        command, env=environment(home), capture_output=True, text=True, check=True
    )
    times = {}
    for line in done.stderr.splitlines():
        if line.startswith("import time:") and "|" in line and "imported" not in line:
            own, _, name = line.removeprefix("import time:").split("|")
            times[name.strip()] = int(own)
    packages = {}
    for name, own in times.items():
        root = name.partition(".")[0]
        packages[root] = packages.get(root, 0) + own
    slowest = sorted(packages.items(), key=lambda item: -item[1])[:8]
    return {
        "modules": len(times),
        "heavy": [name for name in HEAVY if name in times],
        "slowest": [[name, round(own / 1000, 1)] for name, own in slowest],
    }


def import_table(home, conversation_id):
    given = {
        "--help": ["--help"],
        "list": ["list", "--all"],
        "show": ["show", str(conversation_id)],
        "log": ["log", str(conversation_id)],
    }
    return {name: imported(args, home) for name, args in given.items()}
