"""The power fails at any moment: from the recorded operations, every state of the disk, opened.

With ``LEFTFOLD_DURABILITY=fsync`` not one acknowledged event may be missing.
"""

import random
import shutil

import pytest

from infrastructure.jsonl import disk
from infrastructure.jsonl.recorders import JSONLProcessRecorder
from infrastructure.jsonl.store import Store
from tests.faults import history
from tests.faults.simulated import Disk, Recording, write_out

DAMAGES = history.LEFT_BY_A_CRASH | history.SEALED | {"zero-filled"}


class Power:
    """Runs steps on a recorded disk, fails the power after every operation, and opens what is left."""

    def __init__(self, folder, monkeypatch):
        self._folder = folder
        self._monkeypatch = monkeypatch
        self.states = 0

    def record(self, act, *, durable=True, prepare=lambda folder: None):
        """Return the operations of *act*(recorders), an iterator of acknowledgements, with those."""
        root = self._folder / "recorded"
        root.mkdir()
        store = root / "home" / "store"
        prepare(store)
        self._disk = Disk(root)
        layer = Recording(root)
        with self._monkeypatch.context() as patch:
            patch.setattr(disk, "os", layer)
            recorders = history.Recorders(store, durable=durable)
            for ack in act(recorders):
                layer.operations.append(("ack", ack))
            recorders.close()
        return layer.operations

    def fail(self, operations, check, *, after=0, seed=0):
        """Let *check*(store, acks) judge every state; it raises if a promise is broken.

        The power does not fail before there are *after* acknowledgements.
        """
        chance = random.Random(seed)
        seen, acks, failures = set(), [], []
        for number, operation in enumerate(operations):
            if operation[0] == "ack":
                acks.append(operation[1])
            if len(acks) < after:
                self._disk.play(operation)
                continue
            for state in self._disk.states(operation, chance):
                key = (len(acks), *sorted(state.items()))
                if key in seen:
                    continue
                seen.add(key)
                try:
                    self._open(state, check, acks)
                except Exception as error:
                    failures.append((number, operation, len(acks), error, state))
                    assert len(failures) < 5, failures
        self.states = len(seen)
        assert failures == []

    def _open(self, state, check, acks):
        folder = self._folder / "left"
        folder.mkdir()
        try:
            write_out(state, folder)
            check(folder / "home" / "store", acks)
        finally:
            shutil.rmtree(folder)


@pytest.fixture
def power(fast_folder, monkeypatch):
    return Power(fast_folder, monkeypatch)


@pytest.mark.parametrize("part", [0, 1, 2])
def test_nothing_acknowledged_is_missing_and_nothing_half_written_is_believed(power, part):
    """A third of the history each, so that they run side by side."""
    size = -(-len(history.STEPS) // 3)
    steps = history.STEPS[: (part + 1) * size]

    operations = power.record(lambda recorders: map(recorders.do, steps))
    power.fail(
        operations,
        lambda store, acks: history.check(
            store, acks, steps=steps, damages=DAMAGES, power_failed=True
        ),
        after=part * size,
    )

    assert power.states > 500
