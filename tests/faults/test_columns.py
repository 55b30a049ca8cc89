"""The columns that are kept beside a log are believed only for the very bytes they were made of."""

import os
import shutil
from collections import Counter
from functools import partial
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import domain.history
from app.application import Conversations
from domain import events
from domain.projections.context import request_of
from infrastructure import columns, snapshot_store
from infrastructure.columns import Columns
from infrastructure.jsonl.line import encode
from infrastructure.jsonl.one_pass import Decoder
from infrastructure.jsonl.store import SNAPSHOTS
from infrastructure.replayed import ReplayedEvents
from tests import builders as b
from tests.benchmarks import workload
from tests.faults.damage import histories, hospital
from tests.levels import at_level, examples

ENTRIES = 40
GOLDEN = Path(__file__).parents[1] / "golden"


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "conversations"


@pytest.fixture
def talk_id(folder, believed):
    """A log of two snapshots, with columns, that has grown since."""
    talk_id = workload.fill(folder, ENTRIES // 2)
    with workload.conversations(folder) as app:
        app.keep_snapshot(app.get(talk_id))
        for first in (ENTRIES // 2, ENTRIES - 2):
            for number in range(first, min(first + 18, ENTRIES)):
                app.open(talk_id).record(lambda talk, number=number: workload.append(talk, number))
            if first < ENTRIES - 2:
                app.keep_snapshot(app.get(talk_id))
    believed.clear()
    return talk_id


@pytest.fixture
def believed(monkeypatch, contexts):
    """Count the columns that were looked at, and those that were believed."""
    counted = Counter()
    told_of = Columns.told

    def told(self, *arguments):
        found = told_of(self, *arguments)
        counted[found is not None] += 1
        return found

    monkeypatch.setattr(Columns, "told", told)
    return counted


def sent(folder, talk_id, *, version=None, snapshots=True, home=None):
    """Return the request, and all that the conversation is."""
    environment = {"LEFTFOLD_STORE": str(folder), "IS_SNAPSHOTTING_ENABLED": "ny"[snapshots]}
    with Conversations(environment, home=home) as app:
        talk = app.get(talk_id, version=version)
        return request_of(talk, talk.leaf).body, b.state(talk)


def alone(folder, talk_id, **how):
    return sent(folder, talk_id, snapshots=False, **how)


# -- while they fit --------------------------------------------------------------------------------


def test_by_columns_a_conversation_is_what_it_is_from_its_log_alone(folder, talk_id, believed):
    assert sent(folder, talk_id) == alone(folder, talk_id)
    assert believed == {True: 2}


def test_so_it_is_as_it_was_at_any_version(folder, talk_id):
    for version in range(3, ENTRIES + 4):
        assert sent(folder, talk_id, version=version) == alone(folder, talk_id, version=version)


@settings(max_examples=examples(100))
@given(histories, st.sets(st.integers(1, 40), min_size=1, max_size=3), st.integers(1, 9))
def test_so_is_every_history(history, cuts, block):
    """With facts, branches, compactions, forks; columns of some of it, or of all."""
    with hospital(history, history.data) as app, pytest.MonkeyPatch.context() as patch:
        patch.setattr(domain.history, "_FIRST_BLOCK", block)
        for cut in sorted(cuts):
            app.keep_snapshot(app.get(history.id, version=cut))

        talk = app.get(history.id)
        told = request_of(talk, talk.leaf), b.state(talk)
        shutil.rmtree(app.store.path / SNAPSHOTS)
        talk = app.get(history.id)

        assert told == (request_of(talk, talk.leaf), b.state(talk))


def test_where_columns_are_missing_the_log_is_read(folder, talk_id, believed):
    path = folder / SNAPSHOTS / f"{talk_id}.jsonl"
    header, _, second = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(header + second)

    assert sent(folder, talk_id) == alone(folder, talk_id)
    assert believed == {True: 1}


def test_columns_are_made_of_so_many_events_at_most(folder, talk_id, believed, monkeypatch):
    shutil.rmtree(folder / SNAPSHOTS)
    monkeypatch.setattr(snapshot_store, "_MOST", 10)
    with workload.conversations(folder) as app:
        app.keep_snapshot(app.get(talk_id))
        (piece,) = app.snapshots.columns(talk_id)

    assert piece.last == ENTRIES + 4
    assert sent(folder, talk_id) == alone(folder, talk_id)


# -- when they do not ------------------------------------------------------------------------------


def in_place(old, new):
    """Return what writes *new*, of the same length, over the first *old* behind the facts."""
    assert len(old) == len(new)

    def change(path):
        data = path.read_bytes()
        place = data.index(old, data.index(b'"v":9,'))
        with path.open("r+b") as file:
            file.seek(place)
            file.write(new)

    return change


def replaced_by_a_copy(path):
    copy = path.with_suffix(".copy")
    shutil.copy2(path, copy)
    copy.replace(path)


def with_a_line_less(path):
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:7] + lines[8:]))


