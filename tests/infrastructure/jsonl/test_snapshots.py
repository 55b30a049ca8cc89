"""A snapshot holds as long as the log has what it was taken of, at the same place."""

import os
import shutil

import pytest

from infrastructure.jsonl import trash
from infrastructure.jsonl.recorders import JSONLApplicationRecorder
from infrastructure.jsonl.snapshots import JSONLSnapshotRecorder
from infrastructure.jsonl.store import SNAPSHOTS, Store
from tests.infrastructure.jsonl.support import ID, event, events


@pytest.fixture
def logs(tmp_path):
    store = Store(tmp_path / "logs")
    JSONLApplicationRecorder(store).insert_events(events(1, 3))
    yield store
    store.close()


@pytest.fixture
def snapshots(logs):
    recorder = JSONLSnapshotRecorder(Store(logs.path / SNAPSHOTS, durable=False), logs)
    yield recorder
    recorder.store.close()


def kept(recorder):
    return [stored.originator_version for stored in recorder.select_events(ID)]


def test_a_snapshot_comes_back_as_it_was_and_goes_on_holding_while_the_log_grows(logs, snapshots):
    taken = event(3, "a snapshot")
    snapshots.insert_events([taken])

    JSONLApplicationRecorder(logs).insert_events(events(4, 5))

    assert snapshots.select_events(ID) == [taken]
    assert snapshots.select_events(ID, lte=2, desc=True, limit=1) == []


def test_a_snapshot_of_what_the_log_has_not_is_none(snapshots):
    snapshots.insert_events([event(9, "of the future")])

    assert kept(snapshots) == []


def test_the_newest_that_holds_is_taken(logs, snapshots):
    for version in (2, 3):
        snapshots.insert_events([event(version, "a snapshot")])
    path = logs.path_of(ID)
    os.truncate(path, path.read_bytes().rindex(b'{"v":3'))

    found = snapshots.select_events(ID, desc=True, limit=1)

    assert [stored.originator_version for stored in found] == []  # the file was written since
    JSONLApplicationRecorder(logs).insert_events([event(3)])
    found = snapshots.select_events(ID, desc=True, limit=1)
    assert [stored.originator_version for stored in found] in ([2], [3])


def edited_in_place(path):
    data = path.read_bytes()
    with path.open("r+b") as file:
        file.write(data.replace(b'{"v":2', b'{"v":7', 1))
    os.utime(path, ns=(1, 1))


def edited_to_another_length(path):
    data = path.read_bytes()
    with path.open("wb") as file:
        file.write(data.replace(b'{"v":2', b'{ "v":2', 1))


def replaced_by_a_copy(path):
    copy = path.with_suffix(".copy")
    shutil.copy2(path, copy)
    copy.replace(path)


def cut(path):
    os.truncate(path, path.stat().st_size - 1)


def removed(path):
    path.unlink()


@pytest.mark.parametrize(
    "change", [edited_in_place, edited_to_another_length, replaced_by_a_copy, cut, removed]
)
def test_a_snapshot_of_a_log_that_was_changed_is_none(logs, snapshots, change):
    snapshots.insert_events([event(3, "a snapshot")])
    assert kept(snapshots) == [3]
    logs.close()

    change(logs.path_of(ID))

    assert kept(snapshots) == []


def test_a_damaged_snapshot_is_none(snapshots):
    snapshots.insert_events([event(2, "a snapshot")])
    snapshots.insert_events([event(3, "a snapshot")])
    path = snapshots.store.path_of(ID)
    data = path.read_bytes()
    at = data.rindex(b'"state":"') + 12
    path.write_bytes(data[:at] + b"AAAA" + data[at + 4 :])

    assert kept(snapshots) == [2]


def test_a_snapshot_comes_back_with_its_log_and_goes_when_that_is_purged(logs, snapshots):
    snapshots.insert_events([event(3, "a snapshot")])
    trash.put(logs, ID)
    trash.restore(logs, *trash.contents(logs))
    assert kept(snapshots) == [3]

    trash.put(logs, ID)
    trash.purge(logs, *trash.contents(logs))

    assert list(snapshots.store.path.glob("*.jsonl")) == []
