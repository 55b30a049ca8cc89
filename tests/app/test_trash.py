"""What was deleted is seen, comes back whole, and is erased only when that is asked for by name."""

import time
from uuid import UUID

import pytest

from app.application import Conversations
from app.places import side_files
from infrastructure.errors import LogExistsError, LogMissingError
from infrastructure.jsonl import trash
from infrastructure.jsonl.store import Store
from tests.app.in_process import run
from tests.app.test_read_models import say
from tests.infrastructure.jsonl.support import python


@pytest.fixture
def store(home):
    return home / "conversations"


@pytest.fixture
def trashed(store):
    """A conversation that was deleted, and its log as it was."""
    log = say(store, "about apples")
    content = log.read_bytes()
    assert run("delete", log.stem, "--yes").code == 0
    return log, content


def in_trash(store):
    return sorted(path.name for path in (store / ".trash").glob("[!.]*"))


def printed(home, conversation_id, text="all of it"):
    """A side file of a conversation."""
    folder = side_files(home, conversation_id)
    folder.mkdir(parents=True)
    (folder / "call.txt").write_text(text)
    return folder / "call.txt"


def test_the_list_is_aligned_and_says_what_each_thing_is(store, trashed, monkeypatch):
    log, _ = trashed
    say(store, "关于苹果")
    for name in (path.stem for path in store.glob("*.jsonl")):
        run("delete", name, "--yes")
    (store / ".trash" / "letter.txt").write_text("not ours")
    (store / ".trash" / "folder").mkdir()
    damaged = "01920000-0000-7000-8000-000000000001.jsonl"
    (store / ".trash" / damaged).write_bytes(b"\0" * 100)

    shown = {row["title"]: row for row in run("trash", "list", "--json").objects}
    assert {title: row["kind"] for title, row in shown.items()} == {
        "about apples": "conversation", "关于苹果": "conversation", "letter.txt": "foreign",
        "folder": "foreign", damaged: "damaged",
    }  # fmt: skip
    apples = shown["about apples"]
    assert (apples["id"], apples["path"]) == (log.stem, str(store / ".trash" / log.name))
    lines = run("trash", "list").out.decode().splitlines()
    [line] = [line for line in lines if "about apples" in line]
    assert line.endswith(f"{apples['bytes']:,} bytes  {log.stem}")
    assert time.strftime("%Y-%m-%d") in line


def test_what_is_restored_is_as_it_was_with_all_that_belongs_to_it(home, store):
    log = say(store, "about apples")
    side_file = printed(home, log.stem)
    with Conversations({"LEFTFOLD_STORE": str(store)}) as conversations:
        conversations.keep_snapshot(conversations.get(UUID(log.stem)))
    before = {path: path.read_bytes() for path in home.rglob("*.jsonl")}
    assert store / ".snapshots" / log.name in before

    run("delete", log.stem, "--yes")
    done = run("trash", "restore", log.stem[-8:])

    assert (done.code, done.out.decode()) == (0, f"{log}\n")
    assert {path: path.read_bytes() for path in home.rglob("*.jsonl")} == before
    assert side_file.read_text() == "all of it"
    assert in_trash(store) == []
    assert run("verify").code == 0
    assert b"about apples" in run("list", "--all").out


def test_nothing_is_restored_over_a_log(store, trashed):
    log, content = trashed
    log.write_bytes(content + b"\n")

    done = run("trash", "restore", log.stem)

    assert (done.code, log.read_bytes()) == (1, content + b"\n")
    assert "there is a log already" in done.complaint
    assert in_trash(store) == [log.name]


def test_what_was_deleted_twice_is_named_by_its_file(store, trashed):
    log, content = trashed
    log.write_bytes(content + b"\n")
    run("delete", log.stem, "--yes")

    done = run("trash", "restore", log.stem)
    assert (done.code, f"{log.name}.1" in done.complaint) == (2, True)
    assert run("trash", "restore", f"{log.name}.1").code == 0
    assert log.read_bytes() == content + b"\n"

    assert run("trash", "purge", "--yes").code == 0  # a copy of what is there again
    assert run("verify").code == 0
    log.unlink()
    assert run("verify").code == 1  # that it is gone is damage: it was not purged


def test_a_purge_takes_all_that_belongs_to_a_conversation_and_nothing_else(home, store, trashed):
    log, _ = trashed
    other = say(store, "about pears")
    side_file, kept = printed(home, log.stem), printed(home, other.stem)
    foreign = store / ".trash" / "letter.txt"
    foreign.write_text("not ours")
    damaged = store / ".trash" / "01920000-0000-7000-8000-000000000001.jsonl"
    damaged.write_bytes(b"\0" * 100)

    assert run("trash", "purge").code == 2
    assert in_trash(store) == sorted([log.name, foreign.name, damaged.name])
    assert [row["id"] for row in run("trash", "purge", "--yes", "--json").objects] == [log.stem]

    assert not side_file.parent.exists()
    assert (kept.exists(), other.exists()) == (True, True)
    assert in_trash(store) == sorted([foreign.name, damaged.name])
    assert run("verify", "--json").objects[-1]["ok"] is True  # nothing is missed
    assert run("trash", "purge", "letter.txt", damaged.name, "--yes").code == 0
    assert in_trash(store) == []


