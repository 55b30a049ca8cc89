"""Several logs: all or nothing, forks, ids, and what reading leaves alone."""

import errno
from uuid import UUID

import pytest
from eventsourcing.persistence import IntegrityError, ProgrammingError, StoredEvent

from infrastructure.errors import InvalidEventError, LogExistsError, LogMissingError, WriteError
from infrastructure.jsonl import disk, life_cycle, search, trash
from infrastructure.jsonl import line as lines_
from infrastructure.jsonl.recorders import (
    JSONLAggregateRecorder,
    JSONLApplicationRecorder,
    JSONLProcessRecorder,
)
from infrastructure.jsonl.snapshots import JSONLSnapshotRecorder, insert_unordered
from tests.infrastructure.jsonl.support import ID, OTHER, event, events, fill, put, rows, versions


def test_reading_creates_nothing(stores, tmp_path):
    store = stores()
    recorder = JSONLProcessRecorder(store)

    assert recorder.select_events(ID) == []
    assert recorder.select_events(ID, gt=3, desc=True, limit=1) == []
    assert recorder.select_notifications(None, 10) == []
    assert recorder.max_notification_id() is None
    assert recorder.max_tracking_id("app") is None
    assert JSONLSnapshotRecorder(store).select_events(ID) == []
    assert store.ids() == []
    assert list(tmp_path.iterdir()) == []


def test_a_refused_first_save_creates_no_log(stores):
    store = stores()

    with pytest.raises(IntegrityError):
        store.insert([event(2), event(1)])

    assert store.ids() == []


@pytest.mark.parametrize("wrong", ["../../etc/passwd", "conversation", "", "01900000"])
def test_an_id_that_is_no_uuid_never_becomes_a_path(stores, wrong):
    recorder = JSONLAggregateRecorder(stores())

    with pytest.raises(ProgrammingError, match="is not a UUID"):
        recorder.select_events(wrong)
    with pytest.raises(ProgrammingError):
        recorder.insert_events([StoredEvent(wrong, 1, "T", b"{}")])


def test_an_id_may_be_the_text_of_a_uuid(stores):
    recorder = JSONLAggregateRecorder(stores())
    recorder.insert_events([event(1, originator_id=str(ID))])

    assert recorder.select_events(ID)[0].originator_id == ID


def test_ids_are_the_logs_newest_first(stores):
    store = stores()
    fill(store, 1)
    fill(store, 1, originator_id=OTHER)
    for name in ("notes.jsonl", f"{ID}.bak", f".{ID}.abc.tmp", f"{str(ID).upper()}.jsonl.1"):
        (store.path / name).write_text("")

    assert store.ids() == [OTHER, ID]


def test_a_save_to_two_conversations_is_all_or_nothing(stores):
    store = stores()
    fill(store, 1)
    fill(store, 2, originator_id=OTHER)

    with pytest.raises(IntegrityError):
        store.insert([event(2), event(2, originator_id=OTHER)])

    assert versions(store) == [1]
    store.insert([event(2), event(3, originator_id=OTHER), event(3)])
    assert versions(store) == [1, 2, 3]
    assert versions(store, OTHER) == [1, 2, 3]


@pytest.mark.parametrize("second_exists", [True, False])
def test_a_save_that_fails_at_the_second_file_is_taken_back_at_the_first(
    stores, monkeypatch, second_exists
):
    store = stores()
    fill(store, 1)
    if second_exists:
        fill(store, 1, originator_id=OTHER)
    real, calls = disk.write, []

    def second_fails(fd, data):
        calls.append(data)
        if len(calls) > 1:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", second_fails)
        with pytest.raises(WriteError, match="No space left"):
            store.insert([event(2), event(2, originator_id=OTHER)])

    assert versions(stores()) == [1]
    assert versions(stores(), OTHER) == ([1] if second_exists else [])


def test_a_created_log_is_removed_when_the_other_cannot_be_written(stores, monkeypatch):
    store = stores()
    fill(store, 1, originator_id=OTHER)
    new = UUID(int=1)
    real = disk.write

    def fails_on_other(fd, data):
        if b'"text":"late"' in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", fails_on_other)
        with pytest.raises(WriteError):
            store.insert([event(1, originator_id=new), event(2, "late", OTHER)])

    assert store.ids() == [OTHER]
    store.insert([event(1, originator_id=new)])


def test_many_open_logs_are_bounded(stores):
    store = stores()
    ids = [UUID(int=n) for n in range(1, 101)]
    for version in (1, 2):
        for originator_id in ids:
            store.insert([event(version, originator_id=originator_id)])

    assert sum(store.log(i).is_open for i in ids) <= 64
    assert all(versions(store, i) == [1, 2] for i in ids)


def test_a_fork_is_a_byte_prefix_and_one_event(stores):
    store = stores()
    fill(store, 6)
    before = store.path_of(ID).read_bytes()

    life_cycle.fork(store, ID, 4, OTHER, [event(5, "fork", OTHER, "Forked")])

    assert rows(store, OTHER)[1:5] == rows(store)[1:5]
    assert versions(stores(), OTHER) == [1, 2, 3, 4, 5]
    assert store.inspect(OTHER).damages == []
    assert str(OTHER).encode() in rows(store, OTHER)[0]
    assert store.path_of(ID).read_bytes() == before
    store.insert([event(6, originator_id=OTHER)])


