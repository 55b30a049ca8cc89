"""The order over all logs: derived, deletable, and the same for everybody."""

import errno
import os
import shutil
from pathlib import Path
from tempfile import TemporaryDirectory
from unittest.mock import patch
from uuid import UUID

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrastructure.jsonl import disk, notification_file
from infrastructure.jsonl.notification_file import SIZE, NotificationFile, Record, packed
from infrastructure.jsonl.recorders import JSONLAggregateRecorder, JSONLApplicationRecorder
from tests.infrastructure.jsonl.support import ID, OTHER, event, events, fill, put, rows
from tests.levels import examples

THIRD = UUID("01900000-0000-7000-8000-000000000003")


ALIKE = st.sampled_from([b"\0" * 16, b"\0" * 15 + b"\1", b"\1" + b"\0" * 15, b"\0\0\0\5" * 4])
"""Ids that stand in what others' records say, too."""


@pytest.fixture
def recorders(stores):
    return lambda: JSONLApplicationRecorder(stores())


def order(recorder, **query):
    query = {"start": None, "limit": 1000} | query
    return [
        (n.id, n.originator_id, n.originator_version)
        for n in recorder.select_notifications(**query)
    ]


def test_the_first_save_of_a_process_opens_no_log_but_its_own(recorders, stores, monkeypatch):
    """Whatever else is in the store: 10,000 conversations once made it wait for two seconds."""
    for number in range(20):
        recorders().insert_events([event(1, originator_id=UUID(int=number))])
    recorders().insert_events(events(1, 3))
    opened = []
    for name in ("open_read", "open_append"):
        real = getattr(disk, name)
        monkeypatch.setattr(
            disk, name, lambda path, real=real: (opened.append(path), real(path))[1]
        )

    recorder = recorders()
    assert recorder.insert_events([event(4)]) == [24]
    assert recorder.insert_events([event(5)]) == [25]
    assert {path.name for path in opened} == {f"{ID}.jsonl", "notifications"}
    assert order(recorder)[-2:] == [(24, ID, 4), (25, ID, 5)]


@settings(max_examples=examples(200))
@given(st.lists(st.tuples(ALIKE, st.sampled_from([0, 1, 5, 256]))), ALIKE, st.integers(0, 9))
def test_the_last_record_of_a_conversation_is_found_from_the_end(rows, wanted, later):
    with TemporaryDirectory() as folder, patch.object(notification_file, "_AT_ONCE", 3):
        records = [Record(*row, version) for version, row in enumerate(rows, 1)]
        path = Path(folder) / ".index" / "notifications"
        path.parent.mkdir(0o700)
        file = NotificationFile(path)
        with file.written_anew() as fd:
            disk.write_all(fd, b"".join(map(packed, records[later:])))
        file.load()
        disk.write_all(file._fd, b"".join(map(packed, records[:later])))
        file.load()
        last = {record.conversation: record for record in records[later:] + records[:later]}

        assert file.last_of(wanted) == last.get(wanted)
        file.know_all()
        assert {key: file.last_of(key) for key in last} == last
        assert file.count == len(records)
        file.close()


def test_ids_follow_the_saves_of_all_conversations(recorders):
    recorder = recorders()
    ids = [
        recorder.insert_events(save)
        for save in (
            [event(1)],
            [event(1, originator_id=OTHER), event(2), event(2, originator_id=OTHER)],
            [event(3)],
        )
    ]

    assert ids == [[1], [2, 3, 4], [5]]
    assert (
        order(recorder)
        == order(recorders())
        == [(1, ID, 1), (2, OTHER, 1), (3, ID, 2), (4, OTHER, 2), (5, ID, 3)]
    )


def test_two_recorders_number_one_after_the_other(recorders):
    one, two = recorders(), recorders()

    assert one.insert_events([event(1)]) == [1]
    assert two.insert_events([event(1, originator_id=OTHER)]) == [2]
    assert one.insert_events([event(2)]) == [3]
    assert two.max_notification_id() == 3
    assert one.epoch == two.epoch


def _delete(path):
    path.unlink()


def _delete_folder(path):
    shutil.rmtree(path.parent)


def _truncate(path):
    path.write_bytes(path.read_bytes()[: SIZE * 2 + 7])


def _garbage(path):
    path.write_bytes(b"garbage" * 30)


def _flip(path):
    data = bytearray(path.read_bytes())
    data[SIZE * 2 + 20] ^= 1
    path.write_bytes(data)


def _empty(path):
    path.write_bytes(b"")


