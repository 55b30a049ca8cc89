"""How things are timed: runs of one comparison take turns, so that noise hits all of them alike."""

import gc
import os
import platform
import statistics
import sys
import time
from importlib.metadata import version
from typing import NamedTuple

LIBRARIES = ("eventsourcing", "msgspec", "pydantic", "click", "rich", "prompt_toolkit", "anthropic")


class Samples(NamedTuple):
    """What one run took, in seconds (or megabytes, or megabytes a second)."""

    median: float
    p99: float
    least: float
    count: int

    @classmethod
    def of(cls, values):
        ordered = sorted(values)
        last = min(int(len(ordered) * 0.99), len(ordered) - 1)
        return cls(statistics.median(ordered), ordered[last], ordered[0], len(ordered))


class Budget(NamedTuple):
    """What a run may take: so much, or so many times what another run of the comparison takes.

    Beside a limit, *plus* may come on top; and where the limit is below *small*, it is enough to be
    *beyond* it by no more than that.
    """

    run: str
    most: float
    of: str | None = None
    at_least: bool = False
    plus: float = 0.0
    small: float = 0.0
    beyond: float = 0.0


class Comparison(NamedTuple):
    """Runs that do the same work; each returns what it measured, one value for every operation."""

    title: str
    runs: dict
    budgets: tuple = ()
    unit: str = "s"


class Result(NamedTuple):
    title: str
    samples: dict
    budgets: tuple
    unit: str

    def of(self, run):
        return self.samples[run]

    def value(self, budget):
        """Return what *budget* is about: the median, or the ratio of two."""
        mine = self.samples[budget.run].median
        return (mine - budget.plus) / self.samples[budget.of].median if budget.of else mine

    def holds(self, budget):
        value = self.value(budget)
        if budget.at_least:
            return value >= budget.most
        return value <= budget.most or self._is_near(budget)

    def _is_near(self, budget):
        """Whether the limit is so small that what comes on top of it counts alone, and does."""
        limit = self.samples[budget.of].median if budget.of else budget.small
        return limit < budget.small and self.samples[budget.run].median <= limit + budget.beyond


def timed(work):
    """Return a run that does *work* once and measures it."""

    def run():
        gc.collect()
        began = time.perf_counter()
        result = work()
        took = time.perf_counter() - began
        del result
        return [took]

    return run


def compare(comparison, rounds):
    """Let the runs take turns, *rounds* times."""
    values = {name: [] for name in comparison.runs}
    for _ in range(rounds):
        for name, run in comparison.runs.items():
            values[name] += run()
    samples = {name: Samples.of(found) for name, found in values.items()}
    return Result(comparison.title, samples, tuple(comparison.budgets), comparison.unit)


def machine():
    """Say on what was measured."""
    return {
        "system": platform.platform(),
        "processors": os.cpu_count(),
        "python": sys.version.split()[0],
        "load": [round(part, 2) for part in os.getloadavg()],
        "libraries": {name: version(name) for name in LIBRARIES},
    }
