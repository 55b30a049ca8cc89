"""Every benchmark runs to its end, with the least that it can be run with.

What it measures then means nothing; that it still measures something is the promise: of what no
test runs nobody sees that it broke.
"""

import json

import pytest

from tests.benchmarks import peers
from tests.benchmarks.__main__ import NAMES, Bench, Effort

LEAST = Effort(sizes=(20, 40, 60), rounds=0, least=1)


@pytest.mark.parametrize("name", NAMES)
def test_a_benchmark_runs_to_its_end(tmp_path, monkeypatch, name):
    monkeypatch.delenv("LEFTFOLD_PEERS", raising=False)
    bench = Bench([name], LEAST)

    bench.run(tmp_path)
    bench.publish(tmp_path / "published")

    measured = [run for result in bench.results for run in result.samples]
    assert measured or set(bench.peers) == {"leftfold", *peers.PEERS}
    for result in bench.results:
        assert all(samples.least > 0 for samples in result.samples.values())
        assert {budget.run for budget in result.budgets} <= set(measured)
        assert all(budget.of in (None, *measured) for budget in result.budgets)
    assert json.dumps(bench.as_json())
