"""Snapshots make opening cheap, and change nothing else."""

import json
import shutil

import pytest

from app.application import Conversations
from app.open_conversation import SNAPSHOT_INTERVAL
from app.verification import verify
from domain.projections.context import context
from infrastructure.jsonl.store import SNAPSHOTS
from tests.benchmarks import workload
from tests.builders import state

ENTRIES = 2 * SNAPSHOT_INTERVAL + 100


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "conversations"


@pytest.fixture
def app(folder):
    with workload.conversations(folder) as conversations:
        yield conversations


def restored(app, talk_id):
    """The conversation, and whether a snapshot opened it."""
    talk = app.get(talk_id)
    return talk, talk.restored_from > 0


def test_a_long_conversation_opens_from_a_snapshot_and_is_the_same_without(app, folder):
    talk_id = workload.fill(folder, ENTRIES, compact_at=ENTRIES - 10, kept=50)

    fast, from_snapshot = restored(app, talk_id)
    request = context(fast, fast.leaf)
    past = state(app.get(talk_id, version=700))
    shutil.rmtree(folder / SNAPSHOTS)
    slow, without = restored(app, talk_id)

    assert (from_snapshot, without) == (True, False)
    assert request == context(slow, slow.leaf)
    assert state(fast) == state(slow)
    assert past == state(app.get(talk_id, version=700))


def test_a_compaction_keeps_a_snapshot(app, folder):
    talk_id = workload.fill(folder, 30, compact_at=20, kept=5)

    talk, from_snapshot = restored(app, talk_id)

    assert from_snapshot
    assert talk.restored_from == 25  # four facts, twenty messages, the compaction


def test_a_short_conversation_needs_none_and_reading_writes_nothing(app, folder):
    talk_id = workload.fill(folder, 20)
    state(app.get(talk_id))
    verify(app, talk_id)

    assert not (folder / SNAPSHOTS).exists()


def test_what_was_edited_before_the_snapshot_is_what_counts(app, folder):
    talk_id = workload.fill(folder, 600)
    path = folder / f"{talk_id}.jsonl"
    lines = path.read_bytes().splitlines(keepends=True)
    lines[2:3] = [
        json.dumps(
            {
                "v": 2,
                "topic": "Renamed",
                "state": {"timestamp": "2026-12-01T00:00:00Z", "name": "Edited by hand"},
            }
        ).encode()
        + b"\n"
    ]
    path.write_bytes(b"".join(lines))

    assert app.get(talk_id).name == "Edited by hand"


def test_a_snapshot_that_cannot_be_kept_costs_nothing(app, folder):
    folder.mkdir()
    (folder / SNAPSHOTS).write_text("in the way")

    talk_id = workload.fill(folder, SNAPSHOT_INTERVAL + 20)

    talk, from_snapshot = restored(app, talk_id)
    assert (len(talk.entries), from_snapshot) == (SNAPSHOT_INTERVAL + 20, False)


@pytest.mark.parametrize("module", ["eventsourcing.popo", "eventsourcing.sqlite"])
def test_snapshots_work_over_the_library_s_own_modules(module):
    with Conversations({"PERSISTENCE_MODULE": module, "SQLITE_DBNAME": ":memory:"}) as app:
        at_hand = app.start(workload.begin)
        for number in range(SNAPSHOT_INTERVAL + 40):
            at_hand.record(lambda talk, number=number: workload.append(talk, number))

        talk, from_snapshot = restored(app, at_hand.id)

        assert from_snapshot
        assert state(talk) == state(at_hand.conversation) | {"_created_on": talk.created_on}