@pytest.mark.parametrize("hurt", [_delete, _delete_folder, _truncate, _garbage, _flip, _empty])
@pytest.mark.parametrize("write_first", [True, False])
def test_whatever_happens_to_it_it_is_built_anew(recorders, hurt, write_first):
    recorder = recorders()
    recorder.insert_events([event(1, originator_id=OTHER)])
    recorder.insert_events(events(1, 3))
    epoch = recorder.epoch
    recorder.store.close()
    hurt(recorder.store.notifications.file.path)

    recorder = recorders()
    if write_first:
        assert recorder.insert_events([event(4)]) == [5]
    expected = [(1, ID, 1), (2, ID, 2), (3, ID, 3), (4, OTHER, 1)]

    # A save looks at no record of another log: who reads finds it, and then the new event is there.
    assert order(recorder)[:4] == expected or hurt is _truncate or (hurt is _flip and write_first)
    assert {n[1:] for n in order(recorder)} >= {n[1:] for n in expected}
    assert order(recorders()) == order(recorder)
    assert recorder.epoch != epoch or hurt is _truncate


@pytest.mark.parametrize("hurt", [_delete, _delete_folder, _garbage])
def test_it_may_be_lost_while_it_is_in_use(recorders, hurt):
    recorder, reader = recorders(), recorders()
    recorder.insert_events(events(1, 3))
    assert len(order(reader)) == 3
    epoch = recorder.epoch
    hurt(recorder.store.notifications.file.path)

    assert recorder.insert_events([event(4)]) == [4]
    assert order(reader) == order(recorder) == [(v, ID, v) for v in (1, 2, 3, 4)]
    assert reader.epoch == recorder.epoch != epoch


def test_a_log_that_is_copied_in_is_picked_up(recorders, tmp_path):
    recorder = recorders()
    recorder.insert_events([event(1)])
    other = JSONLAggregateRecorder(type(recorder.store)(tmp_path / "elsewhere"))
    other.insert_events(events(1, 2, originator_id=OTHER))
    shutil.copy(other.store.path_of(OTHER), recorder.store.path_of(OTHER))

    assert order(recorders()) == [(1, ID, 1), (2, OTHER, 1), (3, OTHER, 2)]
    assert recorder.insert_events([event(2)]) == [4]
    other.store.close()


def test_events_whose_writer_died_before_numbering_them_are_numbered_first(recorders, stores):
    recorder = recorders()
    recorder.insert_events([event(1)])
    fill(stores(), 1, originator_id=OTHER)
    JSONLAggregateRecorder(stores()).insert_events([event(2)])

    assert recorder.insert_events([event(3)]) == [3]
    assert order(recorder) == [(1, ID, 1), (2, ID, 2), (3, ID, 3)]
    assert order(recorders()) == [(1, ID, 1), (2, ID, 2), (3, ID, 3), (4, OTHER, 1)]


def test_a_deleted_conversation_leaves_a_gap(recorders):
    recorder = recorders()
    recorder.insert_events([event(1)])
    recorder.insert_events([event(1, originator_id=OTHER)])
    recorder.insert_events([event(2)])
    recorder.store.path_of(OTHER).unlink()

    assert order(recorders()) == [(1, ID, 1), (3, ID, 2)]
    assert recorders().max_notification_id() == 3


def test_a_hand_edited_log_makes_it_built_anew(recorders):
    recorder = recorders()
    recorder.insert_events(events(1, 1))
    recorder.insert_events([event(2)])
    epoch = recorder.epoch
    lines = rows(recorder.store)
    put(
        recorder.store,
        [
            lines[0],
            b'{"v":1,"topic":"Noted","state":{"text":"much longer than it was before"}}',
            lines[2],
        ],
    )

    reader = recorders()

    assert order(reader) == [(1, ID, 1), (2, ID, 2)]
    assert (
        reader.select_notifications(1, 1)[0].state == b'{"text":"much longer than it was before"}'
    )
    assert reader.epoch != epoch


def test_a_read_only_store_has_the_same_order_in_memory(recorders, stores, monkeypatch):
    fill(stores(), 2, originator_id=OTHER)
    fill(stores(), 2)

    def refuse(*_, **__):
        raise OSError(errno.EROFS, "Read-only file system")

    with monkeypatch.context() as patch:
        for name in ("create", "make_folder", "open_append"):
            patch.setattr(disk, name, refuse)
        reader = recorders()
        in_memory = order(reader)
        assert order(reader, start=2, limit=2) == in_memory[1:3]

    assert not (reader.store.path / ".index").exists()
    assert in_memory == order(recorders()) == [(1, ID, 1), (2, ID, 2), (3, OTHER, 1), (4, OTHER, 2)]


def test_an_order_that_cannot_be_written_does_not_unsay_the_save(recorders, monkeypatch):
    recorder = recorders()
    recorder.insert_events([event(1)])
    real = disk.write

    def refuse(fd, data):
        if len(data) == SIZE:
            raise OSError(errno.ENOSPC, "No space left on device")
        return real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", refuse)
        assert recorder.insert_events([event(2)]) == []

    assert order(recorder) == [(1, ID, 1), (2, ID, 2)]


