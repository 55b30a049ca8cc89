"""The real program, run as a person would: a process with its own home, directory and environment.

    program = Program(tmp_path, server)
    done = program.run("-p", "hello")
    assert (done.code, done.out) == (0, "Hi.\n")
    assert topics(program.log()) == ["Started", …]

Nothing waits for a time: `until` waits for a condition, and gives up loudly.
"""

import json
import os
import subprocess
import sys
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from time import monotonic, sleep
from uuid import UUID

import pexpect

from tests.app import warm
from tests.conftest import OURS
from tests.scanning import scan

ROOT = Path(__file__).parents[2]
MAIN = ROOT / "app" / "main.py"
PATIENCE = 60.0
"""Seconds until a test gives up: long, because machines are busy; never waited for in vain."""

_LIMITED = """\
import os, resource, sys
resource.setrlimit(resource.RLIMIT_FSIZE, (int(sys.argv[1]),) * 2)
os.execv(sys.argv[2], sys.argv[2:])
"""


@dataclass(frozen=True)
class Done:
    """What came of a process."""

    code: int
    out: str
    err: str

    @property
    def objects(self):
        """The output as JSON, an object a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def complaint(self):
        """What stands on stderr: one or two lines for a person, never a traceback."""
        lines = self.err.splitlines()
        assert 1 <= len(lines) <= 2, self.err
        return self.err


class Program:
    """The program with *home* and *cwd* below *folder*, talking to *server* (a `ScriptedServer`).

    Without a server there is no key: give ``--offline``. *environment* adds variables. It starts
    warm where that shows the same (`tests.app.warm`), unless it *is_cold*.
    """

    is_cold = False

    def __init__(self, folder, server=None, **environment):
        self.home = folder / "home"
        self.store = self.home / "conversations"
        self.cwd = folder / "work"
        self.cwd.mkdir(exist_ok=True)
        kept = {name: value for name, value in os.environ.items() if not name.startswith(OURS)}
        for size in ("COLUMNS", "LINES"):  # pytest-xdist's, not those of our terminals
            kept.pop(size, None)
        for name in warm.NO_PROGRAM_HAS:
            kept.pop(name, None)
        self.environment = {
            **kept,
            "HOME": str(folder),
            "LEFTFOLD_HOME": str(self.home),
            "NO_PROXY": "127.0.0.1",
            "TERM": "xterm-256color",
            **environment,
        }
        if server is not None:
            self.environment |= {"ANTHROPIC_BASE_URL": server.url, "ANTHROPIC_API_KEY": "test"}

    def command(self, *arguments):
        return [sys.executable, str(MAIN), *map(str, arguments)]

    def at_terminal(self, *arguments, size=(40, 800), **environment):
        """Start it in a terminal of *size* lines and columns: so wide that no line is broken."""
        environment = self.environment | environment
        spawn = warm.Terminal if self.may_be_warm(environment) else pexpect.spawn
        command, *rest = self.command(*arguments)
        child = spawn(
            command,
            rest,
            cwd=str(self.cwd),
            env=environment,
            encoding="utf-8",
            dimensions=size,
            timeout=PATIENCE,
        )
        child.ptyproc.delayafterclose = 0  # all of its output is read, or it is killed
        return child

    def popen(self, *arguments, redirected="", most_bytes=None, environment=(), **streams):
        """Start it; return the `Popen`, whose *streams* are given.

        *redirected*: other streams, as a shell is told them (``<&- >/dev/full``); *most_bytes*: no
        file may grow beyond that (a full disk).
        """
        environment = self.environment | dict(environment)
        command = self.command(*arguments)
        if self.may_be_warm(environment):
            how = {"redirected": redirected, "most_bytes": most_bytes}
            return warm.Popen(command, cwd=self.cwd, env=environment, **how, **streams)
        if most_bytes is not None:
            command = [sys.executable, "-S", "-E", "-c", _LIMITED, str(most_bytes), *command]
            environment["PYTHONDONTWRITEBYTECODE"] = "1"  # a cut .pyc would poison others
        if redirected:
            command = ["sh", "-c", f'exec "$@" {redirected}', "sh", *command]
        return subprocess.Popen(command, cwd=self.cwd, env=environment, **streams)

    def may_be_warm(self, environment):
        return not self.is_cold and warm.is_possible(environment)

    def run(self, *arguments, stdin=None, **how):
        """Run to the end, as `popen` does. *stdin*: text or bytes to pipe in; nothing is /dev/null."""
        given = stdin.encode() if isinstance(stdin, str) else stdin
        with self.popen(
            *arguments,
            stdin=subprocess.DEVNULL if given is None else subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            **how,
        ) as process:
            try:
                return finish(process, given)
            except BaseException:
                process.kill()
                raise

    @contextmanager
    def started(self, *arguments, stdin=subprocess.DEVNULL, **how):
        """Start it, hand the `Popen` to the block, and leave nothing of it behind."""
        process = self.popen(
            *arguments, stdin=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, **how
        )
        with process:
            try:
                yield process
            finally:
                process.kill()

    # -- what is in the store --------------------------------------------------------------------

    def logs(self):
        """The paths of all logs, oldest first."""
        return sorted(self.store.glob("*.jsonl"))

    def log(self):
        """The path of the only log."""
        [path] = self.logs()
        return path

    def id(self):
        return UUID(self.log().stem)

    def has_logged(self, condition):
        """Whether there is a log, and *condition* holds for its events."""
        return bool(self.logs()) and condition(events(self.log()))


def finish(process, given=None):
    """Wait for a started *process*, which reads what is *given*; return what came of it."""
    out, err = process.communicate(given, timeout=PATIENCE)
    return _done(process.returncode, out, err)


def _done(code, out, err):
    done = Done(code, out.decode(), err.decode("utf-8", "replace"))
    assert "Traceback" not in done.err, done.err
    return done


def until(condition, process=None):
    """Wait until *condition* gives something true, and return that; *process* must live on."""
    deadline = monotonic() + PATIENCE
    while not (value := condition()):
        if process is not None and process.poll() is not None:
            raise AssertionError(_done(process.returncode, *process.communicate()))
        assert monotonic() < deadline, "it never happened"
        sleep(0.01)
    return value


# -- logs ----------------------------------------------------------------------------------------


def events(log):
    """The events that a reader believes, as JSON objects: v, topic, state."""
    return [
        {"v": line.version, "topic": line.topic, "state": json.loads(line.state)}
        for line in scan(log.read_bytes()).lines
    ]


def topics(log):
    return [event["topic"] for event in events(log)]


def messages(found):
    return [event["state"]["message"] for event in found if event["topic"] == "MessageAppended"]


def results(found):
    """The tool results among the events *found*: id → content, each id once."""
    blocks = [
        block
        for message in messages(found)
        for block in message["content"]
        if block["type"] == "tool_result"
    ]
    assert len({block["tool_use_id"] for block in blocks}) == len(blocks), blocks
    return {block["tool_use_id"]: block["content"] for block in blocks}


def said(found, role):
    """What *role* said in text, message by message."""
    texts = [
        "".join(block["text"] for block in message["content"] if block["type"] == "text")
        for message in messages(found)
        if message["role"] == role
    ]
    return [text for text in texts if text]


def append_line(log, version, topic, state):
    """Write an event by hand, without a checksum."""
    line = {"v": version, "topic": topic, "state": state}
    with log.open("ab") as file:
        file.write(json.dumps(line).encode() + b"\n")


# -- processes -----------------------------------------------------------------------------------


def is_running(pid):
    """Whether *pid* runs. A zombie does not."""
    with suppress(OSError):
        state = Path(f"/proc/{pid}/stat").read_bytes().rpartition(b")")[2].split()[0]
        return state != b"Z"
    return False
