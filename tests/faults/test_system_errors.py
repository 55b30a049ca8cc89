"""The system refuses: loudly, nothing half done, nothing lost, nothing doubled when it works again."""

import asyncio
import errno
import itertools
import os
import resource
import shutil
import signal
import subprocess
from contextlib import suppress

import pytest
from eventsourcing.persistence import IntegrityError, PersistenceError

from app.application import Conversations
from app.errors import NoSuchConversationError, NotRecordedError
from app.verification import verify
from infrastructure.errors import LogReplacedError, ReadError, StoreError, WriteError
from infrastructure.jsonl import disk
from infrastructure.jsonl.store import Store
from tests import builders as b
from tests.app.doubles import Desk
from tests.faults import history
from tests.faults.failing import Failing
from tests.faults.history import event
from tests.infrastructure.jsonl.support import python
from tests.levels import at_level
from tests.server import ScriptedServer

CHANGING = ("open", "write", "ftruncate", "fsync", "fdatasync", "replace", "unlink", "mkdir")
LOOKING = ("pread", "lstat", "fstat", "lseek", "scandir", "fchmod", "chmod", "urandom")

STRIDE = at_level(quick=3, whole=1)
"""One call of so many is made to fail, another one for each kind of error."""

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
    failures = []
    for tried in itertools.count(1 + list(KINDS).index(kind) % STRIDE, STRIDE):
        folder = fast_folder / "store"
        layer = Failing(tried, error, functions, **how)
        try:
            acks = run_with_fault(folder, layer, monkeypatch)
            history.check(folder, acks)
        except BaseException as problem:  # noqa: BLE001 - also what stands for Ctrl+C
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
    history.check(fast_folder / "store", done, damages=history.LEFT_BY_A_CRASH | history.SEALED)


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


# -- the real thing: a limit, a full disk, a disk that is read-only ------------------------------

LIMITED = """
import resource, sys
from pathlib import Path
from infrastructure.errors import StoreError
from tests.faults import history
folder, what, limit = Path(sys.argv[1]), int(sys.argv[2]), int(sys.argv[3])
recorders, acks = history.run(folder, history.STEPS[:1])
resource.setrlimit(what, (limit, resource.getrlimit(what)[1]))
refused = 0
for step in history.STEPS[1:]:
    try:
        recorders.do(step)
        assert not refused, f"{step.name} was done"
    except StoreError as error:
        refused += 1
        resource.setrlimit(what, (resource.getrlimit(what)[1],) * 2)
        recorders.do(step)
        break
print(refused)
"""


@pytest.mark.parametrize("limit", [700, 760, 800, 860])
def test_a_file_that_may_not_grow_any_further(fast_folder, limit):
    """RLIMIT_FSIZE: the write ends short, or not at all (case Z8)."""
    child = python(LIMITED, fast_folder / "store", resource.RLIMIT_FSIZE, limit)

    assert child.communicate()[0] == "1\n"
    folder = fast_folder / "store"
    assert Store(folder).inspect(history.A).damages == []
    versions = [line.version for line in Store(folder).inspect(history.A).lines]
    assert versions == list(range(1, len(versions) + 1))


def test_a_program_that_has_no_file_descriptors_left(fast_folder):
    """RLIMIT_NOFILE: the descriptors that are open go on working; new ones are refused."""
    child = python(LIMITED, fast_folder / "store", resource.RLIMIT_NOFILE, 7)
    output = child.communicate()[0]

    assert output in ("0\n", "1\n")
    assert Store(fast_folder / "store").inspect(history.A).damages == []


@pytest.fixture
def mounted(fast_folder):
    """A small disk of its own: 64 KiB."""
    folder = fast_folder / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=64k", "tmpfs", str(folder)]
    if os.geteuid() != 0 or subprocess.run(mount, check=False, capture_output=True).returncode:
        pytest.skip("only root may mount; every call is made to fail above")
    yield folder
    subprocess.run(["umount", "-l", str(folder)], check=True)


def test_a_disk_that_is_full(mounted):
    recorders = history.Recorders(mounted / "store")
    recorders.process.insert_events([event(history.A, 1, "x" * 5_000)])
    version = 1

    def fill():
        nonlocal version, adds
        while version < 100:
            adds = [event(history.A, version + 1, "x" * 5_000), event(history.A, version + 2, "y")]
            recorders.process.insert_events(adds)
            version += 2

    adds = []
    with pytest.raises(WriteError, match=r"No space left|disk full"):
        fill()
    with pytest.raises(WriteError):
        recorders.process.insert_events([event(history.B, 1, "x" * 20_000)])
    believed = recorders.process.select_events(history.A)

    assert [e.originator_version for e in believed] == list(range(1, version + 1))
    assert recorders.process.store.inspect(history.A).damages == []
    assert recorders.process.store.ids() == [history.A]
    found = recorders.process.select_notifications(None, 1000)
    assert [n.originator_version for n in found] == list(range(1, version + 1))
    subprocess.run(["mount", "-o", "remount,size=1m", str(mounted)], check=True)
    assert recorders.process.insert_events(adds) == [version + 1, version + 2]
    recorders.close()


