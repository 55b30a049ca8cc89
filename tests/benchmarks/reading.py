"""Reading: resume, compaction, the past, forks, lists, verification, projections, memory."""

import subprocess
import sys
from itertools import islice

from app.catalogue import rows
from app.verification import verify
from domain.events import MessageAppended
from domain.projections.context import request_of
from tests.benchmarks import library, limits, workload
from tests.benchmarks.measure import Budget, Comparison, timed
from tests.benchmarks.pi import OPEN

STRUCTS, DICTS = "limit: lines to structs, bodies raw", "limit: lines to dicts"
SHOWN, REPLAYED = "ours: open + last 20", "ours: replay + last 20"
CONTEXT, ALONE = "ours: open + context", "ours: open + context, from the log alone"
SQLITE = "eventsourcing.sqlite: get"
SHOW = 20
LONG = 10_000
"""From here on what it costs to begin is no part of what is measured."""


class Logs:
    """Logs of each size that is asked for, written once."""

    def __init__(self, folder):
        self.folder = folder
        self.folder.mkdir()
        self._made = {}

    def of(self, entries, **more):
        key = (entries, *more.items())
        if key not in self._made:
            self._made[key] = workload.fill(self.folder, entries, **more)
        return self._made[key]

    def path(self, conversation_id):
        return self.folder / f"{conversation_id}.jsonl"


def last_shown(talk):
    messages = (e for e in talk.backwards(talk.leaf) if isinstance(e, MessageAppended))
    return [entry.content for entry in islice(messages, SHOW)]


def _opened(folder, conversation_id, *, look, snapshots=True):
    def work():
        with workload.conversations(folder, snapshots=snapshots) as app:
            return look(app.get(conversation_id))

    return work


def resuming(logs, size, *, with_sqlite, pi):
    """A whole conversation, without a compaction: ours, the limits, and *pi* if it is there."""
    talk = logs.of(size)
    path = logs.path(talk)
    runs = {
        STRUCTS: timed(lambda: limits.read_structs(path)),
        DICTS: timed(lambda: limits.read_dicts(path)),
        SHOWN: timed(_opened(logs.folder, talk, look=last_shown)),
        REPLAYED: timed(_opened(logs.folder, talk, look=last_shown, snapshots=False)),
        CONTEXT: timed(_opened(logs.folder, talk, look=_request)),
        ALONE: timed(_opened(logs.folder, talk, look=_request, snapshots=False)),
    }
    if with_sqlite:
        app = library.sqlite(logs.folder, name=f"plain-{size}")
        aggregate_id = library.fill(app, size)
        runs[SQLITE] = timed(lambda: app.repository.get(aggregate_id))
    budgets = [
        Budget(SHOWN, 30e-3),
        Budget(REPLAYED, 3.5, STRUCTS, plus=1e-3),
        Budget(CONTEXT, 2.5, STRUCTS),
    ]
    if size >= LONG:
        budgets.append(Budget(ALONE, 5, STRUCTS))
    if pi is not None:
        runs[OPEN] = pi.opening(size)
        budgets += [Budget(REPLAYED, 1, OPEN), Budget(ALONE, 1, OPEN)]
    return Comparison(f"resume {size:,} entries", runs, tuple(budgets))


def _request(talk):
    """Return the body of the next request, as it is sent."""
    return request_of(talk, talk.leaf).body


def after_compaction(logs, sizes, **how):
    """A history with a compaction near its end, which keeps 500 entries."""
    runs = {}
    for size in sizes:
        talk = logs.of(size, compact_at=size - 10, **how)
        runs[f"{CONTEXT}, {size:,} entries"] = timed(_opened(logs.folder, talk, look=_request))
    first, last = list(runs)[0], list(runs)[-1]
    budgets = (Budget(first, 20e-3), Budget(last, 20e-3), Budget(last, 1.5, first))
    return Comparison("resume after a compaction that keeps 500", runs, budgets)


