"""One file: what is on disk, what is read of it, and what a failed append leaves."""

import errno
import json
import os
import re
import signal
from uuid import UUID

import pytest
from eventsourcing.persistence import IntegrityError, OperationalError

from infrastructure.errors import (
    LogMissingError,
    LogReplacedError,
    NewerFormatError,
    VersionConflictError,
    WriteError,
)
from infrastructure.jsonl import disk
from infrastructure.jsonl import line as lines_
from tests.infrastructure.jsonl.support import ID, event, events, fill, put, python, rows, versions


def test_golden_log(store):
    store.insert([event(1, "a")])
    store.insert([event(2, "b"), event(3, "ü\u2028")])

    data = store.path_of(ID).read_bytes()

    created = re.search(rb'"created":"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z)"', data)[1]
    assert (
        data
        == (
            b'{"format":"leftfold/1","id":"01900000-0000-7000-8000-000000000001","created":"%s"}\n'
            b'{"v":1,"topic":"Noted","state":{"text":"a"},"crc":"15e4c38e"}\n'
            b'{"v":2,"topic":"Noted","state":{"text":"b"},"crc":"17a27dd7","batch":[1,2]}\n'
            b'{"v":3,"topic":"Noted","state":{"text":"\xc3\xbc\xe2\x80\xa8"},"crc":"ffde10f9","batch":[2,2]}\n'
        )
        % created
    )


def test_a_version_that_does_not_rise_is_refused_and_nothing_is_written(store):
    fill(store, 2)
    before = store.path_of(ID).read_bytes()

    for wrong in ([event(2)], [event(1)], [event(3), event(3)], [event(4), event(3)]):
        with pytest.raises(VersionConflictError):
            store.insert(wrong)

    assert store.path_of(ID).read_bytes() == before


def test_a_conflict_is_the_librarys_integrity_error(store):
    fill(store, 1)

    with pytest.raises(IntegrityError):
        store.insert([event(1)])


def test_a_torn_tail_is_sealed_and_the_next_event_is_read(stores):
    fill(stores(), 3)
    store = stores()
    path = store.path_of(ID)
    path.write_bytes(path.read_bytes()[:-5])

    store.insert([event(3, "again")])
    store.insert([event(4)])

    assert versions(stores()) == [1, 2, 3, 4]
    assert rows(store)[4].startswith(b'{"v":3,"topic":"Noted","state":{"text":"again"}')
    assert [damage.number for damage in store.inspect(ID).damages] == [4]


def test_a_valid_tail_without_its_newline_counts(stores):
    fill(stores(), 2)
    store = stores()
    path = store.path_of(ID)
    path.write_bytes(path.read_bytes()[:-1])

    store.insert([event(3)])

    assert versions(stores()) == [1, 2, 3]
    assert store.inspect(ID).damages == []


def test_an_unfinished_batch_is_dropped_and_overwritten(stores):
    first = stores()
    fill(first, 2)
    first.insert(events(3, 5))
    path = first.path_of(ID)
    path.write_bytes(path.read_bytes()[: -len(rows(first)[-1]) - 1])
    store = stores()

    assert versions(store) == [1, 2]
    store.insert([event(3, "new")])

    assert versions(stores()) == [1, 2, 3]
    assert store.log(ID).read()[-1].state == b'{"text":"new"}'
    assert b'"base":2' in rows(store)[-1]


def test_an_unfinished_batch_stays_dropped_whatever_version_comes_next(stores):
    first = stores()
    fill(first, 2)
    first.insert(events(3, 5))
    path = first.path_of(ID)
    path.write_bytes(path.read_bytes()[: -len(rows(first)[-1]) - 1])

    stores().insert([event(100)])

    assert versions(stores()) == [1, 2, 100]


def test_damage_in_the_middle_costs_itself(stores):
    store = stores()
    fill(store, 5)
    lines = rows(store)
    put(store, [*lines[:2], b"\0" * 200, lines[2] + lines[3], lines[1], *lines[4:]])

    assert versions(stores()) == [1, 2, 3, 4, 5]
    stores().insert([event(6)])
    assert versions(stores(), desc=True, limit=2) == [6, 5]


def test_the_file_name_gives_the_id_whatever_the_header_says(stores):
    store = stores()
    fill(store, 2)
    put(store, rows(store)[1:])

    assert versions(stores()) == [1, 2]
    stores().insert([event(3)])
    assert versions(stores()) == [1, 2, 3]
    assert store.inspect(ID).header is None


def test_a_newer_format_is_refused_with_its_name(stores):
    store = stores()
    fill(store, 2)
    put(store, [b'{"format":"leftfold/2","id":"x"}', *rows(store)[1:]])

    for action in (
        versions,
        lambda s: versions(s, gt=1),
        lambda s: s.insert([event(3)]),
    ):
        with pytest.raises(NewerFormatError, match=r"\.jsonl.*leftfold/2"):
            action(stores())


