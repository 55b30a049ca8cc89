"""A store that was copied in: nothing in it makes Leftfold touch, or wait for, anything else."""

import errno
import os
import socket
from contextlib import suppress
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner
from eventsourcing.persistence import PersistenceError, Tracking

from app.application import Conversations
from app.cli import leftfold
from app.errors import AppError
from app.repl.prompt import PrivateHistory
from infrastructure.errors import LeaseHeldError, StoreError
from infrastructure.jsonl import disk, trash
from infrastructure.jsonl.locks import Lease
from infrastructure.jsonl.recorders import JSONLTrackingRecorder
from infrastructure.tools.output import MAX_BYTES, ToolContext, capped
from tests.benchmarks import workload
from tests.builders import NOW

SECRET = b"what nobody but its owner may read or change\n" * 4
SOMEBODY_ELSE = 12345


@pytest.fixture
def folder(home):
    return home / "conversations"


@pytest.fixture
def outside(tmp_path):
    """A folder of the user's with a file that no store has anything to do with."""
    folder = tmp_path / "outside"
    folder.mkdir()
    (folder / "precious").write_bytes(SECRET)
    return folder


@pytest.fixture
def ids(folder):
    """Two conversations; what is hostile is done to the first one."""
    return workload.fill(folder, 6), workload.fill(folder, 6)


def link(path, outside):
    path.symlink_to(outside / "precious")


def dangling_link(path, outside):
    path.symlink_to(outside / "not there yet")


def link_to_a_device(path, _outside):
    path.symlink_to("/dev/zero")


def pipe(path, _outside):
    os.mkfifo(path)


def folder_in_its_place(path, _outside):
    path.mkdir()


def bound_socket(path, _outside):
    here = Path.cwd()
    os.chdir(path.parent)  # names of sockets are short
    try:
        with socket.socket(socket.AF_UNIX) as one:
            one.bind(path.name)
    finally:
        os.chdir(here)


def terabyte_of_nothing(path, _outside):
    with path.open("wb") as file:
        file.write(b'{"format":"leftfold/1"}\n')
        file.truncate(1 << 40)


def file_of_somebody_else(path, outside):
    if os.geteuid() != 0:
        pytest.skip("only root can give files away")
    path.write_bytes((outside / "precious").read_bytes())
    os.chown(path, SOMEBODY_ELSE, SOMEBODY_ELSE)


KINDS = (
    link, dangling_link, link_to_a_device, pipe, folder_in_its_place, bound_socket,
    terabyte_of_nothing, file_of_somebody_else,
)  # fmt: skip
FILES = ("{id}.jsonl", ".leases/{id}", ".snapshots/{id}.jsonl", ".index/notifications", ".tracking.jsonl")  # fmt: skip
FOLDERS = (".leases", ".snapshots", ".index", ".trash")


def clear(path):
    """Take away what is at *path*, and make the folder that it is to stand in."""
    path.parent.mkdir(mode=0o700, exist_ok=True)
    if path.is_dir():
        for file in path.iterdir():
            file.unlink()
        path.rmdir()
    path.unlink(missing_ok=True)


def use(folder, conversation_id):
    """Do everything to one conversation that can be done to it; return what was complained of."""
    complaints = []

    def attempt(work):
        try:
            work()
        except (PersistenceError, AppError) as error:
            complaints.append(str(error))

    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app:
        attempt(lambda: Lease.acquire(folder, conversation_id).release())
        attempt(lambda: app.get(conversation_id))
        attempt(lambda: app.open(conversation_id).record(lambda talk: talk.rename("Renamed")))
        attempt(lambda: app.keep_snapshot(app.get(conversation_id)))
        attempt(lambda: app.fork(conversation_id))
        attempt(lambda: app.recorder.select_notifications(1, 100))
        tracking = JSONLTrackingRecorder(app.store)
        attempt(lambda: tracking.insert_tracking(Tracking("reader", 1)))
        attempt(lambda: tracking.max_tracking_id("reader"))
        attempt(lambda: trash.put(app.store, conversation_id))
        for again in (trash.restore, trash.purge):
            attempt(lambda again=again: again(app.store, trashed(app.store, conversation_id)))
            attempt(lambda: trash.put(app.store, conversation_id))
        attempt(lambda: trash.purge(app.store, trashed(app.store, conversation_id)))
    return complaints


def trashed(store, conversation_id):
    """What is in the trash by the name of a log, or would be."""
    path = store.path / ".trash" / f"{conversation_id}.jsonl"
    return trash.Trashed(path, conversation_id, 0, NOW)


def unharmed(outside):
    return {path.name: path.read_bytes() for path in outside.iterdir()} == {"precious": SECRET}


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", FILES)
def test_what_is_no_file_of_ours_is_named_and_left_alone(folder, outside, ids, place, kind):
    path = folder / place.format(id=ids[0])
    clear(path)
    kind(path, outside)
    before = os.lstat(path)

    complaints = use(folder, ids[0])

    assert unharmed(outside)
    assert any(path.name in complaint for complaint in complaints) or ".snapshots" in place
    if not place.startswith("{id}") and ".snapshots" not in place:  # `trash` moves and removes
        assert (os.lstat(path).st_ino, os.lstat(path).st_size) == (before.st_ino, before.st_size)
    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app:
        assert len(app.get(ids[1]).entries) == 6
        app.open(ids[1]).record(lambda talk: talk.rename("goes on"))
        assert app.get(ids[1]).name == "goes on"


@pytest.mark.parametrize("place", FOLDERS)
def test_a_folder_of_the_store_that_leads_elsewhere_is_not_followed(folder, outside, ids, place):
    clear(folder / place)
    (folder / place).symlink_to(outside, target_is_directory=True)

    complaints = use(folder, ids[0])

    assert unharmed(outside)
    assert any(place in complaint for complaint in complaints) or place == ".snapshots"
    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app:
        assert len(app.get(ids[1]).entries) == 6


