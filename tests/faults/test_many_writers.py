"""Many processes and threads on one store. `make soak` runs more of them, for longer."""

import errno
import json
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from infrastructure.errors import LeaseHeldError
from infrastructure.jsonl import disk
from infrastructure.jsonl.locks import Lease
from infrastructure.jsonl.store import Store
from tests.faults import history
from tests.faults.failing import without_locks
from tests.infrastructure.jsonl.support import python

ROOT = Path(__file__).parents[2]


@pytest.mark.parametrize("seed", range(4))
def test_writers_that_are_killed_and_readers_that_follow(fast_folder, seed):
    """Four processes, one of them with three threads; two subscriptions in processes of their own.

    What is judged is in `writers.Soak`: nothing torn, glued, lost, doubled or out of order.
    """
    command = [sys.executable, "-m", "tests.faults.soak", "--folder", str(fast_folder)]
    options = {"processes": 4, "appends": 60, "conversations": 2, "kills": 8, "seed": seed}
    for name, value in options.items():
        command += [f"--{name}", str(value)]
    done = subprocess.run(
        command, cwd=ROOT, capture_output=True, text=True, timeout=300, check=False
    )

    assert done.returncode == 0, done.stderr
    figures = json.loads(done.stdout)
    assert figures["lost"] == 0
    assert figures["kills"] > 0
    assert figures["acknowledged"] >= 4 * 57
    assert figures["seen by subscriptions"] == 2 * (figures["events"] + 1)


LEASE = """
import sys
from pathlib import Path
from infrastructure.jsonl.locks import Lease
from tests.faults.history import A
lease = Lease.acquire(Path(sys.argv[1]), A, program="the first")
print("held", flush=True)
sys.stdin.readline()
"""


def test_a_second_program_is_told_who_has_the_conversation_until_that_dies(fast_folder):
    holder = python(LEASE, fast_folder)
    assert holder.stdout.readline() == "held\n"

    with pytest.raises(LeaseHeldError, match=f"pid {holder.pid}.*the first"):
        Lease.acquire(fast_folder, history.A)
    Store(fast_folder, durable=False).insert([history.event(history.A, 1, "not locked out")])
    holder.send_signal(signal.SIGKILL)
    holder.communicate()

    with Lease.acquire(fast_folder, history.A) as lease:
        assert lease.path.name == str(history.A)


@pytest.mark.parametrize("number", [errno.ENOLCK, errno.EOPNOTSUPP], ids=errno.errorcode.get)
def test_a_file_system_without_locks_is_said_and_never_waited_for(fast_folder, monkeypatch, number):
    monkeypatch.setattr(disk, "fcntl", without_locks(number))
    monkeypatch.setattr("time.sleep", lambda _: pytest.fail("it waited"))

    recorders, acks = history.run(fast_folder / "store")
    with Lease.acquire(fast_folder / "store", history.A):
        pass

    assert not recorders.process.store.locking_works
    recorders.close()
    history.check(fast_folder / "store", acks)


def test_a_program_that_a_tool_has_left_behind_keeps_no_lock(fast_folder):
    """Descriptors are not inherited: a lock lives as long as its last holder (case Z14)."""
    recorders, acks = history.run(fast_folder / "store", history.STEPS[:2])
    lease = Lease.acquire(fast_folder / "store", history.A)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"], stdin=subprocess.PIPE, close_fds=False
    )
    try:
        lease.release()
        recorders.close()

        history.check(fast_folder / "store", acks)  # it takes every lock, the lease as well
    finally:
        child.communicate(b"\n")


def test_a_lease_that_was_released_is_free_even_if_its_descriptor_lives_on(fast_folder):
    """Between fork and exec, every program that is started has all descriptors."""
    lease = Lease.acquire(fast_folder, history.A)
    child = subprocess.Popen(
        [sys.executable, "-c", "input()"],
        stdin=subprocess.PIPE,
        pass_fds=[lease._fd],
    )
    try:
        lease.release()

        Lease.acquire(fast_folder, history.A).release()
    finally:
        child.communicate(b"\n")
