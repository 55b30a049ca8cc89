"""``make bench``, or ``python -m tests.benchmarks [--quick] [--json FILE] [--only NAME]``."""

import argparse
import json
import re
import tempfile
from contextlib import ExitStack
from pathlib import Path
from typing import NamedTuple

from tests.benchmarks import (
    appending,
    finding,
    measure,
    peers,
    plots,
    reading,
    requesting,
    startup,
    table,
    workload,
)
from tests.benchmarks.pi import Pi

NAMES = (
    "append",
    "flat",
    "turn",
    "request",
    "processes",
    "resume",
    "compaction",
    "past",
    "fork",
    "list",
    "find",
    "verify",
    "context",
    "memory",
    "startup",
    "peers",
)
LONG = ("gigabyte",)
"""Only when asked for: to write that much takes minutes."""
PUBLISHED = Path(__file__).parents[2] / "docs" / "performance"


class Effort(NamedTuple):
    """How many entries, and which part of the rounds (two at least, but for *least*)."""

    sizes: tuple
    rounds: float = 1.0
    least: int = 2


WHOLE = Effort((1_000, 10_000, 100_000))
QUICK = Effort((1_000, 10_000), 0.25)

GROWTH = {
    "resume": ("Resuming a conversation", r"resume ([\d,]+) entries", None),
    "append": ("A save, by what the conversation has", None, r"(.*), after ([\d,]+) events"),
    "turn": ("A turn, by what came before", None, r"(.*), ([\d,]+) entries before"),
    "request": ("A request, by what it holds", None, r"(.*: a request), ([\d,]+) entries"),
}
"""For each plot: what it shows; where the size stands, in the title or in the name of a run."""


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, up to 10,000 entries")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "--only", action="append", choices=NAMES + LONG, help="only this; may be repeated"
    )
    parser.add_argument(
        "--publish",
        type=Path,
        metavar="DIR",
        help=f"write plots and the peers' figures to DIR ({PUBLISHED})",
    )
    options = parser.parse_args()
    bench = Bench(options.only or NAMES, QUICK if options.quick else WHOLE)
    with tempfile.TemporaryDirectory(prefix="leftfold-bench-") as folder:
        bench.run(Path(folder))
    print("\n## Budgets\n")
    print(table.of_budgets(bench.results))
    if options.json:
        options.json.write_text(json.dumps(bench.as_json(), indent=1))
    if options.publish or not (options.quick or options.only):
        bench.publish(options.publish or PUBLISHED)