def test_half_a_record_is_never_cut_off_but_makes_it_built_anew(recorders, monkeypatch):
    recorder, other = recorders(), recorders()
    recorder.insert_events([event(1)])
    other.insert_events([event(1, originator_id=OTHER)])
    epoch = recorder.epoch
    real = disk.write

    def tear(fd, data):
        return real(fd, data[:7]) if len(data) == SIZE else real(fd, data)

    with monkeypatch.context() as patch:
        patch.setattr(disk, "write", tear)
        assert recorder.insert_events([event(2)]) == []
    ids = other.insert_events([event(2, originator_id=OTHER)])

    assert {n[1:] for n in order(other)} == {(ID, 1), (ID, 2), (OTHER, 1), (OTHER, 2)}
    assert (ids[0], OTHER, 2) in order(other)
    assert order(recorder) == order(other) == order(recorders())
    assert recorder.epoch == other.epoch != epoch


def test_a_save_whose_record_went_to_a_replaced_order_is_numbered_in_the_new_one(
    recorders, monkeypatch
):
    recorder, other = recorders(), recorders()
    recorder.insert_events([event(1)])
    recorder.insert_events([event(1, originator_id=OTHER)])
    recorder.store.path_of(OTHER).unlink()  # so it has a number in the old order only
    path = recorder.store.notifications.file.path
    real = disk.stat_fd

    def rebuilt_meanwhile(fd):
        monkeypatch.setattr(disk, "stat_fd", real)
        path.unlink()
        other.store.notifications.catch_up()
        return real(fd)

    monkeypatch.setattr(disk, "stat_fd", rebuilt_meanwhile)
    ids = recorder.insert_events([event(2)])

    assert ids == [2]
    assert order(recorder) == order(other) == [(1, ID, 1), (2, ID, 2)]


def test_an_order_that_was_replaced_is_noticed_although_its_file_has_another_name(
    recorders, tmp_path
):
    """A backup may be made of hard links: the file of which a name is gone is still there."""
    recorder = recorders()
    recorder.insert_events([event(1, originator_id=OTHER)])
    recorder.insert_events([event(1)])
    path = recorder.store.notifications.file.path
    os.link(path, tmp_path / "backup")
    recorder.insert_events([event(2)])
    assert recorder.insert_events([event(3)]) == [4]
    path.unlink()
    recorder.store.path_of(OTHER).unlink()  # so the others have other numbers in a new order
    assert recorders().max_notification_id() == 3

    assert recorder.insert_events([event(4)]) == [4]


@pytest.mark.parametrize("comes", ["before", "behind"])
def test_a_save_beside_those_of_others_says_the_number_that_it_has(recorders, monkeypatch, comes):
    recorder, other = recorders(), recorders()
    recorder.insert_events([event(1)])
    other.insert_events([event(1, originator_id=OTHER)])
    real, place = (disk.write, "write") if comes == "before" else (disk.stat_fd, "stat_fd")

    def beside(fd, *data):
        if not data or len(data[0]) == SIZE:
            monkeypatch.setattr(disk, place, real)
            other.insert_events([event(2, originator_id=OTHER)])
        return real(fd, *data)

    monkeypatch.setattr(disk, place, beside)
    [number] = recorder.insert_events([event(2)])

    assert (number, ID, 2) in order(recorder) == order(other) == order(recorders())
    assert number == (4 if comes == "before" else 3)


def test_an_order_whose_folder_was_moved_away_is_soon_noticed_by_who_saves(recorders, tmp_path):
    """Another process that has seen the new order would not hear of what is saved."""
    recorder, other = recorders(), recorders()
    recorder.insert_events([event(1)])
    recorder.store.notifications.file.path.parent.rename(tmp_path / "elsewhere")
    assert order(other) == [(1, ID, 1)]

    for version in range(2, 80):
        recorder.insert_events([event(version)])

    assert order(other) == [(n, ID, n) for n in range(1, 80)]


def test_a_record_that_is_written_although_the_system_says_no_is_not_written_twice(
    recorders, monkeypatch
):
    recorder = recorders()
    recorder.insert_events([event(1)])

    def refuse(_):
        raise OSError(errno.EIO, "Input/output error")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "stat_fd", refuse)
        assert recorder.insert_events([event(2)]) == []

    assert recorder.insert_events([event(3)]) == [3]
    assert order(recorder) == order(recorders()) == [(n, ID, n) for n in (1, 2, 3)]


