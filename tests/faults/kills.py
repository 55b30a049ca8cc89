"""Kill a program at every system call that touches the store, one after the other.

    python -m tests.faults.kills FOLDER SWEEP

runs one of the sweeps below and prints what came of it as JSON. It is a process of its own because
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


def sweep(root, program, check, *, prepare=lambda folder: None, numbers=None):
    """Run *program*(folder, say) in *root*, killed at each call; *check*(folder, heard) each time.

    Returns the number of kills, and what went wrong.
    """
    kills, failures = 0, []
    for number in numbers or range(1, LIMIT):
        folder = root / "store"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        prepare(folder)
        channel = Channel()
        where = killed_at(number, folder, lambda: program(folder, channel.say))  # noqa: B023
        heard = channel.heard()
        try:
            check(folder, heard)
        except Exception:
            failures.append(f"kill {number}, {where}, after {len(heard)}:\n{traceback.format_exc()}")
        if where is None:
            break
        kills += 1
    return {"kills": kills, "acknowledged": len(heard), "failures": failures}


# -- the recorder --------------------------------------------------------------------------------


def recorder(root, *, cold=False):
    """Every kind of save, from nothing."""

    def program(folder, say):
        history.run(folder, acknowledge=lambda ack: say(vars(ack)), cold=cold)

    def check(folder, heard):
        history.check(folder, [history.Ack(**ack) for ack in heard])

    return sweep(root, program, check)


def hurt_recorder(root, tail):
    """The next saves to a log whose end a crash has hurt."""
    steps = history.STEPS[1:3]

    def program(folder, say):
        history.run(folder, acknowledge=lambda ack: say(vars(ack)), steps=steps)

    def check(folder, heard):
        history.check(
            folder,
            [history.Ack(**ack) for ack in heard],
            steps=steps,
            before=history.STEPS[:1],
            damages=history.LEFT_BY_A_CRASH | history.SEALED,
        )

    return sweep(root, program, check, prepare=lambda f: history.damaged_before(f, tail))


SWEEPS = {
    "recorder": recorder,
    "cold recorder": lambda root: recorder(root, cold=True),
    **{
        tail: lambda root, tail=tail: hurt_recorder(root, tail) for tail in history.TAILS
    },
}


def main():
    root, name = Path(sys.argv[1]), sys.argv[2]
    print(json.dumps(SWEEPS[name](root)))


if __name__ == "__main__":
    main()