@pytest.mark.parametrize(
    "query",
    [
        {},
        {"gt": 1990},
        {"gt": 5, "lte": 9},
        {"desc": True, "limit": 3},
        {"lte": 700, "desc": True, "limit": 2},
        {"gt": 2000},
        {"lte": 4},
        {"gt": 1998, "desc": True, "limit": 9},
        {"limit": 3},
        {"gt": 100, "limit": 1},
    ],
)
@pytest.mark.parametrize("hurt", [None, b"\0" * 40, b"half", b"repeat"])
def test_every_way_to_read_gives_the_same(store, query, hurt):
    lines = [lines_.encode(v, "T", b'"%s"' % (b"x" * (v * 37 % 300)))[:-1] for v in range(1, 2001)]
    if hurt is not None:
        lines[1500] = lines[3] if hurt == b"repeat" else hurt
    store.path.mkdir()
    put(store, [lines_.encode_header(str(ID), "now")[:-1], *lines])
    there = [v for v in range(1, 2001) if hurt is None or v != 1501]

    found = versions(store, **query)

    expected = [v for v in there if query.get("gt", 0) < v <= query.get("lte", 9999)]
    expected = expected[::-1] if query.get("desc") else expected
    assert found == expected[: query.get("limit")]


def test_versions_with_gaps_are_found_from_the_end(store):
    store.insert([event(v) for v in range(1, 4000, 40)])

    assert versions(store, lte=3000, desc=True, limit=3) == [2961, 2921, 2881]


def test_a_file_appended_to_itself_keeps_its_last_version(stores):
    store = stores()
    store.insert(events(1, 6000, "y" * 100))
    put(store, rows(store) + rows(store)[1:4000])

    assert stores().log(ID).last() == 6000


def test_reading_the_end_of_a_big_log_reads_a_few_kilobytes(stores, monkeypatch):
    store = stores()
    for first in range(1, 5001, 500):
        store.insert([event(v, "z" * 1000) for v in range(first, first + 500)])
    size = store.path_of(ID).stat().st_size
    count = 0
    real = disk.read

    def counting(fd, length, offset):
        nonlocal count
        data = real(fd, length, offset)
        count += len(data)
        return data

    store = stores()
    # single events, so that no batch reaches out of what is read
    put(
        store,
        [
            rows(store)[0],
            *(lines_.encode(v, "T", b'"%s"' % (b"z" * 1000))[:-1] for v in range(1, 5001)),
        ],
    )
    monkeypatch.setattr(disk, "read", counting)

    assert size > 5_000_000
    assert versions(store, gt=4990) == list(range(4991, 5001))
    assert count < 150_000
    count = 0
    assert versions(store, desc=True, limit=1) == [5000]
    assert count < 60_000
    count = 0
    store.insert([event(5001)])
    assert count < 60_000


def test_two_stores_in_one_process_see_each_other(stores):
    one, two = stores(), stores()
    fill(one, 2)
    two.insert([event(3)])

    with pytest.raises(IntegrityError):
        one.insert([event(3)])
    one.insert([event(4)])

    assert versions(two) == [1, 2, 3, 4]


def test_the_only_writer_does_not_read(store, monkeypatch):
    fill(store, 3)
    monkeypatch.setattr(disk, "read", None)

    store.insert([event(4)])


def test_a_deleted_log_is_not_written_to(store):
    fill(store, 3)
    store.path_of(ID).unlink()

    for _ in range(2):
        with pytest.raises(LogReplacedError, match="deleted or replaced"):
            store.insert([event(4)])

    assert not store.path_of(ID).exists()
    assert versions(store) == []


def test_a_replaced_log_is_refused_once_and_then_believed(store):
    fill(store, 3)
    path = store.path_of(ID)
    copy = path.with_name("copy")
    copy.write_bytes(path.read_bytes())
    copy.rename(path)

    with pytest.raises(LogReplacedError):
        store.insert([event(4)])
    store.insert([event(4)])

    assert versions(store) == [1, 2, 3, 4]


