"""Conversations between two stores: `copy` and `sync`, over every persistence module."""

import os
from contextlib import closing, suppress
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from app import moving
from app.application import Conversations
from app.moving import PartedError, copy, read
from app.syncing import sync
from app.verification import check_order, verify
from domain.conversation import Conversation
from infrastructure.errors import WriteError
from infrastructure.jsonl import disk, trash
from infrastructure.jsonl.locks import Lease
from tests.app.in_process import run
from tests.app.programs import Program, append_line
from tests.faults.conftest import MEMORY
from tests.faults.failing import Failing

KEY = "ZmVkY2JhOTg3NjU0MzIxMGZlZGNiYTk4NzY1NDMyMTA="


def opened(folder, module="infrastructure.jsonl", **environment):
    folder.mkdir(exist_ok=True)
    return Conversations(
        {
            "PERSISTENCE_MODULE": module,
            "LEFTFOLD_STORE": str(folder / "conversations"),
            "LEFTFOLD_DURABILITY": "os",
            "SQLITE_DBNAME": str(folder / "events.sqlite"),
            **environment,
        },
        home=folder,
    )


class Ended(BaseException):
    """The program is gone, in the middle of a call of the system."""


def ends(*_arguments):
    raise Ended


@pytest.fixture
def here(tmp_path):
    with closing(opened(tmp_path / "a")) as conversations:
        yield conversations


@pytest.fixture
def there(tmp_path):
    with closing(opened(tmp_path / "b")) as conversations:
        yield conversations


def begin(conversations, text="hello"):
    """Begin a conversation; return its id."""
    new = conversations.start(
        lambda id_, now: Conversation.start(id_, timestamp=now, cwd="/work", program="test")
    )
    new.record(lambda conversation: conversation.append_prompt(text))
    return new.id


def say(conversations, id_, text):
    conversations.open(id_).record(lambda conversation: conversation.append_prompt(text))


def stream(conversations, id_):
    return [(e.originator_version, e.topic, e.state) for e in read(conversations, id_).events]


def said(conversations, id_):
    return [message.content.text for message in conversations.get(id_).messages()]


def rows(here, there, **options):
    return list(sync(here, there, **{"dry_run": False, **options}))


def changes(here, there):
    """What a sync does, by outcome; that all is in step says nothing."""
    found = rows(here, there)
    assert [row for row in found if not hasattr(row, "outcome")] == []
    return sorted((row.outcome, row.to) for row in found if row.outcome != "same")


def everything(conversations):
    """All events of all conversations."""
    return {id_: stream(conversations, id_) for id_ in conversations.ids()}


def all_sound(conversations):
    for id_ in conversations.ids():
        assert verify(conversations, id_).findings == ()
    assert check_order(conversations.store).findings == ()


# -- copying -------------------------------------------------------------------------------------


def test_a_copy_is_the_same_stream_over_every_module_and_comes_back(tmp_path, here, conversations):
    there_and_back(tmp_path, here, conversations)


@pytest.mark.parametrize("module", ["infrastructure.jsonl", "eventsourcing.sqlite"])
def test_a_copy_is_the_same_stream_where_it_is_encrypted(tmp_path, here, module):
    with closing(opened(tmp_path / "b", module, CIPHER_KEY=KEY)) as other:
        id_ = there_and_back(tmp_path, here, other)
        [first, *_] = other.recorder.select_events(id_)
        assert b"cwd" not in first.state


def there_and_back(tmp_path, here, other):
    """Copy a conversation into *other*, go on there, and bring it back, to two stores."""
    id_ = begin(here)
    made = copy(here, other, id_, fork=False)
    assert (made.outcome, made.events) == ("copied", 2)
    assert stream(other, id_) == stream(here, id_)
    assert made.digest == read(other, id_).digest
    assert copy(here, other, id_, fork=False).outcome == "same"
    say(other, id_, "and there")
    with closing(opened(tmp_path / "c")) as back:
        copy(other, back, id_, fork=False)
        assert said(back, id_) == ["hello", "and there"]
    assert copy(other, here, id_, fork=False).outcome == "continued"
    assert said(here, id_) == ["hello", "and there"]
    return id_


