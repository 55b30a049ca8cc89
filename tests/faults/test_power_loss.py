"""The power fails at any moment: from the recorded operations, every state of the disk, opened.

With ``LEFTFOLD_DURABILITY=fsync`` not one acknowledged event may be missing.
"""

import errno
import random
import shutil

import pytest

from infrastructure.errors import WriteError
from infrastructure.jsonl import disk
from tests.faults import history
from tests.faults.failing import Failing
from tests.faults.simulated import Disk, Recording, write_out
from tests.levels import at_level

# The same lines, thousands of times: coverage would double what this takes and show nothing.
pytestmark = pytest.mark.no_cover

SAMPLED = at_level(quick=6, whole=1)
"""Of so many states that the power may leave, one is opened."""

DAMAGES = history.LEFT_BY_A_CRASH | history.SEALED


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
        self._disk = Disk(root)  # what is there already is safe
        layer = Recording(root)
        with self._monkeypatch.context() as patch:
            patch.setattr(disk, "os", layer)
            recorders = history.Recorders(store, durable=durable)
            for ack in act(recorders):
                layer.operations.append(("ack", ack))
            recorders.close()
        return layer.operations

    def fail(self, operations, check, *, after=0, seed=0, thin=1):
        """Let *check*(store, acks) judge every state; it raises if a promise is broken.

        The power does not fail before there are *after* acknowledgements. *thin*: after each
        operation only its first state is opened, and then one of so many (`SAMPLED` times that).
        """
        chance = random.Random(seed)
        seen, acks, failures = set(), [], []
        self.states = 0
        for number, operation in enumerate(operations):
            if operation[0] == "ack":
                acks.append(operation[1])
            if len(acks) < after:
                self._disk.play(operation)
                continue
            count = 0
            for state in self._disk.states(operation, chance):
                key = (len(acks), *sorted(state.items()))
                if key in seen:
                    continue
                seen.add(key)
                count += 1
                if (count - 1) % (thin * SAMPLED):
                    continue
                self.states += 1
                try:
                    self._open(state, check, acks)
                except Exception as error:  # noqa: BLE001 - collected
                    failures.append((number, operation, len(acks), error, state))
                    assert len(failures) < 5, failures
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

    assert power.states > 500 // SAMPLED


def test_a_save_is_one_write_to_its_log_and_waits_for_the_disk(power):
    """Record and newline, or the lines of a batch, in two writes would be glued or halved."""
    writes = synced = 0
    for operation in power.record(lambda recorders: map(recorders.do, history.STEPS[:3])):
        match operation:
            case ("write", _, data) if data.startswith((b"{", b"\n")):
                writes, synced = writes + 1, 0
            case ("sync", _):
                synced = 1
            case ("ack", _):
                assert (writes, synced) == (1, 1)
                writes = 0


def test_a_save_to_several_logs_waits_until_each_is_on_the_disk(power):
    def act(recorders):
        for version in (1, 2):  # new logs first, then logs that are there
            recorders.process.insert_events(
                [history.event(name, version, "hi") for name in (history.A, history.B)]
            )
            yield version

    unsynced, written = set(), 0
    for operation in power.record(act):
        match operation:
            case ("write", file, data) if data.startswith(b"{"):
                unsynced.add(file)
                written += 1
            case ("sync", file):
                unsynced.discard(file)
            case ("ack", _):
                assert not unsynced

    assert written >= 4


@pytest.mark.parametrize("tail", history.TAILS)
def test_a_log_that_was_hurt_before(power, tail):
    """Seals, and appends that say what they build on, may be torn as well."""
    steps = history.STEPS[1:3]
    operations = power.record(
        lambda recorders: map(recorders.do, steps),
        prepare=lambda store: history.damaged_before(store, tail),
    )
    power.fail(
        operations,
        lambda store, acks: history.check(
            store,
            acks,
            steps=steps,
            before=history.STEPS[:1],
            damages=DAMAGES | {"not valid JSON"},
            power_failed=True,
        ),
        thin=3,
    )

    assert power.states > 200 // SAMPLED


def test_a_failed_save_does_not_come_back(power, monkeypatch):
    """It was cut off, and that was synced: the power failure does not bring it back."""
    begun, one = history.STEPS[:2]
    refused = history.Step("save what is refused", history.A, (history.event(history.A, 4, "no"),))

    def act(recorders):
        yield recorders.do(begun)
        with monkeypatch.context() as patch:
            patch.setattr(disk, "os", Failing(1, errno.EIO, ["fdatasync"], real=disk.os))
            with pytest.raises(WriteError):
                recorders.do(refused)
        yield history.Ack()
        yield recorders.do(one)

    nothing = history.Step("nothing")
    operations = power.record(act)

    def check(store, acks):
        # Until the cut is synced, what was refused may be there: whole, or not at all.
        steps = [begun, refused] if len(acks) == 1 else [begun, nothing, one]
        history.check(store, acks, steps=steps, damages=DAMAGES, power_failed=True)

    power.fail(operations, check, thin=2)

    assert power.states > 200 // SAMPLED


@pytest.mark.parametrize("seed", range(2))
def test_without_syncs_anything_may_be_lost_but_nothing_half_written_is_believed(power, seed):
    """``LEFTFOLD_DURABILITY=os``: what is there is what was written, in order; it goes on."""
    operations = power.record(lambda recorders: map(recorders.do, history.STEPS), durable=False)
    power.fail(operations, lambda store, acks: history.check_loosely(store), seed=seed, thin=23)

    assert power.states > 300 // SAMPLED
