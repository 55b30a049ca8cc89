"""Several processes on one store."""

from uuid import UUID

from infrastructure.jsonl.recorders import JSONLApplicationRecorder
from tests.infrastructure.jsonl.support import ID, OTHER, event, python, versions

APPEND = """
import sys
from pathlib import Path
from eventsourcing.persistence import IntegrityError
from infrastructure.jsonl.recorders import JSONLApplicationRecorder
from infrastructure.jsonl.store import Store
from tests.infrastructure.jsonl.support import event, ID
store = Store(Path(sys.argv[1]), durable=False)
recorder = JSONLApplicationRecorder(store)
name, count, version, ids = sys.argv[2], int(sys.argv[3]), 0, []
sys.stdin.readline()
while len(ids) < count:
    last = recorder.select_events(ID, desc=True, limit=1)
    version = last[0].originator_version + 1 if last else 1
    try:
        ids += recorder.insert_events([event(version, name)])
    except IntegrityError:
        pass
print(*ids)
"""


def test_two_writers_of_one_conversation_lose_and_double_nothing(stores):
    store = stores()
    writers = [python(APPEND, store.path, name, 200) for name in ("a", "b")]
    for writer in writers:
        writer.stdin.write("go\n")
        writer.stdin.flush()

    ids = [[int(i) for i in writer.communicate()[0].split()] for writer in writers]

    assert versions(store) == list(range(1, 401))
    assert store.inspect(ID).damages == []
    assert sorted(ids[0] + ids[1]) == list(range(1, 401))
    found = JSONLApplicationRecorder(store).select_notifications(None, 1000)
    assert [(n.id, n.originator_version) for n in found] == [(v, v) for v in range(1, 401)]


def test_a_subscription_sees_what_another_process_saves(stores):
    recorder = JSONLApplicationRecorder(stores())
    recorder.insert_events([event(1, originator_id=OTHER)])
    with recorder.subscribe() as subscription:
        assert next(subscription).originator_id == OTHER

        writer = python(APPEND, recorder.store.path, "a", 3)
        writer.communicate("go\n")

        assert [next(subscription).originator_version for _ in range(3)] == [1, 2, 3]


def test_a_subscription_sees_events_that_were_saved_but_not_numbered(stores):
    recorder = JSONLApplicationRecorder(stores())
    with recorder.subscribe() as subscription:
        stores().insert([event(1)])

        assert next(subscription).originator_id == ID


def test_a_subscription_in_the_same_process_is_woken_at_once(stores):
    recorder = JSONLApplicationRecorder(stores())
    with recorder.subscribe(topics=["Noted"]) as subscription:
        recorder.insert_events([event(1, topic="Other", originator_id=UUID(int=3))])
        recorder.insert_events([event(1)])

        assert next(subscription).id == 2
    assert recorder.store.listeners == set()