CHANGES = {
    "a letter": in_place(b'"text":"', b'"tixt":"'),
    "a text that becomes blank": in_place(b'{"type":"text","text":"', b'{"type":"text","text": '),
    "another role": in_place(b'"role":"user"', b'"role":"urse"'),
    "an id": in_place(b'"id":"toolu_0', b'"id":"toolu 0'),
    "an end": in_place(b'"}]}', b'"]}}'),
    "a newline": in_place(b"}\n{", b"} {"),
    "a number": in_place(b'"parent":1', b'"parent":9'),
    "a copy": replaced_by_a_copy,
    "its end cut off": lambda path: os.truncate(path, path.stat().st_size - 700),
    "its half cut off": lambda path: os.truncate(path, path.stat().st_size // 2),
    "a line less": with_a_line_less,
}
LOOKED_AT = {"a copy": {}, "its end cut off": {True: 2}, "its half cut off": {}, "a line less": {}}
"""How many columns were believed, or not, in place of one that was not."""


@pytest.mark.parametrize("kind", CHANGES)
def test_a_log_that_was_changed_since_is_read_itself(folder, talk_id, kind, believed):
    before = alone(folder, talk_id)
    CHANGES[kind](folder / f"{talk_id}.jsonl")

    now = sent(folder, talk_id)

    assert now == alone(folder, talk_id)
    assert (now == before) == (kind in ("a copy", "a newline"))  # two lines in one are found
    assert believed == LOOKED_AT.get(kind, {False: 1})


def test_whatever_byte_of_them_is_hit_changes_nothing(folder, talk_id):
    expected = alone(folder, talk_id)
    path = folder / SNAPSHOTS / f"{talk_id}.jsonl"
    whole = path.read_bytes()
    for place in range(0, len(whole), at_level(quick=151, whole=19)):
        for bits in (0x01, 0x80):
            path.write_bytes(whole[:place] + bytes([whole[place] ^ bits]) + whole[place + 1 :])

            assert sent(folder, talk_id) == expected, (place, bits)


@pytest.mark.parametrize("form", ["columns/1 little", "columns/3 little", "columns/2 middle"])
def test_those_of_another_version_are_not_believed(folder, talk_id, form, believed, monkeypatch):
    monkeypatch.setattr(snapshot_store, "FORM", form)

    assert sent(folder, talk_id) == alone(folder, talk_id)
    assert not believed


def test_nor_are_those_that_were_made_elsewhere(folder, talk_id, believed, tmp_path):
    """Even if the snapshot beside them was made here."""
    path = folder / SNAPSHOTS / f"{talk_id}.jsonl"
    header, *_, ours = path.read_bytes().splitlines(keepends=True)
    shutil.rmtree(folder / SNAPSHOTS)
    with Conversations({"LEFTFOLD_STORE": str(folder)}, home=tmp_path / "elsewhere") as app:
        app.keep_snapshot(app.get(talk_id))
    _, theirs = path.read_bytes().splitlines()
    mine, others = msgspec.json.decode(ours), msgspec.json.decode(theirs)
    state = mine["state"] | {key: others["state"][key] for key in ("columns", "seal")}
    assert state["columns"]
    path.write_bytes(header + encode(mine["v"], mine["topic"], msgspec.json.encode(state)))

    with workload.conversations(folder) as app:
        assert app.get(talk_id).restored_from == mine["v"]
    assert sent(folder, talk_id) == alone(folder, talk_id)
    assert not believed


def test_nor_are_those_of_a_program_that_knows_more_events(folder, talk_id, believed, monkeypatch):
    known = {topic: event for topic, event in events.TOPICS.items() if topic != "ModelChanged"}
    monkeypatch.setattr(ReplayedEvents, "decoder", Decoder(known))

    assert sent(folder, talk_id) == alone(folder, talk_id)
    assert believed == {False: 1}


def test_what_is_no_column_is_none(folder, talk_id, believed, monkeypatch):
    monkeypatch.setattr(columns, "_unpack", msgspec.msgpack.Decoder(list[int]).decode)

    assert sent(folder, talk_id) == alone(folder, talk_id)
    assert not believed


def test_the_form_is_counted_up_when_they_change(tmp_path):
    """Of the same lines, the same columns. If this fails, `FORM` has to be counted up, and the
    digest of the new form belongs here: older columns mean something else.
    """
    digests = {"columns/2": "341ea1f40e3727f0"}
    found = sha256()
    with Conversations({"LEFTFOLD_STORE": str(tmp_path)}) as app:
        for log in sorted(GOLDEN.glob("*.jsonl")):
            shutil.copy(log, tmp_path / f"{b.ID}.jsonl")
            for piece in snapshot_store.columns_of(app._replayed, b.ID, 1, 10_000):
                found.update(columns.packed([piece]))
            app.store.let_go(app.store.log(b.ID))

    assert digests[columns.FORM.split()[0]] == found.hexdigest()[:16]


@pytest.mark.parametrize("block", [7, 50])
def test_however_it_is_fetched_no_line_of_the_past_is_read_otherwise(folder, block, monkeypatch):
    talk_id = workload.fill(folder, 1)
    with workload.conversations(folder) as app:
        for first in range(1, 240, 20):
            app.open(talk_id).record(
                partial(workload._append_all, numbers=range(first, first + 20))
            )
            app.keep_snapshot(app.get(talk_id))
    monkeypatch.setattr(domain.history, "_FIRST_BLOCK", block)
    monkeypatch.setattr(snapshot_store.Past, "_read", lambda *_: pytest.fail("read"))

    assert sent(folder, talk_id) == alone(folder, talk_id)