def test_requests_are_proven_after_the_way_through_another_module_and_back(tmp_path):
    program = Program(tmp_path)
    program.run("--offline", "--yes", "-p", "run: echo hello")
    program.environment["SQLITE_DBNAME"] = str(tmp_path / "events.sqlite")
    there = program.run("copy", "--all", "--to-module", "eventsourcing.sqlite", "--json")
    [row] = there.objects
    program.environment["LEFTFOLD_HOME"] = str(tmp_path / "second")
    back = program.run("copy", row["id"], "--from-module", "eventsourcing.sqlite", "--json")
    [again] = back.objects
    [verified, _] = program.run("verify", "--json").objects

    assert (row["outcome"], again["outcome"]) == ("copied", "copied")
    assert row["digest"] == again["digest"]
    assert (verified["ok"], verified["requests_proven"]) == (True, 2)


def test_what_has_parted_is_refused_with_the_version_or_forked_once(here, there):
    id_ = begin(here)
    copy(here, there, id_, fork=False)
    say(here, id_, "one way")
    say(there, id_, "another way")
    before = everything(there)

    with pytest.raises(PartedError, match="from version 3 on"):
        copy(here, there, id_, fork=False)
    assert everything(there) == before
    made = copy(here, there, id_, fork=True)
    assert (made.outcome, made.parted) == ("forked", 3)
    assert said(there, made.fork) == ["hello", "one way"]
    assert there.get(made.fork).origin.source_id == id_
    assert copy(here, there, id_, fork=True).fork == made.fork
    assert {**before, made.fork: stream(there, made.fork)} == everything(there)


def test_a_long_copy_that_is_cut_short_goes_on_where_it_stopped(here, there, monkeypatch):
    monkeypatch.setattr(moving, "_AT_ONCE", 3)
    id_ = begin(here)
    for number in range(8):
        say(here, id_, f"say {number}")
    insert = there.recorder.insert_events
    saves = []

    def cut_short(events, **more):
        if len(saves) == 2:
            raise KeyboardInterrupt
        saves.append(len(events))
        return insert(events, **more)

    monkeypatch.setattr(there.recorder, "insert_events", cut_short)
    with pytest.raises(KeyboardInterrupt):
        copy(here, there, id_, fork=False)
    monkeypatch.setattr(there.recorder, "insert_events", insert)
    made = copy(here, there, id_, fork=False)

    assert saves == [3, 3]
    assert (made.outcome, made.events) == ("continued", 4)
    assert stream(there, id_) == stream(here, id_)


def test_what_is_written_is_read_again_and_compared(here, there, monkeypatch):
    id_ = begin(here)
    closed = there.events.mapper.closed
    monkeypatch.setattr(
        there.events.mapper,
        "closed",
        lambda e: closed(moving.replace(e, state=e.state.replace(b"hello", b"hullo"))),
    )

    with pytest.raises(moving.NotTheSameError):
        copy(here, there, id_, fork=False)


# -- bad input -----------------------------------------------------------------------------------


def hurt(conversations, id_, old, new):
    path = conversations.store.path_of(id_)
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new, 1))


@pytest.mark.parametrize("how", [(b'{"v":2,', b'{"v":2'), (b"hello", b"hullo")])
@pytest.mark.parametrize("which", ["here", "there"])
def test_a_damaged_log_is_named_and_neither_side_is_touched(here, there, how, which):
    id_ = begin(here)
    say(here, id_, "more")
    rows(here, there)
    say(here, id_, "only here")
    hurt({"here": here, "there": there}[which], id_, *how)
    logs = [here.store.path_of(id_), there.store.path_of(id_)]
    before = [log.read_bytes() for log in logs]
    [row] = rows(here, there)

    assert row.error.type == "damaged_stream"
    assert str(logs[which == "there"].parent) in row.error.message
    assert [log.read_bytes() for log in logs] == before


def test_a_torn_end_costs_nothing_it_was_never_saved(here, there):
    id_ = begin(here)
    with here.store.path_of(id_).open("ab") as log:
        log.write(b'{"v":3,"topic":"Rena')

    assert changes(here, there) == [("copied", "there")]
    assert stream(there, id_) == stream(here, id_)


def test_a_lost_end_comes_back_from_the_other_store(here, there):
    id_ = begin(here)
    say(here, id_, "more")
    rows(here, there)
    whole = stream(here, id_)
    path = here.store.path_of(id_)
    lines = path.read_bytes().splitlines(keepends=True)
    path.write_bytes(b"".join(lines[:-1]))

    assert changes(here, there) == [("continued", "here")]
    assert stream(here, id_) == whole


