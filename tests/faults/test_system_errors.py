"""The system refuses: loudly, nothing half done, nothing lost, nothing doubled when it works again."""

import errno
import shutil
from contextlib import suppress

import pytest
from eventsourcing.persistence import IntegrityError, PersistenceError

from infrastructure.errors import LogReplacedError, ReadError, StoreError, WriteError
from infrastructure.jsonl import disk
from tests.faults import history
from tests.faults.failing import Failing
from tests.faults.history import event

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
        assert not (step.adds and is_as_before)
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
        finally:
            shutil.rmtree(folder, ignore_errors=True)
        if not layer.failed:
            break

    assert tried > 10
    assert failures == []


# -- two things fail at once ---------------------------------------------------------------------


@pytest.fixture
def recorders(fast_folder):
    opened = history.Recorders(fast_folder / "store")
    yield opened
    opened.close()


def unsyncable():
    """A disk that neither syncs nor lets the bytes be cut off again."""
    return Failing(1, errno.EIO, ["fdatasync", "ftruncate"], lasting=True)


@pytest.mark.parametrize("name", ["save one", "save a batch"])
def test_what_was_not_synced_is_not_believed_even_if_it_cannot_be_cut_off(
    recorders, fast_folder, monkeypatch, name
):
    begun = [step for step in history.STEPS if step.name.startswith("save")][:3]
    step = next(step for step in begun if step.name == name)
    done = [recorders.do(step) for step in begun[: begun.index(step)]]
    with monkeypatch.context() as patch:
        patch.setattr(disk, "os", unsyncable())
        for _ in range(2):
            with pytest.raises(WriteError):
                recorders.do(step)
            seen = recorders.process.select_events(history.A)
            assert not set(step.adds) & set(seen)

    done.append(recorders.do(step))
    history.check(fast_folder / "store", done, steps=begun)


def test_a_short_write_that_cannot_be_cut_off_is_a_torn_tail(recorders, fast_folder, monkeypatch):
    """…also when only the newline is missing: then the line is whole, and still not believed."""
    done = [recorders.do(step) for step in history.STEPS[:1]]
    for missing in (1, 20):
        writing = Failing(1, ("short", missing), ["write"])
        with monkeypatch.context() as patch:
            cutting = Failing(1, errno.EIO, ["ftruncate"], lasting=True, real=writing)
            patch.setattr(disk, "os", cutting)
            with pytest.raises(WriteError):
                recorders.do(history.STEPS[1])
            assert len(recorders.process.select_events(history.A)) == 3

    done.append(recorders.do(history.STEPS[1]))
    history.check(
        fast_folder / "store", done, damages=history.LEFT_BY_A_CRASH | history.SEALED
    )


def test_a_log_that_could_not_be_read_is_numbered_later(fast_folder, monkeypatch):
    """Three events that nobody numbered; every look at them fails once."""
    number = 0
    while True:
        number += 1
        folder = fast_folder / str(number)
        recorders = history.Recorders(folder)
        recorders.do(history.STEPS[0])
        recorders.process.max_notification_id()
        other = history.Recorders(folder)
        adds = list(history.STEPS[1].adds)
        other.process.store.insert(adds)
        looking = Failing(number, errno.EIO, [*LOOKING, "open"])
        with monkeypatch.context() as patch:
            patch.setattr(disk, "os", looking)
            with suppress(ReadError):
                recorders.process.store.has_news(catch_up=True)
                recorders.process.select_notifications(1, 10)
        last = [event(history.A, 5, "later")]
        if number % 2:
            other.process.insert_events(last)
            adds += last

        recorders.process.store.has_news(catch_up=True)
        found = recorders.process.select_notifications(1, 10)
        assert [n.originator_version for n in found] == list(range(1, 4 + len(adds)))
        other.close()
        recorders.close()
        if not looking.failed:
            break


# -- the files are moved away under a running program --------------------------------------------


@pytest.mark.parametrize("durable", [True, False])
@pytest.mark.parametrize("was_written", [True, False], ids=["after a save", "after a look"])
@pytest.mark.parametrize("lost", ["log", "store"])
def test_a_conversation_whose_file_was_removed_is_not_begun_anew(
    fast_folder, durable, was_written, lost
):
    """Its next event would be the only one of a new log, and look like all there ever was."""
    folder = fast_folder / "store"
    history.run(folder, history.STEPS[:1])[0].close()
    recorders = history.Recorders(folder, durable=durable)
    assert len(recorders.process.select_events(history.A)) == 3
    version = 4
    if was_written:
        recorders.process.insert_events([event(history.A, 4, "four")])
        version = 5
    place = folder if lost == "store" else folder / f"{history.A}.jsonl"
    away = fast_folder / "away"
    place.rename(away)

    for _ in range(2):
        with pytest.raises(LogReplacedError):
            recorders.process.insert_events([event(history.A, version, "lost?")])
    assert not list(folder.glob("*.jsonl")) if folder.exists() else True

    if folder.exists() and lost == "store":
        shutil.rmtree(folder)
    away.rename(place)
    recorders.process.insert_events([event(history.A, version, "not lost")])
    texts = [stored.state for stored in recorders.process.select_events(history.A)]
    assert texts[-1] == b'{"text":"not lost"}'
    assert len(texts) == version
    recorders.close()


@pytest.mark.parametrize("was_written", [True, False], ids=["after a save", "after a look"])
def test_a_file_that_was_replaced_is_not_written_to_before_it_is_read(fast_folder, was_written):
    folder = fast_folder / "store"
    history.run(folder, history.STEPS[:3])[0].close()
    log = folder / f"{history.A}.jsonl"
    recorders = history.Recorders(folder)
    version = recorders.process.select_events(history.A)[-1].originator_version + 1
    if was_written:
        recorders.process.insert_events([event(history.A, version, "more")])
        version += 1
    shorter = b"".join(log.read_bytes().splitlines(keepends=True)[:3])
    log.unlink()
    log.write_bytes(shorter)

    with pytest.raises(LogReplacedError):
        recorders.process.insert_events([event(history.A, version, "of another file")])
    assert log.read_bytes() == shorter
    recorders.close()