class Bench:
    """Runs what was asked for, and prints each table as soon as it is there."""

    def __init__(self, names, effort=WHOLE):
        self.names, self.effort = names, effort
        self.machine = measure.machine()
        self.results, self.peers, self.imports = [], {}, {}

    def run(self, folder):
        print("# Leftfold's benchmarks\n")
        print(json.dumps(self.machine, ensure_ascii=False), flush=True)
        self.logs = reading.Logs(folder / "logs")
        self.pi = Pi.found(folder)
        for name in NAMES + LONG:
            if name in self.names:
                place = folder / name
                place.mkdir()
                getattr(self, f"_{name}")(place)

    def compare(self, comparison, rounds):
        rounds = max(int(rounds * self.effort.rounds), self.effort.least)
        result = measure.compare(comparison, rounds)
        self.results.append(result)
        print("\n" + table.of_result(result), flush=True)

    @property
    def sizes(self):
        return self.effort.sizes

    # -- one method for each name ------------------------------------------------------------------

    def _append(self, folder):
        with ExitStack() as stack:
            for durable in (True, False):
                app = stack.enter_context(
                    workload.conversations(folder / str(durable), durable=durable)
                )
                self.compare(appending.appending(app, folder, durable=durable), 40)

    def _flat(self, folder):
        with workload.conversations(folder) as app:
            self.compare(appending.flatness(app, self.sizes[-1]), 20)

    def _turn(self, folder):
        with ExitStack() as stack:
            app = stack.enter_context(workload.conversations(folder / "os"))
            durable = stack.enter_context(workload.conversations(folder / "fsync", durable=True))
            sizes = [size for size in (0, 300, 1_000, 10_000) if size <= self.sizes[-1]]
            self.compare(appending.turns(app, sizes, durable), 12)

    def _request(self, folder):
        with ExitStack() as stack:
            app = stack.enter_context(workload.conversations(folder))
            self.compare(requesting.requesting(stack, app, self.sizes[:2]), 20)

    def _processes(self, folder):
        self.compare(appending.processes(folder), 5)

    def _resume(self, folder):
        logs = self.logs
        for size in self.sizes:
            rounds = {1_000: 20, 10_000: 9}.get(size, 4)
            comparison = reading.resuming(logs, size, with_sqlite=size < 100_000, pi=self.pi)
            self.compare(comparison, rounds)

    def _compaction(self, folder):
        self.compare(
            reading.after_compaction(self.logs, self.sizes[-2:]),
            8,
        )

    def _gigabyte(self, folder):
        self.compare(reading.after_compaction(self.logs, (10_000, 870_000), at_once=10), 8)

    def _past(self, folder):
        self.compare(reading.past(self.logs, self.sizes[1]), 6)

    def _fork(self, folder):
        self.compare(reading.forking(self.logs, self.sizes[1]), 10)

    def _list(self, folder):
        self.compare(reading.listing(folder, self.sizes[0]), 6)

    def _find(self, folder):
        count = self.sizes[1]
        finding.fill(folder / "store", count)
        self.compare(finding.in_process(folder / "store", count), 9)
        self.compare(finding.processes(folder / "store", count), 7)
        self.compare(finding.building(folder / "store", count // 10), 2)

    def _verify(self, folder):
        self.compare(reading.verifying(self.logs, self.sizes[1]), 6)

    def _context(self, folder):
        self.compare(reading.projecting(self.logs, self.sizes), 5)

    def _memory(self, folder):
        self.compare(reading.memory(self.logs, self.sizes[-1]), 2)

    def _startup(self, folder):
        conversation_id = startup.fill(folder)
        for comparison in (
            startup.commands(folder, conversation_id),
            startup.prompts(folder),
            startup.first_request(folder),
        ):
            self.compare(comparison, 11)
        self.imports = startup.import_table(folder, conversation_id)
        rows = [
            [
                name,
                each["modules"],
                " ".join(each["heavy"]),
                ", ".join(f"{a} {ms}" for a, ms in each["slowest"]),
            ]
            for name, each in self.imports.items()
        ]
        print(
            "\n"
            + table.table(
                rows, ["command", "modules", "of the heavy ones", "own import time by package, ms"]
            )
        )

    def _peers(self, folder):
        self.peers = peers.measure(quick=self.effort is not WHOLE)
        columns = ["peer", "versions", "append, µs, × the limit", "resume, ms"]
        print("\n" + table.table(peers.rows(self.peers), columns))

    # -- afterwards --------------------------------------------------------------------------------

    def as_json(self):
        return {
            "machine": self.machine,
            "results": [
                {
                    "title": result.title,
                    "unit": result.unit,
                    "samples": {
                        name: samples._asdict() for name, samples in result.samples.items()
                    },
                    "budgets": [
                        budget._asdict()
                        | {"value": result.value(budget), "holds": result.holds(budget)}
                        for budget in result.budgets
                    ],
                }
                for result in self.results
            ],
            "imports": self.imports,
            "peers": self.peers,
        }

    def publish(self, folder):
        """Write how costs grow with the length of a conversation, and what the peers printed."""
        folder.mkdir(parents=True, exist_ok=True)
        for name, (title, of_title, of_run) in GROWTH.items():
            if lines := self._lines(of_title, of_run):
                drawn = plots.plot(title, lines, across="entries", upwards="ms, median")
                (folder / f"{name}.svg").write_text(drawn)
        if self.peers:
            (folder / "peers.json").write_text(json.dumps(self.peers, indent=1) + "\n")

    def _lines(self, of_title, of_run):
        """Return the medians in milliseconds by the name of a run and by size."""
        lines = {}
        for result in self.results:
            found = re.fullmatch(of_title or ".*", result.title)
            for run, samples in result.samples.items() if found else ():
                named = re.fullmatch(of_run, run) if of_run else None
                if of_run and not named:
                    continue
                name, size = named.groups() if named else (run, found[1])
                entries = max(int(size.replace(",", "")), 1)  # the axis is logarithmic
                lines.setdefault(name, {})[entries] = samples.median * 1000
        return lines


if __name__ == "__main__":
    main()
