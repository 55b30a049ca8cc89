"""Kill a program at every system call that touches the store, one after the other.

    python -m tests.faults.kills FOLDER STRIDE SWEEP…

runs the sweeps below, with a kill at one call of STRIDE, and prints what came of each as JSON. A
sweep that is the address of a server runs turns of the agent against it. It is a process of its own
because it forks: the program that is killed starts warm, so a kill costs milliseconds.
"""

import asyncio
import json
import os
import shutil
import sys
import threading
import traceback
from contextlib import closing
from functools import partial
from pathlib import Path
from typing import NamedTuple

from uuid_utils.compat import uuid7

from app.application import Conversations
from app.open_conversation import OpenConversation
from app.verification import verify
from domain.calls import OUTCOME_UNKNOWN
from tests.app.doubles import Desk, begin
from tests.faults import history, moves
from tests.faults.syscalls import killed_at

LIMIT = 5000


class Channel:
    """What the killed program said before it died: lines through a pipe."""

    def __init__(self):
        self._read, self._write = os.pipe()

    def say(self, value):
        os.write(self._write, json.dumps(value).encode() + b"\n")

    def heard(self):
        os.close(self._write)
        with os.fdopen(self._read, "rb") as file:
            return [json.loads(line) for line in file]


def sweep(root, begin, program, check, *, stride, first=0, prepare=lambda folder: None):
    """Run *program* after *begin*, killed at its calls; *check*(folder, heard) each time.

    *stride*: it is killed at one call of so many; *first* says which, so that sweeps over the same
    calls differ. Returns the number of kills, and what went wrong.
    """
    failures = []
    for kills, number in enumerate(range(1 + first % stride, LIMIT, stride)):
        folder = root / "store"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir(parents=True)
        prepare(folder)
        channel = Channel()
        where = killed_at(
            number,
            folder,
            lambda: begin(folder, channel.say),  # noqa: B023
            lambda begun: program(begun, channel.say),  # noqa: B023
        )
        heard = channel.heard()
        try:
            check(folder, heard)
        except Exception:  # noqa: BLE001 - whatever is wrong is reported
            failures.append(
                f"kill {number}, {where}, after {len(heard)}:\n{traceback.format_exc()}"
            )
        if where is None:
            return kills, failures
    raise AssertionError("it never ended")


# -- the recorder --------------------------------------------------------------------------------


def recorder(root, *, stride, cold=False, steps=history.STEPS):
    """Every kind of save, from nothing; each step by a program that has run, or has just started."""
    kills, failures = 0, []
    for done, step in enumerate(steps):

        def begin(folder, say, done=done):
            recorders, acks = history.run(folder, steps[:done])
            for ack in acks:
                say(vars(ack))
            if cold:
                recorders.close()
                recorders = history.Recorders(folder)
            return recorders

        def program(recorders, say, step=step):
            say(vars(recorders.do(step)))
            recorders.close()

        more, wrong = sweep(root, begin, program, _check_history, stride=stride, first=done)
        kills += more
        failures += [f"{step.name}, {text}" for text in wrong]
    return kills, failures


def _check_history(folder, heard):
    history.check(folder, [history.Ack(**ack) for ack in heard], was_killed=True)


def hurt_recorder(root, tail, *, stride):
    """The next saves to a log whose end a crash has hurt."""
    steps = history.STEPS[1:3]

    def program(recorders, say):
        for step in steps:
            say(vars(recorders.do(step)))

    def check(folder, heard):
        history.check(
            folder,
            [history.Ack(**ack) for ack in heard],
            steps=steps,
            before=history.STEPS[:1],
            damages=history.LEFT_BY_A_CRASH | history.SEALED,
        )

    return sweep(
        root,
        lambda folder, _: history.Recorders(folder),
        program,
        check,
        stride=stride,
        first=list(history.TAILS).index(tail),
        prepare=lambda folder: history.damaged_before(folder, tail),
    )


# -- turns of the agent --------------------------------------------------------------------------

PROMPT = "run: echo once >> ran"


class Acknowledging(OpenConversation):
    """Says which version is in the log, each time a `record` has returned."""

    say = staticmethod(lambda version: None)

    def record(self, command, *, anywhere=False):
        super().record(command, anywhere=anywhere)
        self.say(self.conversation.version)


