"""The system refuses: loudly, nothing half done, nothing lost, nothing doubled when it works again."""

import errno
import shutil

import pytest
from eventsourcing.persistence import IntegrityError, PersistenceError

from infrastructure.errors import StoreError
from infrastructure.jsonl import disk
from tests.faults import history
from tests.faults.failing import Failing

CHANGING = ("open", "write", "ftruncate", "fsync", "fdatasync", "replace", "unlink", "mkdir")
LOOKING = ("pread", "stat", "fstat", "scandir", "fchmod", "chmod", "urandom")

KINDS = {
    "EIO from a change": (errno.EIO, CHANGING, {}),
    "EIO from a look": (errno.EIO, LOOKING, {}),
    "EIO after the change was made": (errno.EIO, CHANGING, {"after": True}),
    "ENOSPC": (errno.ENOSPC, ("open", "write", "mkdir", "replace"), {}),
    "EDQUOT": (errno.EDQUOT, ("open", "write", "mkdir"), {}),
    "EMFILE": (errno.EMFILE, ("open", "scandir"), {}),
    "a short write": ("short", ("write",), {}),
    "Ctrl+C": (KeyboardInterrupt(), CHANGING, {}),
    "Ctrl+C after the change": (KeyboardInterrupt(), CHANGING, {"after": True}),
}


def logs(folder):
    return {path.name: path.read_bytes() for path in folder.glob("[!.]*.jsonl")}


def run_with_fault(folder, layer, patch):
    """Run the history; a step that fails is tried again when the system works. Returns the acks."""
    recorders, acks = history.Recorders(folder), []
    for step in history.STEPS:
        before = logs(folder)
        patch.setattr(disk, "os", layer)
        try:
            ack = recorders.do(step)
        except (KeyboardInterrupt, PersistenceError) as error:
            patch.undo()
            ack = retried(recorders, step, error, is_as_before=logs(folder) == before)
        patch.undo()
        acks.append(ack)
    recorders.close()
    return acks


def retried(recorders, step, error, *, is_as_before):
    interrupted = isinstance(error, KeyboardInterrupt)
    assert interrupted or isinstance(error, StoreError), repr(error)
    assert interrupted or is_as_before, f"{error} left something"
    try:
        return recorders.do(step)
    except IntegrityError:
        assert interrupted, "it was saved, although it was said that it was not"
        assert not is_as_before
        return history.Ack()


@pytest.mark.parametrize("kind", KINDS)
def test_every_call_may_fail_once(fast_folder, monkeypatch, kind):
    """…in a history of all kinds of saves: after the retry, all of it is there, once."""
    error, functions, how = KINDS[kind]
    tried, failures = 0, []
    while True:
        tried += 1
        folder = fast_folder / "store"
        layer = Failing(tried, error, functions, **how)
        try:
            acks = run_with_fault(folder, layer, monkeypatch)
            history.check(folder, acks)
        except BaseException as problem:
            failures.append((tried, layer.failed, repr(problem)))
            #raise
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if not layer.failed:
            break

    assert tried > 10
    assert failures == []
