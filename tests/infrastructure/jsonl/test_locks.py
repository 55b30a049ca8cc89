"""Locks die with their holders."""

import os
import signal

import pytest

from infrastructure.errors import LeaseHeldError, LockTimeoutError
from infrastructure.jsonl import disk, locks
from infrastructure.jsonl.locks import Lease
from tests.infrastructure.jsonl.support import ID, OTHER, python

HOLD = """
import sys
from pathlib import Path
from infrastructure.jsonl.locks import Lease
from tests.infrastructure.jsonl.support import ID
lease = Lease.acquire(Path(sys.argv[1]), ID, program="other")
print("held", flush=True)
sys.stdin.read()
"""


def test_a_lease_of_another_process_names_it_and_is_freed_by_its_death(tmp_path):
    process = python(HOLD, tmp_path)
    assert process.stdout.readline() == "held\n"

    with pytest.raises(LeaseHeldError, match=f"pid {process.pid}") as caught:
        Lease.acquire(tmp_path, ID)
    process.send_signal(signal.SIGKILL)
    process.communicate()

    assert caught.value.holder["program"] == "other"
    Lease.acquire(tmp_path, ID).release()


def test_a_lease_is_for_one_conversation_and_ends_with_its_block(tmp_path):
    with Lease.acquire(tmp_path, ID), Lease.acquire(tmp_path, OTHER), pytest.raises(LeaseHeldError):
        Lease.acquire(tmp_path, ID)

    with Lease.acquire(tmp_path, ID) as lease:
        assert lease.path.stat().st_mode & 0o777 == 0o600


def test_a_lease_that_is_given_back_is_free_though_a_child_has_it_open_yet(tmp_path):
    """A program that is being started has every descriptor until it runs."""
    lease = Lease.acquire(tmp_path, ID)
    file = lease.path.stat()
    own = [fd for fd in range(256) if is_open_as(fd, file)]
    of_child = [os.dup(fd) for fd in own]
    try:
        lease.release()
        Lease.acquire(tmp_path, ID).release()
        assert of_child
    finally:
        for fd in of_child:
            os.close(fd)


def is_open_as(fd, file):
    try:
        return os.path.samestat(os.fstat(fd), file)
    except OSError:
        return False


@pytest.mark.parametrize("left", [b"", b'{"pid":1}', b"garbage"], ids=["empty", "init", "garbage"])
def test_a_file_that_was_left_behind_locks_nothing(tmp_path, left):
    path = tmp_path / ".leases" / str(ID)
    path.parent.mkdir()
    path.write_bytes(left)

    Lease.acquire(tmp_path, ID).release()


def test_waiting_for_a_lock_ends(tmp_path):
    path = tmp_path / "file"
    first = disk.create(path)
    second = disk.open_append(path)

    assert locks.acquire(first, path)
    with pytest.raises(LockTimeoutError, match="locked by another process"):
        locks.acquire(second, path, patience=0.02)
    disk.unlock(first)
    assert locks.acquire(second, path)
    disk.close(first)
    disk.close(second)