def test_a_fork_in_the_middle_of_a_batch_keeps_its_half(stores):
    store = stores()
    fill(store, 1)
    store.insert(events(2, 5))

    life_cycle.fork(store, ID, 3, OTHER, [event(4, "fork", OTHER)])

    assert versions(stores(), OTHER) == [1, 2, 3, 4]
    assert store.inspect(OTHER).damages == []
    store.insert([event(5, originator_id=OTHER)])
    assert versions(stores(), OTHER) == [1, 2, 3, 4, 5]


def test_a_fork_copies_damage_as_it_is(stores):
    store = stores()
    fill(store, 5)
    lines = rows(store)
    lines[2] = b"\0" * 20
    put(store, lines, end=b"")

    life_cycle.fork(store, ID, 5, OTHER, [event(6, "fork", OTHER)])

    assert rows(store, OTHER)[1:6] == lines[1:]
    assert versions(store, OTHER) == [1, 3, 4, 5, 6]


def test_a_fork_of_nothing_or_onto_something_is_refused(stores):
    store = stores()
    fill(store, 2)
    fill(store, 1, originator_id=OTHER)
    new = UUID(int=9)

    with pytest.raises(LogExistsError):
        life_cycle.fork(store, ID, 2, OTHER, [event(3, originator_id=OTHER)])
    with pytest.raises(LogMissingError):
        life_cycle.fork(store, UUID(int=8), 2, new, [event(3, originator_id=new)])
    for extra in ([], [event(3)], [event(2, originator_id=new)]):
        with pytest.raises(InvalidEventError):
            life_cycle.fork(store, ID, 2, new, extra)

    assert store.ids() == [OTHER, ID]


def test_forked_events_are_in_the_order_of_notifications(stores):
    store = stores()
    recorder = JSONLApplicationRecorder(store)
    recorder.insert_events(events(1, 3))
    life_cycle.fork(store, ID, 2, OTHER, [event(3, originator_id=OTHER)])

    assert recorder.insert_events([event(4, originator_id=OTHER)]) == [7]
    found = recorder.select_notifications(4, 10)
    assert [(n.originator_id, n.originator_version) for n in found] == [
        (OTHER, v) for v in (1, 2, 3, 4)
    ]


def test_snapshots_may_come_in_any_order(stores):
    recorder = JSONLSnapshotRecorder(stores())
    for version in (5, 9, 2):
        recorder.insert_events([event(version)])

    with pytest.raises(IntegrityError):
        recorder.insert_events([event(5)])
    assert [s.originator_version for s in recorder.select_events(ID)] == [2, 5, 9]
    assert recorder.select_events(ID, lte=8, desc=True, limit=1)[0].originator_version == 5
    recorder.insert_events([event(11)])
    assert recorder.select_events(ID, desc=True, limit=1)[0].originator_version == 11


def test_snapshots_may_be_deleted_or_written_anew_by_others_while_a_program_runs(stores):
    """They are derived: that another file is there now is no reason to refuse one."""
    one, two = stores(), stores()
    insert_unordered(one, [event(10)])
    insert_unordered(two, [event(5)])
    insert_unordered(one, [event(20)])
    assert versions(two) == [5, 10, 20]

    one.path_of(ID).unlink()
    insert_unordered(one, [event(30)])
    insert_unordered(two, [event(25)])
    assert versions(one) == [25, 30]


def test_the_newest_of_a_topic_is_found_wherever_it_stands(stores, monkeypatch):
    monkeypatch.setattr(search, "CHUNK", 64)
    store = stores()
    for version in range(1, 60):
        topic = {7: "Renamed", 20: "Renamed", 33: "Archived"}.get(version, "Noted")
        text = 'x","topic":"Renamed","state":"y' if version > 40 else "x" * version * 9
        store.insert([event(version, text, topic=topic)])

    found = store.log(ID).newest_of(["Renamed", "Archived", "Absent"])

    assert [(line.topic, line.version) for line in found] == [("Renamed", 20), ("Archived", 33)]
    assert store.log(OTHER).newest_of(["Renamed"]) == []


def test_the_newest_of_a_topic_is_one_that_is_believed(stores):
    store = stores()
    fill(store, 3)
    store.insert([event(4, topic="Renamed")])
    batch = [lines_.encode(5 + i, "Renamed", b'"never saved"', batch=(i + 1, 3)) for i in range(2)]
    put(store, [*rows(store), *(line[:-1] for line in batch)])

    (found,) = store.log(ID).newest_of(["Renamed"])

    assert found.version == 4


def test_only_what_is_named_as_we_name_it_is_a_log(stores):
    store, ours = stores(), UUID("01900000-0000-7000-8000-00000000abcd")
    store.insert([event(1, originator_id=ours)])
    data = store.path_of(ours).read_bytes()
    for name in (str(ours).upper(), f"{{{ours.hex}}}--", f"urn:uuid:{ours.hex[:27]}", f"{ours}.1"):
        (store.path / f"{name}.jsonl").write_bytes(data)

    assert store.ids() == stores().ids() == [ours]


def test_what_is_deleted_twice_is_in_the_trash_twice(stores):
    store = stores()
    targets = []
    for text in ("first", "second"):
        store.insert([event(1, text)])
        targets.append(trash.put(store, ID))

    assert len(set(targets)) == 2
    assert [
        text in path.read_text() for text, path in zip(("first", "second"), targets, strict=True)
    ] == [True] * 2