class Office:
    """An agent that works in *root*, and its store."""

    def __init__(self, root, url, say=None):
        self.cwd = root / "work"
        self.cwd.mkdir(exist_ok=True)
        self.conversations = Conversations({"LEFTFOLD_STORE": str(root / "store")})
        [known] = list(self.conversations.ids()) or [uuid7()]
        at_hand = Acknowledging(self.conversations, known, begin(str(self.cwd)))
        at_hand.say = say or (lambda version: None)
        self.desk = Desk(self.conversations, Server(url), self.cwd, at_hand=at_hand)

    def say(self, prompt):
        return asyncio.run(self.desk.say(prompt))


class Server(NamedTuple):
    url: str


def turns(root, url, *, stride):
    """A turn with a tool; then the next one, once for every log that a kill has left."""
    resumed = set()
    warm = root.with_name(f"{root.name}-warm")
    warm.mkdir(parents=True)
    Office(warm, url).say("hello")  # what is imported on the way is not imported under the tracer
    assert threading.active_count() == 1

    def check(folder, heard):
        with closing(Conversations({"LEFTFOLD_STORE": str(folder)})) as conversations:
            found = _check_log(conversations, heard)
        ran = _ran(root)
        assert ran <= found.count("ToolStarted"), "it ran before it was recorded"
        if tuple(found) not in resumed:
            resumed.add(tuple(found))
            outcome = in_child(lambda: _resume(root, url, found))
            assert outcome == "done", outcome
            assert _ran(root) == ran, "it was run again"

    kills, failures = sweep(
        root,
        lambda folder, say: Office(folder.parent, url, say),
        lambda office, _: office.say(PROMPT),
        check,
        stride=stride,
    )
    assert len(resumed) >= 7, "the turn has more steps than that"
    return kills, failures


def _ran(root):
    trace = root / "work" / "ran"
    return len(trace.read_text().splitlines()) if trace.exists() else 0


def _check_log(conversations, heard):
    ids = list(conversations.ids())
    if not ids:
        assert heard == []
        return []
    [known] = ids
    versions = [event.originator_version for event in conversations.events_of(known)]
    assert versions == list(range(1, len(versions) + 1))
    assert len(versions) >= max(heard, default=0), "an acknowledged event is missing"
    report = verify(conversations, known)
    assert {finding.what for finding in report.findings} <= history.LEFT_BY_A_CRASH
    return [event.TOPIC for event in conversations.events_of(known)]


def _resume(root, url, before):
    office = Office(root, url)
    outcome = office.say("hello")
    known = office.desk.at_hand.id
    found = list(office.conversations.events_of(known))
    assert [event.TOPIC for event in found][: len(before)] == before
    messages = office.desk.talk.messages()
    said = [m.content.text for m in messages if m.content.role == "user" and m.content.text]
    assert said == ([PROMPT, "hello"] if before else ["hello"])
    called = [block["id"] for m in messages for block in m.content.tool_uses]
    results = [result for m in messages for result in m.content.tool_results]
    assert [result["tool_use_id"] for result in results] == called
    if before.count("ToolStarted") and before[-1] == "ToolStarted":
        assert results[0]["content"] == OUTCOME_UNKNOWN
    assert verify(office.conversations, known).ok
    office.say("hello again")
    after = [event.TOPIC for event in office.conversations.events_of(known)]
    assert after[len(found) :] == ["MessageAppended", "MessageAppended", "TurnEnded"]
    return outcome


def in_child(function):
    """Return what *function* returns in a process of its own."""
    channel = Channel()
    pid = os.fork()
    if pid == 0:
        try:
            channel.say(function())
        except BaseException:  # noqa: BLE001 - the parent hears of it
            channel.say(traceback.format_exc())
        finally:
            os._exit(0)
    os.waitpid(pid, 0)
    [value] = channel.heard()
    return value


# -- two stores ----------------------------------------------------------------------------------


def sync(root, *, stride):
    """A sync that has something of every kind to do."""
    return sweep(root, moves.prepared, moves.synced, moves.check, stride=stride)


SWEEPS = {
    "sync": sync,
    "warm": recorder,
    "cold": partial(recorder, cold=True),
    **{tail: partial(hurt_recorder, tail=tail) for tail in history.TAILS},
}


def main():
    root = Path(sys.argv[1])
    stride = int(sys.argv[2])
    for name in sys.argv[3:]:
        run = partial(turns, url=name) if name.startswith("http:") else SWEEPS[name]
        kills, failures = run(root, stride=stride)
        print(json.dumps({"sweep": name, "kills": kills, "failures": failures}), flush=True)


if __name__ == "__main__":
    main()