@pytest.mark.parametrize("failing", ["sync_data", "write"])
@pytest.mark.parametrize("count", [1, 3])
def test_a_failed_append_leaves_nothing(stores, monkeypatch, failing, count):
    store = stores(durable=True)
    fill(store, 2)
    before = store.path_of(ID).read_bytes()
    real = disk.write
    with monkeypatch.context() as patch:
        if failing == "write":
            patch.setattr(disk, "write", lambda fd, data: real(fd, data[: len(data) // 2]))
        else:
            patch.setattr(disk, failing, _refuse)
        with pytest.raises(WriteError, match=r"\.jsonl: not saved") as caught:
            store.insert(events(3, 2 + count))

    assert isinstance(caught.value, OperationalError)
    assert store.path_of(ID).read_bytes() == before
    store.insert(events(3, 2 + count))
    assert versions(stores()) == list(range(1, 3 + count))


def _refuse(*_):
    raise OSError(errno.EIO, "Input/output error")


@pytest.mark.parametrize("failing", ["write", "sync", "rename"])
def test_a_failed_creation_leaves_nothing(stores, monkeypatch, failing):
    store = stores(durable=True)
    with monkeypatch.context() as patch:
        patch.setattr(disk, failing, _refuse)
        with pytest.raises(WriteError):
            store.insert(events(1, 2))

    assert list(store.path.iterdir()) == []
    store.insert(events(1, 2))
    assert versions(stores()) == [1, 2]


def test_an_interrupt_leaves_nothing(stores, monkeypatch):
    store = stores(durable=True)
    fill(store, 1)

    def interrupt(_):
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(disk, "sync_data", interrupt)
        with pytest.raises(KeyboardInterrupt):
            store.insert([event(2)])

    store.insert([event(2)])
    assert versions(stores()) == [1, 2]


FULL_DISK = """
import resource, signal, sys
from pathlib import Path
from uuid import UUID
from infrastructure.errors import WriteError
from infrastructure.jsonl.store import Store
from tests.infrastructure.jsonl.support import event, ID
signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
store = Store(Path(sys.argv[1]))
store.insert([event(1)])
size = store.path_of(ID).stat().st_size
resource.setrlimit(resource.RLIMIT_FSIZE, (size + 31, resource.RLIM_INFINITY))
try:
    store.insert([event(2, "lost")])
except WriteError as error:
    print(error)
assert store.path_of(ID).stat().st_size == size
resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
store.insert([event(2, "kept")])
"""


def test_a_full_disk_is_loud_and_costs_nothing(stores):
    store = stores()
    process = python(FULL_DISK, store.path)

    out, _ = process.communicate()

    assert process.returncode == 0
    assert "short write" in out
    assert [line.state for line in store.log(ID).read()] == [b'{"text":"x"}', b'{"text":"kept"}']


def test_modes_do_not_depend_on_the_umask(tmp_path):
    from eventsourcing.persistence import Tracking

    from infrastructure.jsonl.recorders import JSONLProcessRecorder
    from infrastructure.jsonl.store import Store

    before = os.umask(0)
    try:
        store = Store(tmp_path / "a" / "b" / "store")
        JSONLProcessRecorder(store).insert_events([event(1)], tracking=Tracking("app", 1))
        store.close()
    finally:
        os.umask(before)

    modes = {path: path.stat().st_mode & 0o777 for path in (tmp_path / "a").rglob("*")}
    assert all(mode == (0o700 if path.is_dir() else 0o600) for path, mode in modes.items()), modes
    assert (tmp_path / "a").stat().st_mode & 0o777 == 0o700


def test_without_locks_it_goes_on_and_says_so(stores, monkeypatch):
    def refuse(_):
        raise disk.LocksUnsupportedError(errno.ENOLCK, "No locks available")

    monkeypatch.setattr(disk, "try_lock", refuse)
    store = stores()

    fill(store, 2)

    assert versions(store) == [1, 2]
    assert store.locking_works is False


def test_inspecting_says_everything(stores):
    store = stores()
    fill(store, 4)
    lines = rows(store)
    lines[2] = lines[2].replace(b'"x"', b'"y"')
    lines[3] = b"\0" * 9
    put(store, lines)

    found = store.inspect(ID)

    assert (found.size, found.header.id) == (store.path_of(ID).stat().st_size, str(ID))
    assert [(a.version, a.crc_ok) for a in found.lines] == [(1, True), (2, False), (4, True)]
    assert found.missing == [(3, 3)]
    assert [d.reason for d in found.damages] == ["NUL bytes"]
    with pytest.raises(LogMissingError):
        store.inspect(UUID(int=5))


def test_a_writer_that_is_killed_leaves_no_lock(stores):
    store = stores()
    code = """
import sys, time
from pathlib import Path
from infrastructure.jsonl.store import Store
from tests.infrastructure.jsonl.support import event, ID
store = Store(Path(sys.argv[1]))
store.insert([event(1)])
store.log(ID).begin()
print("locked", flush=True)
sys.stdin.read()
"""
    process = python(code, store.path)
    assert process.stdout.readline() == "locked\n"
    process.send_signal(signal.SIGKILL)
    process.communicate()

    store.insert([event(2)])

    assert versions(store) == [1, 2]


def test_states_of_every_kind_come_back_exactly(stores):
    from eventsourcing.persistence import StoredEvent

    states = [
        b"",
        b"\xff\0\n",
        b'{"a":"\xe2\x80\xa8\xc2\x85"}',
        json.dumps({"a": "b\nc"}).encode(),
        b"{\n}",
        b'"\\ud83d"',
        b"NaN",
        b" 1",
    ]
    store = stores()
    store.insert([StoredEvent(ID, v, "T", state) for v, state in enumerate(states, 1)])

    assert [line.state for line in stores().log(ID).read()] == states
