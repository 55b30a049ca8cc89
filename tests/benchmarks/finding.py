"""Finding: the list and the search of ten thousand conversations, and what the tables cost."""

import shutil
import time
from functools import partial

from app.catalogue import Listing
from app.search import search, wanted_of
from tests.benchmarks import many, workload
from tests.benchmarks.measure import Budget, Comparison, timed
from tests.benchmarks.startup import MAIN, process

HERE = "/work/project-7"
ALL, SOME = "ours: list of all", "ours: list of a directory with a hundredth of them"
RARE, FREQUENT = "ours: search, a rare word", "ours: search, a frequent word"
FEWER = "ours: search of a directory, a rare word"
ASKED = "limit: ask each log whether it has changed"
CATALOGUE, TEXTS = "ours: catalogue", "ours: full text"
SHOWN = 51


def fill(folder, count):
    """Write *count* conversations, and make the tables."""
    many.fill(folder, count)
    _listed(folder)
    _found(folder, many.RARE)


def in_process(folder, count):
    def asked():
        with workload.conversations(folder) as app:
            return app.store.states()

    runs = {
        ASKED: timed(asked),
        ALL: timed(partial(_listed, folder)),
        SOME: timed(partial(_listed, folder, HERE)),
        RARE: timed(partial(_found, folder, many.RARE)),
        FREQUENT: timed(partial(_found, folder, many.FREQUENT)),
        FEWER: timed(partial(_found, folder, many.RARE, HERE)),
    }
    budgets = (
        Budget(SOME, 10e-3),
        Budget(ALL, 10e-3),
        Budget(RARE, 30e-3),
        Budget(FREQUENT, 100e-3),
    )
    return Comparison(f"find among {count:,} conversations", runs, budgets)


def processes(folder, count):
    """Whole processes, from start to end."""
    given = {
        "leftfold list --all": ["list", "--all"],
        "leftfold list --dir DIR": ["list", "--dir", HERE],
        "leftfold search --all WORD": ["search", "--all", many.RARE],
    }
    runs = {
        name: process([str(MAIN), "--store", str(folder), *args], folder.parent)
        for name, args in given.items()
    }
    budgets = tuple(Budget(name, 0.3) for name in given)
    return Comparison(f"commands over {count:,} conversations", runs, budgets)


def building(folder, count):
    """How fast the tables are made from logs, in megabytes of them a second."""
    megabytes = sum(path.stat().st_size for path in folder.glob("*.jsonl")) / 1e6

    def speed(work):
        def run():
            shutil.rmtree(folder / ".index", ignore_errors=True)
            began = time.perf_counter()
            work()
            return [megabytes / (time.perf_counter() - began)]

        return run

    runs = {
        CATALOGUE: speed(partial(_listed, folder)),
        TEXTS: speed(partial(_found, folder, many.RARE)),
    }
    budgets = (Budget(CATALOGUE, 100, at_least=True),)
    return Comparison(f"make the tables of {count:,} conversations", runs, budgets, "MB/s")


def _listed(folder, cwd=None):
    with workload.conversations(folder) as app:
        listing = Listing(app, cwd)
        listing.keep()
        return listing.rows


def _found(folder, word, cwd=None):
    within = {row.id for row in _listed(folder, cwd)} if cwd else None
    with workload.conversations(folder) as app:
        return search(app, wanted_of([word]), within=within, limit=SHOWN)
