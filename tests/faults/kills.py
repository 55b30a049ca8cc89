"""Kill a program at every system call that touches the store, one after the other.

    python -m tests.faults.kills FOLDER SWEEP…

runs the sweeps below and prints what came of each as JSON. It is a process of its own because
it forks: the program that is killed starts warm, so a kill costs milliseconds.
"""

import json
import os
import shutil
import sys
import traceback
from pathlib import Path

from tests.faults import history
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
        with open(self._read, "rb") as file:
            return [json.loads(line) for line in file]


def sweep(root, begin, program, check, *, prepare=lambda folder: None):
    """Run *program* after *begin*, killed at each of its calls; *check*(folder, heard) each time.

    Returns the number of kills, and what went wrong.
    """
    kills, failures = 0, []
    for number in range(1, LIMIT):
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
        except Exception:
            failures.append(
                f"kill {number}, {where}, after {len(heard)}:\n{traceback.format_exc()}"
            )
        if where is None:
            return kills, failures
        kills += 1
    raise AssertionError("it never ended")


# -- the recorder --------------------------------------------------------------------------------


def recorder(root, *, cold=False, steps=history.STEPS):
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

        more, wrong = sweep(root, begin, program, _check_history)
        kills += more
        failures += [f"{step.name}, {text}" for text in wrong]
    return kills, failures


def _check_history(folder, heard):
    history.check(folder, [history.Ack(**ack) for ack in heard])


def hurt_recorder(root, tail):
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
        prepare=lambda folder: history.damaged_before(folder, tail),
    )


SWEEPS = {
    "warm": recorder,
    "cold": lambda root: recorder(root, cold=True),
    **{tail: lambda root, tail=tail: hurt_recorder(root, tail) for tail in history.TAILS},
}


def main():
    root = Path(sys.argv[1])
    for name in sys.argv[2:]:
        kills, failures = SWEEPS[name](root)
        print(json.dumps({"sweep": name, "kills": kills, "failures": failures}), flush=True)


if __name__ == "__main__":
    main()