def test_a_disk_that_is_read_only(mounted):
    recorders, acks = history.run(mounted / "store", history.STEPS[:3])
    recorders.close()
    recorders = history.Recorders(mounted / "store")
    subprocess.run(["mount", "-o", "remount,ro", str(mounted)], check=True)

    for step in history.STEPS[3:5]:
        with pytest.raises(WriteError, match="not saved: Read-only"):
            recorders.do(step)
    found = recorders.process.select_notifications(None, 1000)
    assert [n.originator_version for n in found] == list(range(1, 8))
    subprocess.run(["mount", "-o", "remount,rw", str(mounted)], check=True)
    acks += [recorders.do(step) for step in history.STEPS[3:5]]
    recorders.close()
    history.check(mounted / "store", acks)


def test_a_system_call_that_a_signal_interrupts_is_made_again(fast_folder):
    """EINTR never comes out of Python (PEP 475); the saves under a hail of signals are all there."""
    counted = []
    signal.signal(signal.SIGALRM, lambda *_: counted.append(1))
    signal.setitimer(signal.ITIMER_REAL, 0.0005, 0.0005)
    try:
        while len(counted) < 200:
            shutil.rmtree(fast_folder / "store", ignore_errors=True)
            recorders, acks = history.run(fast_folder / "store")
            recorders.close()
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, signal.SIG_DFL)

    history.check(fast_folder / "store", acks)


# -- what the application makes of it ------------------------------------------------------------


class AtWork:
    """An agent at work in a store, whose system may be made to fail."""

    def __init__(self, folder, server, monkeypatch):
        self.store = folder / "store"
        self.cwd = folder / "work"
        self.cwd.mkdir(parents=True)
        self.conversations = Conversations({"LEFTFOLD_STORE": str(self.store)})
        self.desk = Desk(self.conversations, server, self.cwd)
        self._monkeypatch = monkeypatch

    def say(self, prompt, layer=None):
        with self._monkeypatch.context() as patch:
            if layer is not None:
                patch.setattr(disk, "os", layer)
            return asyncio.run(self.desk.say(prompt))

    @property
    def ran(self):
        trace = self.cwd / "ran"
        return len(trace.read_text().splitlines()) if trace.exists() else 0

    def state(self):
        """What the program believes, and what the log says."""
        believed = self.desk.at_hand.conversation
        try:
            logged = self.conversations.get(believed.id)
        except NoSuchConversationError:
            return None, None
        return tuple(
            b.state(talk) | {"_created_on": None, "pending": list(talk.pending_events)}
            for talk in (believed, logged)
        )


TURN_KINDS = {
    "no room": (errno.ENOSPC, ("write",), {}),
    "a disk that breaks": (errno.EIO, ("fdatasync", "fsync"), {"lasting": True}),
    "a disk that breaks for good": (errno.EIO, ("fdatasync", "ftruncate"), {"lasting": True}),
}


@pytest.mark.parametrize("kind", TURN_KINDS)
def test_a_turn_stops_before_its_next_effect_and_goes_on_when_the_cause_is_gone(
    fast_folder, monkeypatch, kind
):
    """Every write of a turn with a tool fails in turn."""
    error, functions, how = TURN_KINDS[kind]
    number, stopped = 0, 0
    with ScriptedServer() as server:
        while True:
            number += 1
            work = AtWork(fast_folder / str(number), server, monkeypatch)
            asked = len(server.requests)
            layer = Failing(number, error, functions, **how)
            try:
                outcome = work.say("run: echo once >> ran", layer)
            except NotRecordedError:
                stopped += 1
                outcome = None
            asked_in_turn, ran = len(server.requests) - asked, work.ran
            if outcome is None:
                believed, logged = work.state()
                assert believed == logged
                recorded = topics(work)
                assert asked_in_turn <= recorded.count("MessageAppended"), "asked unrecorded"
                assert ran <= recorded.count("ToolStarted"), "it ran unrecorded"

            assert work.say("hello") == "done"
            believed, logged = work.state()
            assert believed == logged
            said = [m.content.text for m in work.desk.talk.messages() if m.content.role == "user"]
            assert said.count("hello") == 1
            assert said.count("run: echo once >> ran") <= 1
            assert work.ran == ran, "it was run again"
            assert verify(work.conversations, work.desk.talk.id).ok
            answered = [
                r["tool_use_id"] for m in work.desk.talk.messages() for r in m.content.tool_results
            ]
            assert len(answered) == len(set(answered))
            work.conversations.close()
            if not layer.failed:
                break

    assert stopped >= 6


def topics(work):
    with Conversations({"LEFTFOLD_STORE": str(work.store)}) as others:
        return [event.TOPIC for event in others.events_of(work.desk.at_hand.id)]
