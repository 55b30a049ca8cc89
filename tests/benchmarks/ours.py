"""Ours by the rules of the peers' scripts: ``python -m tests.benchmarks.ours``.

N_APPEND messages, one at a time, durable; a conversation of each of SIZES, resumed in a process of
its own. One line of JSON, as the other scripts print it.
"""

import json
import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from uuid import UUID

from domain.projections.context import request_of
from tests.benchmarks import appending, workload
from tests.benchmarks.measure import Samples, machine


def main():
    if sys.argv[1:]:
        folder, conversation_id, snapshots = sys.argv[1:]
        print(_resumed(Path(folder), UUID(conversation_id), snapshots == "kept"))
        return
    appends = int(os.environ.get("N_APPEND", "1000"))
    sizes = [int(size) for size in os.environ.get("SIZES", "1000,10000").split(",")]
    with tempfile.TemporaryDirectory(prefix="leftfold-bench-") as folder:
        logs = {size: workload.fill(Path(folder), size) for size in sizes}
        found = {
            "peer": "leftfold",
            "versions": f"leftfold, py {machine()['python']}",
            "append": {
                "recorder": _appended(Path(folder), appends, appending.inserts),
                "Application.save": _appended(Path(folder), appends, appending.saves),
            },
            "resume_s": {
                size: {kept: _in_a_process(folder, logs[size], kept) for kept in ("kept", "alone")}
                for size in sizes
            },
        }
    print(json.dumps(found))


def _appended(folder, appends, run_of):
    with workload.conversations(folder, durable=True) as app:
        run, took = run_of(app), []
        while len(took) < appends:
            took += run()
    samples = Samples.of(took)
    microseconds = {"median_us": samples.median, "p99_us": samples.p99}
    return {name: round(value * 1e6, 1) for name, value in microseconds.items()}


def _in_a_process(folder, conversation_id, kept):
    command = [sys.executable, "-m", __spec__.name, folder, str(conversation_id), kept]
    done = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True)
    return float(done.stdout)


def _resumed(folder, conversation_id, snapshots):
    """Return the seconds from a log to the next request's body; the imports are no part of it."""
    began = time.perf_counter()
    with workload.conversations(folder, snapshots=snapshots) as app:
        conversation = app.get(conversation_id)
        assert request_of(conversation, conversation.leaf).body
        return time.perf_counter() - began


if __name__ == "__main__":
    main()