def test_a_newer_format_and_a_link_are_named_and_cost_the_others_nothing(here, there, tmp_path):
    newer, linked, fine = begin(here), begin(here), begin(here)
    hurt(here, newer, b"leftfold/1", b"leftfold/2")
    log = here.store.path_of(linked)
    log.rename(tmp_path / "elsewhere")
    log.symlink_to(tmp_path / "elsewhere")
    found = {row.id: row for row in rows(here, there)}

    assert "newer" in found[newer].error.message
    assert "symbolic link" in found[linked].error.message
    assert found[fine].outcome == "copied"
    assert list(there.ids()) == [fine]


def test_an_event_of_a_newer_version_is_carried_as_it_is(here, there):
    id_ = begin(here)
    state = {"timestamp": "2026-01-01T00:00:00Z", "new": 1}
    append_line(here.store.path_of(id_), 3, "Invented", state)

    assert changes(here, there) == [("copied", "there")]
    assert stream(there, id_) == stream(here, id_)


@pytest.mark.parametrize("keys", [("", KEY), (KEY, ""), (KEY, KEY[::-1].strip("=") + "=")])
def test_what_cannot_be_decrypted_is_named_and_left_alone(tmp_path, keys):
    mine, yours = keys
    with closing(opened(tmp_path / "b", **({"CIPHER_KEY": yours} if yours else {}))) as writer:
        id_ = begin(writer)
    environment = {"CIPHER_KEY": mine} if mine else {}
    with (
        closing(opened(tmp_path / "a", **environment)) as here,
        closing(opened(tmp_path / "b", **environment)) as there,
    ):
        [row] = rows(here, there)
        assert row.error.type == "locked_conversation"
        assert list(here.ids()) == []
        assert row.id == id_


def test_a_conversation_that_is_open_is_skipped_and_comes_next_time(here, there):
    id_, other = begin(here), begin(here)
    with Lease.acquire(here.store.path, id_):
        found = {row.id: row for row in rows(here, there)}
        assert found[id_].error.type == "lease_held"
        assert found[other].outcome == "copied"

    assert changes(here, there) == [("copied", "there")]


def test_a_full_disk_ends_it_with_what_is_whole_and_it_goes_on(here, there, monkeypatch):
    first, second = begin(here), begin(here)
    rows(here, there)
    say(here, first, "x" * 100)
    say(here, second, "y" * 100)
    monkeypatch.setattr(disk, "os", Failing(2, 28, ["write"], lasting=True))
    with pytest.raises(WriteError, match="No space left"):
        rows(here, there)
    monkeypatch.setattr(disk, "os", os)

    all_sound(there)
    rows(here, there)
    assert everything(here) == everything(there)


def test_where_a_folder_is_no_store_that_is_said(tmp_path, home):
    begin_home = opened(home)
    begin(begin_home)
    (tmp_path / "papers").mkdir()
    (tmp_path / "papers" / "letter.txt").touch()
    (tmp_path / "file").touch()
    for folder, why in [
        (tmp_path / "papers", "is no store"),
        (tmp_path / "file", "Not a directory"),
        (tmp_path / "no" / "where", "no directory"),
        (home, "is the store itself"),
        (home / "conversations", "is the store itself"),
        (home / "conversations" / ".trash", "is the store itself"),
    ]:
        done = run("sync", folder)
        assert (done.code, why in done.complaint) == (2, True), done
    (tmp_path / "link").symlink_to(home)
    assert "is the store itself" in run("sync", tmp_path / "link").complaint


# -- both ways -----------------------------------------------------------------------------------


def test_each_store_gets_what_the_other_has_more(here, there):
    old = begin(here)
    rows(here, there)
    begin(here)
    begin(there)
    say(there, old, "later")

    assert changes(here, there) == [("continued", "here"), ("copied", "here"), ("copied", "there")]
    assert everything(here) == everything(there)
    assert changes(here, there) == []