@pytest.mark.parametrize("last", [1, 4])
def test_a_log_that_was_begun_anew_under_its_name_is_numbered_by_the_next_look(recorders, last):
    recorders().insert_events(events(1, 3))
    recorder = recorders()
    recorder.store.path_of(ID).unlink()
    assert recorder.insert_events([event(1, originator_id=OTHER)]) == [4]
    epoch = recorder.epoch

    assert recorder.insert_events(events(1, last, "another")) == []

    assert order(recorder)[:last] == [(n, ID, n) for n in range(1, last + 1)]
    assert order(recorder)[last:] == [(last + 1, OTHER, 1)]
    assert recorder.epoch != epoch


def test_damaged_and_glued_lines_can_be_notified(recorders):
    recorder = recorders()
    recorder.insert_events([event(1)])
    fill_lines = [event(v) for v in range(2, 6)]
    for one in fill_lines:
        recorder.insert_events([one])
    lines = rows(recorder.store)
    put(recorder.store, [*lines[:2], lines[2] + lines[3], b"\0" * 10, *lines[5:]])

    assert [n[2] for n in order(recorders())] == [1, 2, 3, 5]


def test_a_log_that_somebody_is_writing_to_is_left_to_him(recorders, stores):
    writer = stores()
    fill(writer, 1)
    fill(writer, 1, originator_id=THIRD)
    writer.log(ID).begin()

    assert order(recorders()) == [(1, THIRD, 1)]
    writer.log(ID).end()
    assert order(recorders()) == [(1, THIRD, 1), (2, ID, 1)]


@pytest.mark.parametrize("numbered", [True, False])
def test_a_log_that_cannot_be_read_does_not_hide_the_others(recorders, numbered):
    recorder = recorders()
    recorder.insert_events([event(1)])
    if numbered:
        recorder.insert_events([event(1, originator_id=OTHER)])
    recorder.insert_events([event(2)])
    recorder.store.path_of(OTHER).write_bytes(b'{"format":"leftfold/2"}\n{"v":1}\n')
    recorder.store.path_of(THIRD).mkdir()

    assert [n[1:] for n in order(recorders())] == [(ID, 1), (ID, 2)]
    assert recorders().insert_events([event(3)]) == [4 if numbered else 3]


def test_a_log_that_breaks_off_while_it_is_read_does_not_hide_the_others(recorders, monkeypatch):
    recorder = recorders()
    recorder.insert_events([event(1)])
    for other in (OTHER, THIRD):  # nobody has numbered these
        recorder.store.path_of(other).write_bytes(recorder.store.path_of(ID).read_bytes())
    broken, read = recorder.store.path_of(OTHER).stat(), disk.read

    def reading(fd, *place):
        if os.path.samestat(os.fstat(fd), broken):
            raise OSError(errno.EIO, "Input/output error")
        return read(fd, *place)

    monkeypatch.setattr(disk, "read", reading)
    assert [n[1:] for n in order(recorders())] == [(ID, 1), (THIRD, 1)]


def test_an_order_that_cannot_be_made_does_not_stop_a_save(recorders, stores, monkeypatch):
    fill(stores(), 1)
    recorder = recorders()

    def refuse(*_):
        raise OSError(errno.ENOSPC, "No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(disk, "create", refuse)
        assert recorder.insert_events([event(2)]) == []

    assert order(recorders()) == [(1, ID, 1), (2, ID, 2)]


def test_two_that_find_it_missing_do_not_both_build_it(stores):
    """The second would give every event another number, under the nose of who has read the first."""
    one, two = JSONLApplicationRecorder(stores()), JSONLApplicationRecorder(stores())
    one.store.insert([event(1), event(2)])
    two.store.notifications._load()  # there is none: it will be built
    epoch = one.epoch

    two.store.notifications._rebuild()

    assert two.epoch == one.epoch == epoch
    assert two.max_notification_id() == 2


def test_a_save_after_the_order_was_cut_in_use_repeats_no_id(recorders):
    """The records of others may have gone too: where the new one came to stand proves nothing."""
    recorder = recorders()
    assert [recorder.insert_events([event(version)]) for version in (1, 2, 3)] == [[1], [2], [3]]
    os.truncate(recorder.store.notifications.file.path, 2 * SIZE)  # the header, one record

    assert recorder.insert_events([event(4)]) == [4]
    assert order(recorder) == order(recorders()) == [(n, ID, n) for n in range(1, 5)]


def test_a_look_after_the_order_was_cut_in_use_finds_all_of_it(recorders):
    recorder = recorders()
    for version in (1, 2, 3):
        recorder.insert_events([event(version)])
    os.truncate(recorder.store.notifications.file.path, 2 * SIZE)

    assert order(recorder) == order(recorders()) == [(n, ID, n) for n in range(1, 4)]
