"""A history of saves of every kind, and what must hold wherever it breaks off.

A step is all or nothing. It is acknowledged when the recorder has returned. `check` takes a folder
in which some steps were acknowledged and the next one may have been under way.
"""

import stat
from dataclasses import dataclass, field
from uuid import UUID

from eventsourcing.persistence import StoredEvent, Tracking

from infrastructure.jsonl import life_cycle
from infrastructure.jsonl.locks import Lease
from infrastructure.jsonl.recorders import JSONLProcessRecorder
from infrastructure.jsonl.snapshots import JSONLSnapshotRecorder
from infrastructure.jsonl.store import Store

A = UUID("01900000-0000-7000-8000-00000000000a")
B = UUID("01900000-0000-7000-8000-00000000000b")
CHILD = UUID("01900000-0000-7000-8000-00000000000c")
NEW = UUID("01900000-0000-7000-8000-00000000000d")
READER = "reader"

LEFT_BY_A_CRASH = {"torn tail", "unfinished batch, never saved"}
SEALED = {"not valid JSON", "half a record", "NUL bytes"}
"""What a torn tail is called once something has been appended behind it."""


def event(conversation, version, text):
    return StoredEvent(conversation, version, "Noted", b'{"text":"%s"}' % text.encode())


@dataclass(frozen=True)
class Step:
    """One save: the events that it adds, and the position that it moves a reader to."""

    name: str
    conversation: UUID | None = None
    adds: tuple[StoredEvent, ...] = ()
    position: int | None = None
    copies: tuple[StoredEvent, ...] = ()

    @property
    def is_reading(self):
        return self.name.startswith("read")

    def act(self, recorders):
        """Carry it out, and return the notification ids, where it says them."""
        adds, store = list(self.adds), recorders.process.store
        tracking = Tracking(READER, self.position) if self.position is not None else None
        match self.name.split()[0]:
            case "save":
                return recorders.process.insert_events(adds)
            case "follow":
                return recorders.process.insert_events(adds, tracking=tracking)
            case "track":
                recorders.process.insert_tracking(tracking)
            case "insert":
                store.insert(adds)
            case "fork":
                life_cycle.fork(
                    store, A, self.copies[-1].originator_version, self.conversation, adds
                )
            case "rebuild":
                store.notifications.file.path.unlink(missing_ok=True)
                recorders.process.max_notification_id()
            case "read":
                found = recorders.process.select_notifications(None, 10_000)
                return [[n.id, str(n.originator_id), n.originator_version] for n in found]
            case "snapshot":
                recorders.snapshots.insert_events(adds)
            case "lease":
                with Lease.acquire(store.path, A):
                    pass
        return []


@dataclass
class Ack:
    """That a step was done: the notification ids of its events, or of all that it has read."""

    ids: list = field(default_factory=list)
    read: list = field(default_factory=list)
    epoch: str = ""


class Recorders:
    """What a program has open."""

    def __init__(self, folder, *, durable=True):
        self.process = JSONLProcessRecorder(Store(folder, durable=durable))
        self.snapshots = JSONLSnapshotRecorder(Store(folder / ".snapshots", durable=False))

    def do(self, step):
        """Carry out *step*, and acknowledge it."""
        ids = list(step.act(self) or ())
        epoch = self.process.store.notifications.file.epoch.hex()
        return Ack(read=ids, epoch=epoch) if step.is_reading else Ack(ids=ids, epoch=epoch)

    def close(self):
        self.process.store.close()
        self.snapshots.store.close()


def _saved(name, conversation, first, last, **more):
    events = [event(conversation, v, f"{name} {v}") for v in range(first, last + 1)]
    return Step(name, conversation, tuple(events), **more)


def _history():
    begun = _saved("save the first three", A, 1, 3)
    one = _saved("save one", A, 4, 4)
    batch = _saved("save a batch", A, 5, 7)
    copied = (*begun.adds, *one.adds, *batch.adds[:2])
    yield begun
    yield one
    yield batch
    yield _saved("save to a new log", B, 1, 2)
    yield _saved("insert without a number", A, 8, 8)
    yield _saved("save one to the other", B, 3, 3)
    yield Step("read what there is")
    yield Step("track", position=3)
    yield _saved("follow", A, 9, 10, position=5)
    yield Step("lease")
    yield _saved("fork in the middle of a batch", CHILD, 7, 7, copies=copied_to(CHILD, copied))
    yield _saved("save to the fork", CHILD, 8, 8)
    yield _saved("insert unseen", B, 4, 4)
    yield Step("read what was not numbered")
    yield _saved("follow again", B, 5, 5, position=6)
    yield Step("rebuild")
    yield Step("read again")
    yield Step("snapshot", A, (event(A, 10, "a snapshot"),))
    yield _saved("save the last", A, 11, 11)