def test_what_went_on_in_both_is_there_twice_in_both_stores_whoever_syncs(here, there, tmp_path):
    """Three stores: the same line keeps the id, and the other gets the same new one, everywhere."""
    id_ = begin(here)
    with closing(opened(tmp_path / "c")) as third:
        rows(here, there)
        rows(third, there)
        say(here, id_, "first")
        say(third, id_, "second")
        rows(third, there)
        assert changes(here, there) == [("forked", "there")]
        assert changes(third, there) == [("forked", "here")]
        assert changes(here, there) == []

        assert everything(here) == everything(there) == everything(third)
        [fork] = set(here.ids()) - {id_}
        assert said(here, id_) == ["hello", "first"]
        assert said(here, fork) == ["hello", "second"]
        assert here.get(fork).origin.source_id == id_
        for conversations in (here, there, third):
            all_sound(conversations)


def test_bytes_that_were_no_events_are_kept_in_the_fork_too(here, there):
    id_ = begin(here)
    rows(here, there)
    say(here, id_, "first")
    with there.store.path_of(id_).open("ab") as log:
        log.write(b"half a li\n")
    say(there, id_, "second")
    [row] = rows(here, there)

    assert b"half a li\n" in there.store.path_of(row.fork).read_bytes()


def test_a_name_here_and_work_there_are_put_together(here, there):
    id_ = begin(here)
    rows(here, there)
    here.open(id_).record(lambda conversation: conversation.rename("shop"))
    here.open(id_).record(lambda conversation: conversation.label(2, "start"))
    say(there, id_, "work")
    there.open(id_).record(lambda conversation: conversation.archive(archived=True))

    assert changes(here, there) == [("merged", "there")]
    assert everything(here) == everything(there)
    conversation = here.get(id_)
    assert (conversation.name, conversation.archived, conversation.labels) == (
        "shop",
        True,
        {2: "start"},
    )
    assert said(here, id_) == ["hello", "work"]
    assert changes(here, there) == []
    all_sound(here)


def test_names_that_were_put_at_the_end_before_a_sync_ended_are_not_put_there_again(
    here, there, monkeypatch
):
    id_ = begin(here)
    rows(here, there)
    here.open(id_).record(lambda conversation: conversation.rename("shop"))
    say(there, id_, "work")
    monkeypatch.setattr("app.syncing._supersede", ends)
    with pytest.raises(Ended):
        rows(here, there)
    monkeypatch.undo()
    say(there, id_, "more")
    rows(here, there)

    assert [topic for _, topic, _ in stream(here, id_)].count("Renamed") == 1
    assert everything(here) == everything(there)
    assert said(here, id_) == ["hello", "work", "more"]


def test_of_two_names_the_last_one_counts(here, there):
    id_ = begin(here)
    rows(here, there)
    there.open(id_).record(lambda conversation: conversation.rename("earlier"))
    here.open(id_).record(lambda conversation: conversation.rename("later"))
    rows(here, there)

    assert (here.get(id_).name, there.get(id_).name) == ("later", "later")


def test_deleting_does_not_travel_nor_is_it_undone(here, there):
    id_ = begin(here)
    rows(here, there)
    trash.put(here.store, id_)

    assert changes(here, there) == [("deleted", "here")]
    assert list(here.ids()) == []
    assert list(there.ids()) == [id_]


def test_another_module_keeps_its_line_and_the_folder_gets_the_fork(tmp_path, there):
    with closing(opened(tmp_path / "a", "eventsourcing.sqlite")) as here:
        id_ = begin(here)
        rows(here, there)
        say(there, id_, "first")
        say(here, id_, "second")

        assert changes(here, there) == [("forked", "there")]
        assert everything(here) == everything(there)
        assert said(here, id_) == ["hello", "second"]
        assert changes(here, there) == []


def test_a_dry_run_says_what_would_be_and_writes_nothing(here, there, tmp_path):
    id_ = begin(here)
    rows(here, there)
    say(here, id_, "first")
    say(there, id_, "second")
    begin(here)

    def files():
        return {p: p.read_bytes() for p in tmp_path.rglob("*") if p.is_file()}

    before = files()
    told = rows(here, there, dry_run=True)
    assert files() == before
    assert told == rows(here, there)


def test_who_appends_while_a_line_is_replaced_loses_nothing(here, there, monkeypatch):
    """A rename takes no lease: it may come between the reading and the writing."""
    id_ = begin(here)
    rows(here, there)
    say(here, id_, "first")
    say(there, id_, "second")
    keep = moving.carry
    there_too = opened(there.store.path.parent)

    def meanwhile(*arguments):
        keep(*arguments)
        say(there_too, id_, "third")

    monkeypatch.setattr("app.syncing.carry", meanwhile)
    [row] = rows(here, there)
    monkeypatch.undo()
    assert row.error.type == "version_conflict"
    assert said(there, id_) == ["hello", "second", "third"]
    rows(here, there)
    texts = [said(here, each) for each in here.ids()]
    assert ["hello", "second", "third"] in texts
    assert everything(here) == everything(there)