def test_only_what_was_deleted_long_ago_is_purged(store, trashed, monkeypatch):
    log, _ = trashed

    for long in ("1h", "30d", "4w"):
        assert run("trash", "purge", "--older-than", long, "--yes").code == 0
        assert in_trash(store) == [log.name]
    for nonsense in ("30", "-1d", "soon", "9999999d"):
        assert run("trash", "purge", "--older-than", nonsense, "--yes").code == 2
    assert run("trash", "purge", "--older-than", "0h", "--yes").code == 0
    assert in_trash(store) == []


@pytest.mark.parametrize("is_fork_deleted", [False, True])
def test_a_fork_keeps_what_its_log_names(home, store, is_fork_deleted):
    log = say(store, "about apples")
    side_file = printed(home, log.stem)
    with Conversations({"LEFTFOLD_STORE": str(store)}) as conversations:
        talk = conversations.open(UUID(log.stem))
        talk.record(lambda talk: talk.append_note("note", f"All of it: {side_file}", visible=True))
        fork = conversations.fork(UUID(log.stem))
    shown = run("show", fork).out
    run("delete", log.stem, "--yes")
    if is_fork_deleted:
        run("delete", fork, "--yes")

    [purged] = run("trash", "purge", log.stem, "--yes", "--json").objects

    assert purged["side_files_kept"] is True
    assert side_file.read_text() == "all of it"
    if is_fork_deleted:
        assert run("trash", "restore", fork).code == 0
    assert (run("show", fork).out, run("verify", fork).code) == (shown, 0)


@pytest.mark.usefixtures("trashed")
def test_ids_are_matched_and_never_joined_into_paths(store):
    outside = store / "precious.txt"
    outside.write_text("precious")

    for name in ("../precious.txt", str(outside), ".", "..", ".purged", "*", "apples", ""):
        assert run("trash", "purge", name, "--yes").code == 1
        assert run("trash", "restore", name).code == 1
    assert outside.read_text() == "precious"


def test_another_persistence_module_has_no_trash(store, monkeypatch):
    monkeypatch.setenv("PERSISTENCE_MODULE", "eventsourcing.popo")
    for arguments in (["list"], ["restore", "0192"], ["purge", "--yes"]):
        done = run("trash", *arguments)
        assert (done.code, len(done.complaint.splitlines())) == (1, 1)
        assert "no trash" in done.complaint


STEPS = """
import json, sys
from pathlib import Path
from uuid import UUID
from infrastructure.errors import StoreError
from infrastructure.jsonl import trash
from infrastructure.jsonl.store import Store

store, done = Store(Path(sys.argv[1])), 0
for _ in range(40):
    for step in (lambda: trash.put(store, UUID(sys.argv[2])),
                 lambda: trash.restore(store, trash.contents(store)[0])):
        try:
            step()
            done += 1
        except (StoreError, IndexError):
            pass
print(done)
"""


def test_two_processes_delete_and_restore_at_once(store):
    log = say(store, "about apples")
    content = log.read_bytes()
    both = [python(STEPS, store, log.stem) for _ in range(2)]
    done = [int(process.communicate()[0]) for process in both]

    assert [process.returncode for process in both] == [0, 0]
    assert min(done) > 0
    places = [path for path in (log, *(store / ".trash").glob("[!.]*")) if path.exists()]
    assert [path.read_bytes() for path in places] == [content]


def test_a_purge_that_could_not_end_can_be_done_again(home, store, trashed, monkeypatch):
    """The log goes last: as long as something is left, the trash shows it."""
    from tests.faults.failing import Failing

    log, _ = trashed
    printed(home, log.stem)
    for number in range(1, 20):
        layer = Failing(number, OSError(5, "no"), ("open", "write", "fdatasync", "unlink"))
        with monkeypatch.context() as patch:
            patch.setattr(trash.disk, "os", layer)
            done = run("trash", "purge", log.stem, "--yes")
        if not layer.failed:
            break
        if in_trash(store) == []:  # its name is gone, but the folder could not be synced
            assert not side_files(home, log.stem).exists()
            (store / ".trash" / log.name).write_bytes(trashed[1])
        else:
            assert done.code == 1
    assert number > 4
    assert in_trash(store) == []
    assert not side_files(home, log.stem).exists()


def test_the_store_says_what_is_not_there(tmp_path):
    store = Store(tmp_path)
    gone = trash.Trashed(tmp_path / ".trash" / "x", UUID(int=7), 0, None)

    assert trash.contents(store) == []
    with pytest.raises(LogMissingError):
        trash.restore(store, gone)
    store.path_of(gone.conversation).write_bytes(b"")
    with pytest.raises(LogExistsError):
        trash.restore(store, gone)