def copied_to(conversation, events):
    return tuple(StoredEvent(conversation, e.originator_version, e.topic, e.state) for e in events)


STEPS = tuple(_history())


def run(folder, steps=STEPS, *, durable=True):
    """Carry out *steps*; return what is open and the acknowledgements."""
    recorders = Recorders(folder, durable=durable)
    return recorders, [recorders.do(step) for step in steps]


def damaged_before(folder, hurt):
    """Make a store with three events whose log ends as a crash may leave it."""
    run(folder, STEPS[:1], durable=False)[0].close()
    log = folder / f"{A}.jsonl"
    whole = log.read_bytes()
    log.write_bytes(whole[:-1] if hurt == "without its newline" else whole + TAILS[hurt])


TAILS = {
    "without its newline": b"",
    "torn tail": b'{"v":4,"topic":"Noted","state":{"te',
    "NUL bytes": b"\0" * 100,
    "unfinished batch": b'{"v":4,"topic":"Noted","state":{"text":"no"},"crc":"eba1e7b6","batch":[1,2]}\n',
}


# -- what must hold ------------------------------------------------------------------------------


def check(
    folder,
    acks,
    *,
    steps=STEPS,
    before=(),
    damages=LEFT_BY_A_CRASH,
    power_failed=False,
    was_killed=False,
):
    """Check everything that was promised, then that life goes on. Returns what was believed.

    *before*: steps that were done before those; *damages*: what may be found in a log. After a
    power failure, only the notification ids that somebody has read are what they were; after a
    kill, all are, and the order need not be built anew.
    """
    done, later = steps[: len(acks)], steps[len(acks) :]
    under_way = later[0] if later else Step("nothing")
    recorders = Recorders(folder, durable=False)
    try:
        believed = _check_events(recorders, [*before, *done], under_way)
        _check_tracking(recorders, done, under_way, believed)
        _check_snapshots(recorders)
        _check_files(folder, damages)
        order = _check_order(recorders, believed)
        _check_ids(recorders, acks, done, order, power_failed=power_failed)
        if was_killed and acks and acks[-1].ids and under_way.name != "rebuild":
            epoch = recorders.process.epoch
            assert epoch == acks[-1].epoch, "the order had to be built anew"
        _check_life_goes_on(recorders, believed, order, under_way)
        return believed
    finally:
        recorders.close()


def check_loosely(folder, steps=STEPS):
    """Check what holds when nothing was synced: no event that nobody wrote, in order, and it goes on.

    Where zeros are in the middle of a log, events that come after them are still believed.
    """
    recorders = Recorders(folder, durable=False)
    try:
        written = {}
        for step in steps:
            for added in (*step.copies, *step.adds):
                written.setdefault(added.originator_id, []).append(added)
        believed = _all_events(recorders)
        for conversation, events in believed.items():
            versions = [e.originator_version for e in events]
            assert versions == sorted(set(versions))
            assert all(e in written[conversation] for e in events), events
        recorders.process.max_tracking_id(READER)
        _check_snapshots(recorders)
        _check_order(recorders, believed, may_skip=True)
        for conversation in (A, B, NEW):
            known = believed.get(conversation, [])
            adds = [event(conversation, known[-1].originator_version + 1 if known else 1, "after")]
            recorders.process.insert_events(adds)
            believed[conversation] = known + adds
        assert _all_events(recorders) == believed
        _check_order(recorders, believed, may_skip=True)
    finally:
        recorders.close()


def _all_events(recorders):
    return {
        conversation: list(recorders.process.select_events(conversation))
        for conversation in recorders.process.store.ids()
    }


