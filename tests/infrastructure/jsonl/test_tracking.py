"""Positions, and saves that carry one."""

import errno

import pytest
from eventsourcing.persistence import IntegrityError, Tracking

from infrastructure.errors import WriteError
from infrastructure.jsonl import disk
from infrastructure.jsonl.recorders import JSONLProcessRecorder, JSONLTrackingRecorder
from tests.infrastructure.jsonl.support import ID, event, events, versions


def test_positions_outlive_the_process(stores):
    JSONLTrackingRecorder(stores()).insert_tracking(Tracking("app", 5))

    assert JSONLTrackingRecorder(stores()).max_tracking_id("app") == 5


def test_two_recorders_see_each_others_positions(stores):
    one, two = JSONLTrackingRecorder(stores()), JSONLTrackingRecorder(stores())
    one.insert_tracking(Tracking("app", 5))

    with pytest.raises(IntegrityError):
        two.insert_tracking(Tracking("app", 5))
    two.insert_tracking(Tracking("app", 6))
    assert one.max_tracking_id("app") == 6


def test_a_save_that_fails_takes_its_position_back(stores, monkeypatch):
    recorder = JSONLProcessRecorder(stores())
    recorder.insert_events([event(1)], tracking=Tracking("app", 1))
    real = disk.write

    def refuse(fd, data):
        if b'"v":2' in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", refuse)
        with pytest.raises(WriteError):
            recorder.insert_events([event(2)], tracking=Tracking("app", 2))

    assert recorder.max_tracking_id("app") == 1
    recorder.insert_events(events(2, 3), tracking=Tracking("app", 2))
    assert JSONLProcessRecorder(stores()).max_tracking_id("app") == 2


def test_a_position_whose_events_were_not_saved_does_not_count(stores):
    store = stores()
    recorder = JSONLProcessRecorder(store)
    recorder.insert_events([event(1)], tracking=Tracking("app", 1))
    tracking, log = store.tracking.path, store.path_of(ID)
    before = log.read_bytes()
    recorder.insert_events([event(2)], tracking=Tracking("app", 2))
    log.write_bytes(before)  # killed between the position and the event
    lines = tracking.read_bytes().splitlines(keepends=True)
    tracking.write_bytes(b"".join(lines[:-1]))

    assert JSONLProcessRecorder(stores()).max_tracking_id("app") == 1
    stores().insert([event(2, "another")])
    assert JSONLProcessRecorder(stores()).max_tracking_id("app") == 1


def test_a_position_whose_events_were_saved_counts_without_its_confirmation(stores):
    store = stores()
    recorder = JSONLProcessRecorder(store)
    recorder.insert_events(events(1, 3), tracking=Tracking("app", 1))
    path = store.tracking.path
    path.write_bytes(b"".join(path.read_bytes().splitlines(keepends=True)[:-1]))

    other = JSONLProcessRecorder(stores())

    assert other.max_tracking_id("app") == 1
    with pytest.raises(IntegrityError):
        other.insert_events([event(4)], tracking=Tracking("app", 1))
    assert versions(store) == [1, 2, 3]


def test_a_torn_position_is_no_position(stores):
    store = stores()
    recorder = JSONLTrackingRecorder(store)
    recorder.insert_tracking(Tracking("app", 1))
    recorder.insert_tracking(Tracking("app", 2))
    path = store.tracking.path
    path.write_bytes(path.read_bytes()[:-4])

    other = JSONLTrackingRecorder(stores())
    other.insert_tracking(Tracking("app", 2))

    assert JSONLTrackingRecorder(stores()).max_tracking_id("app") == 2


def test_a_position_that_lacks_only_its_newline_counts_before_and_after_the_next(stores):
    store = stores()
    recorder = JSONLTrackingRecorder(store)
    recorder.insert_tracking(Tracking("app", 7))
    path = store.tracking.path
    path.write_bytes(path.read_bytes()[:-1])

    other = JSONLTrackingRecorder(stores())
    assert other.max_tracking_id("app") == 7
    with pytest.raises(IntegrityError):
        other.insert_tracking(Tracking("app", 3))
    other.insert_tracking(Tracking("app", 8))
    assert JSONLTrackingRecorder(stores()).max_tracking_id("app") == 8


def test_a_position_that_lacks_its_newline_outlives_a_save_that_fails(stores, monkeypatch):
    JSONLTrackingRecorder(stores()).insert_tracking(Tracking("app", 7))
    path = stores().tracking.path
    path.write_bytes(path.read_bytes()[:-1])
    real = disk.write

    def refuse(fd, data):
        if b'"v":1' in data:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    monkeypatch.setattr(disk, "write", refuse)
    with pytest.raises(WriteError):
        JSONLProcessRecorder(stores()).insert_events([event(1)], tracking=Tracking("app", 8))

    assert JSONLTrackingRecorder(stores()).max_tracking_id("app") == 7
