"""``make bench``, or ``python -m tests.benchmarks [--quick] [--json FILE] [--only NAME]``."""

import argparse
import json
import tempfile
from contextlib import ExitStack
from pathlib import Path

from tests.benchmarks import appending, measure, peers, plots, reading, startup, table, workload

NAMES = (
    "append",
    "flat",
    "turn",
    "processes",
    "resume",
    "compaction",
    "past",
    "fork",
    "list",
    "verify",
    "context",
    "memory",
    "startup",
    "peers",
)
LONG = ("gigabyte",)
"""Only when asked for: to write that much takes minutes."""
PLOTS = Path(__file__).parents[2] / "docs" / "performance"


def main():
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    parser.add_argument("--quick", action="store_true", help="fewer rounds, up to 10,000 entries")
    parser.add_argument("--json", type=Path, metavar="FILE", help="write the figures here too")
    parser.add_argument(
        "--only", action="append", choices=NAMES + LONG, help="only this; may be repeated"
    )
    parser.add_argument(
        "--plots", type=Path, metavar="DIR", help=f"write the plots to DIR ({PLOTS})"
    )
    options = parser.parse_args()
    bench = Bench(options.only or NAMES, quick=options.quick)
    with tempfile.TemporaryDirectory(prefix="leftfold-bench-") as folder:
        bench.run(Path(folder))
    print("\n## Budgets\n")
    print(table.of_budgets(bench.results))
    if options.json:
        options.json.write_text(json.dumps(bench.as_json(), indent=1))
    if options.plots or not (options.quick or options.only):
        bench.plot(options.plots or PLOTS)


class Bench:
    """Runs what was asked for, and prints each table as soon as it is there."""

    def __init__(self, names, *, quick):
        self.names, self.quick = names, quick
        self.machine = measure.machine()
        self.results, self.peers, self.imports = [], {}, {}

    def run(self, folder):
        print("# Leftfold's benchmarks\n")
        print(json.dumps(self.machine, ensure_ascii=False), flush=True)
        self.logs = reading.Logs(folder / "logs")
        for name in NAMES + LONG:
            if name in self.names:
                place = folder / name
                place.mkdir()
                getattr(self, f"_{name}")(place)

    def compare(self, comparison, rounds):
        result = measure.compare(comparison, max(rounds // 4, 2) if self.quick else rounds)
        self.results.append(result)
        print("\n" + table.of_result(result), flush=True)

    @property
    def sizes(self):
        return (1_000, 10_000) if self.quick else (1_000, 10_000, 100_000)

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
            self.compare(appending.turns(app, (0, 300, 1_000, 10_000), durable), 12)

    def _processes(self, folder):
        self.compare(appending.processes(folder), 5)

    def _resume(self, folder):
        logs = self.logs
        for size in self.sizes:
            rounds = {1_000: 20, 10_000: 9}.get(size, 4)
            self.compare(reading.resuming(logs, size, with_sqlite=size < 100_000), rounds)

    def _compaction(self, folder):
        self.compare(
            reading.after_compaction(self.logs, self.sizes[1:] if not self.quick else self.sizes),
            8,
        )

    def _gigabyte(self, folder):
        self.compare(reading.after_compaction(self.logs, (10_000, 870_000), at_once=10), 8)

    def _past(self, folder):
        self.compare(reading.past(self.logs, 10_000), 6)

    def _fork(self, folder):
        self.compare(reading.forking(self.logs, 10_000), 10)

    def _list(self, folder):
        self.compare(reading.listing(folder, 1_000), 6)

    def _verify(self, folder):
        self.compare(reading.verifying(self.logs, 10_000), 6)

    def _context(self, folder):
        self.compare(reading.projecting(self.logs, self.sizes), 5)

    def _memory(self, folder):
        self.compare(reading.memory(self.logs, self.sizes[-1]), 2)

    def _startup(self, folder):
        conversation_id = startup.fill(folder)
        self.compare(startup.commands(folder, conversation_id), 11)
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
        self.peers = peers.measure(quick=self.quick)
        columns = ["peer", "versions", "append: median µs (p99), × the limit", "resume"]
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

    def plot(self, folder):
        """Write how resuming grows with the length of the conversation."""
        lines = {}
        for result in self.results:
            if result.title.startswith("resume ") and result.title.endswith(" entries"):
                size = int(result.title.split()[1].replace(",", ""))
                for name, samples in result.samples.items():
                    lines.setdefault(name, {})[size] = samples.median * 1000
        if lines:
            folder.mkdir(parents=True, exist_ok=True)
            drawn = plots.plot(
                "Resuming a conversation", lines, across="entries", upwards="ms, median"
            )
            (folder / "resume.svg").write_text(drawn)


if __name__ == "__main__":
    main()