def _check_events(recorders, done, under_way):
    acknowledged = {}
    for step in done:
        if step.name != "snapshot" and step.conversation is not None:
            acknowledged.setdefault(step.conversation, []).extend([*step.copies, *step.adds])
    found = _all_events(recorders)
    for conversation in {*acknowledged, *found, A, B, CHILD}:
        at_least = acknowledged.get(conversation, [])
        at_most = list(at_least)
        if under_way.conversation == conversation and under_way.name != "snapshot":
            at_most += [*under_way.copies, *under_way.adds]
        there = found.get(conversation, [])
        assert there in (at_least, at_most), (
            f"{conversation}: {[e.originator_version for e in there]} of "
            f"{[e.originator_version for e in at_least]} or all of "
            f"{[e.originator_version for e in at_most]}"
        )
        assert there or conversation not in found, f"an empty {conversation} is shown"
    return found


def _check_tracking(recorders, done, under_way, believed):
    known = [step.position for step in done if step.position is not None]
    last = known[-1] if known else None
    found = recorders.process.max_tracking_id(READER)
    if under_way.position is None:
        assert found == last, f"tracking is {found}, not {last}"
    elif under_way.adds:
        saved = under_way.adds[-1] in believed.get(under_way.conversation, [])
        assert found == (under_way.position if saved else last), f"{found}, saved: {saved}"
    else:
        assert found in (last, under_way.position)


def _check_snapshots(recorders):
    found = recorders.snapshots.select_events(A)
    assert found in ([], [event(A, 10, "a snapshot")]), found


def _check_files(folder, damages):
    store = Store(folder, durable=False)
    for conversation in store.ids():
        found = store.inspect(conversation)
        assert {damage.reason for damage in found.damages} <= damages, found.damages
        assert found.missing == []
        assert found.header is not None
        assert found.header.id == str(conversation)
    for path in folder.rglob("*") if folder.exists() else ():
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode == (0o700 if path.is_dir() else 0o600), f"{path} is {mode:o}"


def _check_order(recorders, believed, *, may_skip=False):
    """Every believed event exactly once, in the order of its conversation, without a gap.

    *may_skip*: a log that is gone altogether leaves its ids unused.
    """
    found = recorders.process.select_notifications(None, 10_000)
    order = [(n.originator_id, n.originator_version) for n in found]
    ids = [n.id for n in found]
    assert ids == (sorted(set(ids)) if may_skip else list(range(1, len(found) + 1)))
    for conversation, events in believed.items():
        versions = [e.originator_version for e in events]
        numbered = [version for c, version in order if c == conversation]
        assert numbered == versions, f"{conversation}: {numbered} are numbered of {versions}"
    assert len(order) == sum(map(len, believed.values()))
    return order


def _check_ids(recorders, acks, done, order, *, power_failed):
    """An id that was said stays what it is, as long as the epoch is the same."""
    for ack, step in zip(acks, done, strict=True):
        if ack.epoch != recorders.process.epoch:
            continue
        said = [(number, UUID(name), version) for number, name, version in ack.read]
        if ack.ids and not power_failed:
            keys = [(added.originator_id, added.originator_version) for added in step.adds]
            said += [(number, *key) for number, key in zip(ack.ids, keys, strict=True)]
        for number, *key in said:
            found = order[number - 1] if number <= len(order) else None
            assert found == tuple(key), f"id {number} was {key}, is {found}"


def _check_life_goes_on(recorders, believed, order, under_way):
    epoch = recorders.process.epoch if order else None
    appended = []
    for conversation in {**believed, NEW: []}:
        events = believed.get(conversation, [])
        version = events[-1].originator_version + 1 if events else 1
        for extra in (1, 2) if conversation == under_way.conversation else (2,):
            adds = [event(conversation, version + i, f"after {i}") for i in range(extra)]
            ids = recorders.process.insert_events(adds)
            first = len(order) + len(appended) + 1
            assert ids == list(range(first, first + extra)), f"{ids} after {first - 1}"
            appended += [(conversation, e.originator_version) for e in adds]
            version += extra
    position = (recorders.process.max_tracking_id(READER) or 0) + 1
    recorders.process.insert_tracking(Tracking(READER, position))
    other = Recorders(recorders.process.store.path, durable=False)
    after = _all_events(other)
    for conversation, events in believed.items():
        assert after[conversation][: len(events)] == events
        new = [version for c, version in appended if c == conversation]
        assert [e.originator_version for e in after[conversation][len(events) :]] == new
    assert _check_order(other, after) == order + appended
    assert epoch in (None, other.process.epoch), "the order was built anew for nothing"
    assert other.process.max_tracking_id(READER) == position
    with Lease.acquire(other.process.store.path, A):
        pass
    other.close()