def past(logs, size):
    """The conversation as it was at an entry, and the request behind it."""
    talk = logs.of(size)
    runs = {}
    for share in (0.1, 0.5, 0.9):
        version = int(size * share)

        def work(version=version):
            with workload.conversations(logs.folder) as app:
                then = app.get(talk, version=version)
                return _request(then)

        runs[f"ours: as it was at {share:.0%}"] = timed(work)
    return Comparison(f"the past of {size:,} entries", runs)


def forking(logs, size):
    talk = logs.of(size)

    def fork():
        with workload.conversations(logs.folder) as app:
            child = app.fork(talk)
        logs.path(child).unlink()

    runs = {
        "limit: copy the file": timed(lambda: limits.copy(logs.path(talk))),
        "ours: fork": timed(fork),
    }
    return Comparison(f"fork {size:,} entries", runs, (Budget("ours: fork", 10e-3),))


def listing(folder, count):
    with workload.conversations(folder) as app:
        for _ in range(count):
            at_hand = app.start(workload.begin)
            at_hand.record(lambda talk: [workload.append(talk, number) for number in range(3)])

    def ours():
        with workload.conversations(folder) as app:
            return rows(app)

    name = "limit: names, status, first line"
    runs = {name: timed(lambda: limits.scan_folder(folder)), "ours: list": timed(ours)}
    return Comparison(f"list {count:,} conversations", runs, (Budget("ours: list", 10e-3),))


def verifying(logs, size):
    talk = logs.of(size)
    megabytes = logs.path(talk).stat().st_size / 1e6

    def speed(work):
        def run():
            (took,) = timed(work)()
            return [megabytes / took]

        return run

    def ours():
        with workload.conversations(logs.folder) as app:
            assert verify(app, talk).ok

    runs = {DICTS: speed(lambda: limits.read_dicts(logs.path(talk))), "ours: verify": speed(ours)}
    budgets = (Budget("ours: verify", 100, at_least=True),)
    return Comparison(f"verify {size:,} entries", runs, budgets, "MB/s")


def projecting(logs, sizes):
    runs = {}
    for size in sizes:
        with workload.conversations(logs.folder) as app:
            talk = app.get(logs.of(size))
        runs[f"ours: context of {size:,}"] = timed(lambda talk=talk: _request(talk))
    return Comparison("the context projection alone", runs)


_MEMORY = """
import sys
from itertools import islice
from pathlib import Path
from uuid import UUID
from app.application import Conversations
from domain.events import MessageAppended
with Conversations({"LEFTFOLD_STORE": sys.argv[1]}) as app:
    talk = app.get(UUID(sys.argv[2]))
    if sys.argv[3] == "whole":
        assert talk.entries
    shown = [
        entry.content
        for entry in islice(talk.backwards(talk.leaf), 20)
        if isinstance(entry, MessageAppended)
    ]
    peak = Path("/proc/self/status").read_text().partition("VmHWM:")[2].split()[0]
print(int(peak) / 1000)
"""


def memory(logs, size):
    """Peak memory of a process that opens a log and shows its end."""
    whole, compacted = logs.of(size), logs.of(size, compact_at=size - 10)
    megabytes = logs.path(whole).stat().st_size / 1e6

    def peak(conversation_id, how):
        def run():
            command = [sys.executable, "-c", _MEMORY, str(logs.folder), str(conversation_id), how]
            out = subprocess.run(command, stdout=subprocess.PIPE, text=True, check=True).stdout
            return [float(out)]

        return run

    runs = {
        "ours: opened whole": peak(whole, "whole"),
        "ours: after a compaction": peak(compacted, "end"),
    }
    budgets = (
        Budget("ours: opened whole", megabytes + 60),
        Budget("ours: after a compaction", 100),
    )
    return Comparison(f"peak memory, a log of {megabytes:.0f} MB", runs, budgets, "MB")
