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


@pytest.fixture
def recorded(fast_folder, monkeypatch):
    """Run steps on a recorded disk: operations, with "ack" after each step."""

    def record(steps, *, durable=True, prepare=lambda folder: None):
        root = fast_folder / "recorded"
        root.mkdir()
        layer = Recording(root)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "os", layer)
            prepare(root / "home" / "store")
            layer.operations.append(("prepared",))
            recorders = history.Recorders(root / "home" / "store", durable=durable)
            for step in steps:
                layer.operations.append(("ack", recorders.do(step)))
            recorders.close()
        return Disk(root), layer.operations

    return record


def tried(fast_folder, states, check):
    """Open every state of *states*, pairs of one and the acknowledgements; return how many."""
    seen, failures = set(), []
    folder = fast_folder / "tried"
    for moment, state, acks in states:
        key = (len(acks), *sorted(state.items()))
        if key in seen:
            continue
        seen.add(key)
        folder.mkdir()
        write_out(state, folder)
        try:
            check(folder / "home" / "store", acks)
        except Exception as error:
            failures.append((moment, len(acks), repr(error), state))
        shutil.rmtree(folder)
        assert len(failures) < 3, failures
    assert failures == []
    return len(seen)
