"""Many processes write to one store, are killed at random, and read what the others wrote.

    python -m tests.faults.soak --processes 8 --appends 1000 --conversations 4

`soak` does it all and raises if a promise is broken. It forks, so it wants a process of its own.
"""

import json
import os
import random
import selectors
import signal
import sys
import threading
import traceback
from collections import Counter
from itertools import pairwise
from time import monotonic
from uuid import UUID

from eventsourcing.persistence import IntegrityError, StoredEvent

from infrastructure.jsonl.recorders import JSONLApplicationRecorder
from infrastructure.jsonl.store import Store

END = UUID(int=0xE, version=4)
SUBSCRIBERS = 2


def conversation(number):
    return UUID(f"01900000-0000-7000-8000-{number:012x}")


def recorder(folder):
    return JSONLApplicationRecorder(Store(folder, durable=False))


# -- in the children -----------------------------------------------------------------------------


def write(folder, name, count, conversations, seed, threads, say):  # noqa: PLR0917 - say is last
    """Append *count* events, each acknowledged through *say*; batches now and then."""
    if threads > 1:
        shared, errors = recorder(folder), []

        def work(number):
            try:
                _append(
                    shared, f"{name}.{number}", -(-count // threads), conversations, number, say
                )
            except BaseException as error:  # noqa: BLE001 - shown by the assertion below
                errors.append(error)

        workers = [threading.Thread(target=work, args=(number,)) for number in range(threads)]
        for worker in workers:
            worker.start()
        for worker in workers:
            worker.join()
        assert errors == []
    else:
        _append(recorder(folder), name, count, conversations, seed, say)


def _append(target, name, count, conversations, seed, say):  # noqa: PLR0917
    chance, done, known = random.Random(seed), 0, {}
    while done < count:
        where = conversation(chance.randrange(conversations))
        size = min(chance.choice([1, 1, 1, 3]), count - done)
        first = known.get(where, 0) + 1
        texts = [f"{name}-{done + i}" for i in range(size)]
        events = [
            StoredEvent(where, first + i, "Noted", json.dumps(text).encode())
            for i, text in enumerate(texts)
        ]
        try:
            ids = target.insert_events(events)
        except IntegrityError:  # somebody else was first
            [last] = target.select_events(where, desc=True, limit=1)
            known[where] = last.originator_version
            continue
        known[where] = first + size - 1
        done += size
        for number, text in enumerate(texts):
            version = first + number
            say([where.int, version, text, ids[number] if ids else None])


def subscribe(folder, say):
    """Say every notification up to the end, as it comes."""
    with recorder(folder).subscribe(gt=0) as subscription:
        for notification in subscription:
            where, version = notification.originator_id, notification.originator_version
            say([notification.id, where.int, version])
            if where == END:
                return


# -- in the parent -------------------------------------------------------------------------------


class Child:
    """A forked process that says things, a line each, through a pipe."""

    def __init__(self, function, *arguments, doom=None):
        self.doom = doom
        self.was_killed = False
        self._data = b""
        self.pipe, writing = os.pipe()
        self.pid = os.fork()
        if self.pid == 0:
            _run(writing, function, *arguments)
        os.close(writing)

    def hear(self):
        """Take what it says; kill it once it has said as much as *doom*. False: it said its last."""
        data = os.read(self.pipe, 1 << 16)
        self._data += data
        if self.doom is not None and self._data.count(b"\n") >= self.doom:
            os.kill(self.pid, signal.SIGKILL)
            self.doom = None
        return bool(data)

    def wait(self):
        os.close(self.pipe)
        _, status = os.waitpid(self.pid, 0)
        self.was_killed = os.WIFSIGNALED(status)
        assert self.was_killed or os.WEXITSTATUS(status) == 0, "a writer failed; see above"

    def said(self):
        whole = self._data[: self._data.rfind(b"\n") + 1]
        return [json.loads(line) for line in whole.splitlines()]


def _run(writing, function, *arguments):
    code = 1
    try:
        function(*arguments, lambda value: os.write(writing, json.dumps(value).encode() + b"\n"))
        code = 0
    except BaseException:  # noqa: BLE001 - it is printed, and the child ends
        traceback.print_exc()
    finally:
        sys.stderr.flush()
        os._exit(code)


class Soak:
    """Runs writers and readers, kills some, and compares what they said with what is there."""

    def __init__(self, folder, *, processes, appends, conversations, kills, seed=0):
        self.store = folder / "store"
        self.processes, self.appends, self.conversations = processes, appends, conversations
        self.kills = kills
        self._chance = random.Random(seed)
        self._doomed = 0
        self._children = selectors.DefaultSelector()
        self.figures = Counter(lost=0)

    def run(self):
        """Return the figures.

        Raises:
            AssertionError: a promise is broken.
        """
        began = monotonic()
        subscribers = [self._heard(Child(subscribe, self.store)) for _ in range(SUBSCRIBERS)]
        running = {self._heard(self._writer(number, 0, self.appends)): number
                   for number in range(self.processes)}  # fmt: skip
        finished = []
        while running:
            for ended in self._ended():
                if ended not in running:
                    raise AssertionError("a subscription ended early")
                finished.append(ended)
                number = running.pop(ended)
                self.figures["kills"] += ended.was_killed
                left = ended.missing - len(ended.said())
                if ended.was_killed and left > 0:
                    running[self._heard(self._writer(number, ended.life + 1, left))] = number
        recorder(self.store).insert_events([StoredEvent(END, 1, "Ended", b"{}")])
        while self._children.get_map():
            self._ended()
        self._judge(finished, [subscriber.said() for subscriber in subscribers])
        self.figures["seconds"] = round(monotonic() - began, 1)
        return dict(self.figures)

    def _heard(self, child):
        self._children.register(child.pipe, selectors.EVENT_READ, child)
        return child

    def _ended(self):
        """Listen to all children; return those that have ended."""
        ended = []
        for key, _ in self._children.select():
            if not key.data.hear():
                self._children.unregister(key.fd)  # before it is closed: forks share the pipe
                key.data.wait()
                ended.append(key.data)
        return ended

    def _writer(self, number, life, missing):
        threads = 3 if number == self.processes - 1 else 1
        doom = None
        if self._doomed < self.kills:
            self._doomed += 1
            doom = self._chance.randint(1, max(1, missing // 2))
        child = Child(
            write, self.store, f"{number}.{life}", missing, self.conversations,
            self._chance.random(), threads, doom=doom,
        )  # fmt: skip
        child.life, child.missing = life, missing
        return child

    def _judge(self, writers, seen):
        reader = recorder(self.store)
        events, texts = {}, Counter()
        for known in reader.store.ids():
            found = reader.store.inspect(known)
            assert {d.reason for d in found.damages} <= {"unfinished batch, never saved"}
            assert found.missing == []
            versions = [line.version for line in found.lines]
            assert versions == list(range(1, len(versions) + 1)), f"{known} has gaps or doubles"
            for line in found.lines:
                events[known, line.version] = line.state
                texts[line.state] += known != END
        assert max(texts.values()) == 1, "an event was saved twice"

        order = reader.select_notifications(None, len(events) + 1000)
        places = {(n.originator_id, n.originator_version): n.id for n in order}
        assert [n.id for n in order] == list(range(1, len(order) + 1))
        assert len(places) == len(order) == len(events), "not every event has one notification"
        for before, after in pairwise(order):
            if before.originator_id == after.originator_id:
                assert before.originator_version < after.originator_version

        for writer in writers:
            for where, version, text, number in writer.said():
                key = UUID(int=where), version
                assert events[key] == json.dumps(text).encode(), f"{key} is another's"
                assert number in (None, places[key]), f"{key} was {number}, is {places[key]}"
                self.figures["acknowledged"] += 1
        expected = [[n.id, n.originator_id.int, n.originator_version] for n in order]
        for one in seen:
            assert one == expected, "a subscription missed, doubled or misplaced an event"
            self.figures["seen by subscriptions"] += len(one)
        self.figures["events"] = len(events) - 1
        assert self.figures["acknowledged"] <= self.figures["events"]
        assert self.figures["acknowledged"] >= self.processes * (self.appends - 3)