def stored(app, conversation_id):
    """The next event of a conversation, as the library hands it to a recorder."""
    last = max(
        app.recorder.select_events(conversation_id), key=lambda each: each.originator_version
    )
    return replace(last, originator_version=last.originator_version + 1)


def contents(path):
    return {file: file.read_bytes() for file in path.rglob("*") if file.is_file()}


@pytest.mark.parametrize("place", FOLDERS)
def test_a_folder_of_a_store_that_stands_elsewhere_is_not_used_there(folder, tmp_path, ids, place):
    """With everything in it that this store would look for."""
    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app:
        app.keep_snapshot(app.get(ids[0]))
        Lease.acquire(folder, ids[0]).release()
        app.recorder.select_notifications(1, 10)
        trash.put(app.store, workload.fill(folder, 2))
    (folder / place).rename(tmp_path / "elsewhere")
    (folder / place).symlink_to(tmp_path / "elsewhere")
    before = contents(tmp_path / "elsewhere")
    assert before

    checked = CliRunner().invoke(leftfold, ["verify"]).output
    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app:
        if place == ".index":  # not even to be read
            with pytest.raises(PersistenceError, match=r"\.index"):
                app.recorder.select_notifications(1, 10)
    complaints = use(folder, ids[0])

    assert contents(tmp_path / "elsewhere") == before
    assert any(place in complaint for complaint in complaints)
    assert (".index is no folder" in checked) == (place == ".index")


@pytest.mark.parametrize("kind", [link, dangling_link, pipe, file_of_somebody_else])
def test_nothing_is_appended_to_what_took_the_place_of_a_log(folder, outside, ids, kind):
    """Nobody has read it, so nobody has noticed."""
    path = folder / f"{ids[0]}.jsonl"
    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app:
        event = stored(app, ids[0])
    kind(clear(path) or path, outside)
    size = os.lstat(path).st_size

    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app, pytest.raises(PersistenceError):
        app.recorder.insert_events([event])

    assert unharmed(outside)
    assert os.lstat(path).st_size == size


def test_only_what_is_all_holes_is_too_large(folder, ids, monkeypatch):
    monkeypatch.setattr(disk, "_LARGE", 0)

    with Conversations({"LEFTFOLD_STORE": str(folder)}) as app:
        assert len(app.get(ids[0]).entries) == 6


def test_a_link_is_one_also_where_the_system_calls_it_otherwise(folder, ids, monkeypatch):
    """FreeBSD says EMLINK."""

    class Other:
        def __getattr__(self, name):
            return getattr(os, name)

        def open(self, path, flags, mode=0o777):
            raise OSError(errno.EMLINK, "Too many links")

    monkeypatch.setattr(disk, "os", Other())
    with pytest.raises(disk.NotOurFileError, match="symbolic link"):
        disk.open_read(folder / f"{ids[0]}.jsonl")


@pytest.mark.parametrize("kind", KINDS)
def test_one_hostile_log_costs_no_command_its_answer(folder, outside, ids, kind):
    path = folder / f"{ids[0]}.jsonl"
    clear(path)
    kind(path, outside)

    for command in (["list", "--all"], ["stats", "--all"], ["verify"]):
        done = CliRunner().invoke(leftfold, command)
        assert str(ids[1]) in done.output, (command, done.output, done.exception)
        assert path.name in done.output
        assert SECRET.decode()[:20] not in done.output
    assert unharmed(outside)


def test_a_store_that_is_a_link_is_where_its_person_put_it(tmp_path, home):
    real = tmp_path / "elsewhere"
    real.mkdir()
    home.mkdir()
    (home / "conversations").symlink_to(real, target_is_directory=True)

    conversation_id = workload.fill(home / "conversations", 4)

    assert (real / f"{conversation_id}.jsonl").exists()
    with Conversations({"LEFTFOLD_STORE": str(home / "conversations")}) as app:
        assert len(app.get(conversation_id).entries) == 4


@pytest.mark.parametrize("kind", [link, dangling_link, pipe])
def test_a_history_that_is_no_file_of_ours_is_left_alone(home, outside, kind):
    home.mkdir()
    kind(home / "history", outside)
    history = PrivateHistory(home / "history")

    assert list(history.load_history_strings()) == []
    history.store_string("a prompt")

    assert unharmed(outside)


def test_outputs_do_not_go_where_a_link_leads(home, outside):
    (home / "outputs").mkdir(parents=True)
    (home / "outputs" / "of a conversation").symlink_to(outside, target_is_directory=True)
    context = ToolContext(home, home / "outputs" / "of a conversation", "call")

    said = capped("x" * (MAX_BYTES + 1), context)

    assert unharmed(outside)
    assert "could not be kept" in said


def test_a_lease_that_is_a_link_says_which_file_is_in_the_way(folder, outside, ids):
    (folder / ".leases").mkdir(exist_ok=True)
    with suppress(FileNotFoundError):
        (folder / ".leases" / str(ids[0])).unlink()
    link(folder / ".leases" / str(ids[0]), outside)

    with pytest.raises(StoreError, match="symbolic link"):
        Lease.acquire(folder, ids[0])


def test_a_lease_with_another_name_is_somebodys_file_and_is_not_written_to(folder, outside, ids):
    path = folder / ".leases" / str(ids[0])
    clear(path)
    os.link(outside / "precious", path)

    with Lease.acquire(folder, ids[0]), pytest.raises(LeaseHeldError):
        Lease.acquire(folder, ids[0])

    assert unharmed(outside)
