"""Start-up: whole processes, what they import, and when the prompt is on the screen."""

import os
import socket
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
BARE, ANTHROPIC = "limit: python -c pass", "limit: python -c 'import anthropic'"
BARE_PROMPT = "limit: a bare prompt of prompt_toolkit, on screen"
PROMPT, CONTINUED = "REPL, prompt on screen", "REPL, -c with 21 messages, prompt on screen"
PAST = "REPL, -c with 21 messages, what was said stands above it"
FIRST_REQUEST = "leftfold -p, to its first request"
_BARE_PROMPT = "from prompt_toolkit import PromptSession; PromptSession('leftfold> ').prompt()"
PATIENCE = 20


def environment(home):
    """Return an environment with a home of its own and no key."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("ANTHROPIC_")}
    return kept | {
        "LEFTFOLD_HOME": str(home),
        "TERM": "xterm-256color",
        "PROMPT_TOOLKIT_NO_CPR": "1",
        "PYTHONDONTWRITEBYTECODE": "",
    }


def fill(home):
    """Write conversations of moderate length, the newest one of 21 messages; return a longer one's id."""
    folder = home / "conversations"
    for _ in range(20):
        workload.fill(folder, 30)
    longer = workload.fill(folder, 300)
    workload.fill(folder, 21, cwd=str(home))  # its last call has a result
    return longer


def commands(home, conversation_id):
    """Whole processes, from start to end."""
    given = {
        "leftfold --help": ["--help"],
        "leftfold list --all": ["list", "--all"],
        "leftfold show": ["show", str(conversation_id)],
        "leftfold log": ["log", str(conversation_id)],
    }
    runs = {BARE: process(["-c", "pass"], home)}
    runs |= {name: process([str(MAIN), *args], home) for name, args in given.items()}
    return Comparison("start-up", runs, tuple(Budget(name, 0.3) for name in given))


def prompts(home):
    """Until a person can type, in a terminal."""
    repl = [str(MAIN), "--offline"]
    runs = {
        BARE_PROMPT: _shown(["-c", _BARE_PROMPT], home),
        PROMPT: _shown(repl, home),
        CONTINUED: _shown([*repl, "-c"], home),
        PAST: _shown([*repl, "-c"], home, "Restored 21 messages"),
    }
    budgets = (Budget(PROMPT, 1.5, BARE_PROMPT), Budget(CONTINUED, 1.8, BARE_PROMPT))
    return Comparison("the prompt", runs, budgets)


def first_request(home):
    """Until `-p` has sent the first byte of its request, to a server on loopback."""
    runs = {
        ANTHROPIC: process(["-c", "import anthropic"], home),
        FIRST_REQUEST: _first_request(home),
    }
    return Comparison("a request of -p", runs, (Budget(FIRST_REQUEST, 1.2, ANTHROPIC),))


def process(arguments, home):
    def run():
        began = time.perf_counter()
        subprocess.run(
            [sys.executable, *arguments],
            env=environment(home),
            stdin=subprocess.DEVNULL,
            stdout=subprocess.DEVNULL,
            check=True,
        )
        return [time.perf_counter() - began]

    return run


def _shown(arguments, home, expected="leftfold>"):
    """Return a run that starts a program in a terminal and waits until it shows what is *expected*."""

    def run():
        began = time.perf_counter()
        child = pexpect.spawn(
            sys.executable, arguments, env=environment(home), cwd=home, timeout=PATIENCE
        )
        child.expect(expected)
        took = time.perf_counter() - began
        child.close(force=True)
        return [took]

    return run


def _first_request(home):
    def run():
        with socket.create_server(("127.0.0.1", 0)) as server:
            server.settimeout(PATIENCE)
            url = f"http://127.0.0.1:{server.getsockname()[1]}"
            variables = {"ANTHROPIC_API_KEY": "none", "ANTHROPIC_BASE_URL": url}
            began = time.perf_counter()
            with subprocess.Popen(
                [sys.executable, str(MAIN), "-p", "hello"],
                env=environment(home) | variables,
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
            ) as process:
                connection, _address = server.accept()
                with connection:
                    assert connection.recv(1)
                    took = time.perf_counter() - began
                    process.kill()
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