def test_the_commands_say_what_was_done_and_end_with_1_if_something_was_left(tmp_path, home):
    here = opened(home)
    id_, other = begin(here), begin(here)
    usb = tmp_path / "usb"

    first = run("sync", usb)
    assert (first.code, first.out.count(b"copied to")) == (0, 2)
    assert run("sync", usb).out == b"0 to the other store, 0 from it, 2 in step, 0 left alone\n"
    with closing(opened(tmp_path / "b", LEFTFOLD_STORE=str(usb))) as there:
        say(there, id_, "there")
        say(here, id_, "here")
        hurt(there, other, b"hello", b"hullo")
        say(here, other, "more")
    refused = run("copy", id_, "--to", usb)
    assert (refused.code, "from version 3 on" in refused.complaint) == (1, True)
    told = run("sync", usb, "--json")
    assert told.code == 1
    assert {row.get("outcome") for row in told.objects} == {"forked", None}
    assert run("copy", "--all").code == run("copy", id_, "--all", "--to", usb).code == 2
    assert "itself" in run("copy", "--all", "--to", home).complaint
    typo = run("copy", "--all", "--from", tmp_path / "typo")
    assert (typo.code, "there is no store" in typo.complaint) == (2, True)


# -- random edits and ends -----------------------------------------------------------------------


class TwoStores(RuleBasedStateMachine):
    """Two people, two stores, syncs that end anywhere: every event is somewhere, sound."""

    def __init__(self):
        super().__init__()
        self.folder = TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None)
        root = Path(self.folder.name)
        self.sides = [opened(root / "a"), opened(root / "b")]
        self.recorded = set()
        self.count = 0

    def teardown(self):
        rows(*self.sides)
        self.all_is_in_step()
        for side in self.sides:
            all_sound(side)
            side.close()
        self.folder.cleanup()

    def all_is_in_step(self):
        assert everything(self.sides[0]) == everything(self.sides[1])
        assert changes(*self.sides) == []

    def _edit(self, side, chance, command):
        conversations = self.sides[side]
        ids = sorted(conversations.ids())
        if not ids:
            return
        id_ = ids[chance % len(ids)]
        before = len(stream(conversations, id_))
        conversations.open(id_).record(command)
        self.recorded |= {event[1:] for event in stream(conversations, id_)[before:]}

    @rule(side=st.integers(0, 1))
    def begin(self, side):
        self.count += 1
        id_ = begin(self.sides[side], f"begin {self.count}")
        self.recorded |= {event[1:] for event in stream(self.sides[side], id_)}

    @rule(side=st.integers(0, 1), chance=st.integers(0, 9))
    def say(self, side, chance):
        self.count += 1
        self._edit(side, chance, lambda conversation: conversation.append_prompt(f"{self.count}"))

    @rule(side=st.integers(0, 1), chance=st.integers(0, 9))
    def name(self, side, chance):
        self.count += 1
        self._edit(side, chance, lambda conversation: conversation.rename(f"name {self.count}"))

    @rule(side=st.integers(0, 1), chance=st.integers(0, 9), flag=st.booleans())
    def archive(self, side, chance, flag):
        self._edit(side, chance, lambda conversation: conversation.archive(archived=flag))

    @rule(first=st.integers(0, 1))
    def sync(self, first):
        rows(self.sides[first], self.sides[1 - first])
        self.all_is_in_step()

    @rule(first=st.integers(0, 1), number=st.integers(1, 60))
    def sync_that_ends(self, first, number):
        names = ["write", "replace", "open", "fdatasync", "fsync"]
        disk.os = Failing(number, Ended(), names, lasting=True)
        try:
            with suppress(Ended):
                rows(self.sides[first], self.sides[1 - first])
        finally:
            disk.os = os

    @invariant()
    def every_event_is_somewhere_and_none_is_twice_in_a_conversation(self):
        found = set()
        for side in self.sides:
            for events in everything(side).values():
                once = {event[1:] for event in events}
                assert len(once) == len(events)
                found |= once
        assert self.recorded <= found


TestTwoStores = TwoStores.TestCase
