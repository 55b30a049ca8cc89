"""Private from the first moment, deaf to control sequences, and nothing is deleted unasked.

Cases E10, H8, O1, O4, O5, Z11.
"""

import ast
import io
import json
import os
import re
import stat
from contextlib import contextmanager

import pytest
from click.testing import CliRunner
from eventsourcing.persistence import Tracking
from rich.console import Console

from app.application import Conversations
from app.cli import leftfold
from app.recovery import recover
from app.repl.prompt import PrivateHistory
from app.view.transcript import show_transcript
from domain.conversation import Conversation
from domain.events import ModelChanged
from domain.projections.transcript import transcript
from infrastructure.errors import InvalidIdError
from infrastructure.jsonl.line import encode
from infrastructure.jsonl.locks import Lease
from infrastructure.jsonl.recorders import JSONLProcessRecorder
from infrastructure.jsonl.snapshots import JSONLSnapshotRecorder
from infrastructure.jsonl.store import SNAPSHOTS, Store
from infrastructure.tools.output import ToolContext, capped
from tests import builders as b
from tests.app.programs import ROOT, append_line
from tests.faults.damage import Scribe, mapper

PACKAGES = ("app", "domain", "infrastructure")


# -- modes ---------------------------------------------------------------------------------------


@contextmanager
def umask(value):
    before = os.umask(value)
    try:
        yield
    finally:
        os.umask(before)


def everything(folder):
    """Make every kind of file and folder that the program makes for itself, below *folder*."""
    scribe = Scribe()
    scribe.call()
    store = Store(folder / "deep" / "er" / "conversations", durable=True)
    recorder = JSONLProcessRecorder(store)
    for save in scribe.saves:
        recorder.insert_events(save)
    recorder.insert_tracking(Tracking("reader", 1))
    recorder.select_notifications(1, 10)
    JSONLSnapshotRecorder(Store(store.path / SNAPSHOTS, durable=False)).insert_events(
        scribe.saves[0][:1]
    )
    with Lease.acquire(store.path, b.ID):
        pass
    store.close()
    environment = {"LEFTFOLD_STORE": str(store.path), "LEFTFOLD_DURABILITY": "os"}
    with Conversations(environment) as conversations:
        conversations.fork(b.ID)
        recover(conversations, b.ID, cwd="/work")
    PrivateHistory(folder / "home" / "history").store_string("what was typed")
    context = ToolContext(folder / "work", folder / "home" / "outputs" / "x", "call")
    capped("much\n" * 100_000, context)


@pytest.mark.parametrize("mask", [0, 0o022, 0o077, 0o277])
def test_every_file_and_folder_is_private_whatever_the_umask(tmp_path, mask):
    folder = tmp_path / "root"
    folder.mkdir()
    (folder / "home").mkdir()
    with umask(mask):
        everything(folder)
    made = {
        str(path.relative_to(folder)): stat.S_IMODE(path.stat().st_mode)
        for path in folder.rglob("*")
        if path.name != "home"
    }

    assert {name: oct(mode) for name, mode in made.items() if mode & 0o077} == {}
    kinds = " ".join(made)
    for kind in (".jsonl", ".index", "tracking", ".snapshots", ".leases", "history", "outputs"):
        assert kind in kinds
    in_store = {name: mode for name, mode in made.items() if name.startswith("deep")}
    for name, mode in in_store.items():
        assert mode == (0o700 if (folder / name).is_dir() else 0o600), name


CREATING = {"open", "mkdir", "makedirs", "touch", "write_text", "write_bytes", "mkstemp", "mkdtemp"}
MADE = {
    "app/start.py _open_what_is_closed: open": "/dev/null",
    "app/start.py _open_what_is_closed: os.open": "/dev/null",
    "app/outputs.py look_away: os.open": "/dev/null",
    "app/view/console.py _go: os.open": "/dev/null",
    "app/commands/export.py _write: os.open": "what a person asked for, 0600",
    "app/log_in_a_file.py take_in: mkdir": "in a temporary folder, 0700",
    "app/log_in_a_file.py take_in: write_bytes": "the same",
    "infrastructure/jsonl/disk.py _opened: os.open": "makes nothing",
    "infrastructure/jsonl/disk.py create: os.open": "every file of a store, 0600",
    "infrastructure/jsonl/disk.py make_folder: os.mkdir": "every folder of a store, 0700",
    "infrastructure/jsonl/disk.py open_folder: os.open": "only reads",
    "infrastructure/safe_files.py opened: os.open": "only reads",
    "infrastructure/tools/replacing.py _copy_of: tempfile.mkstemp": "a copy for a crash, 0600",
    "infrastructure/tools/replacing.py _linked: os.open": "the user's new file, as the umask says",
    "infrastructure/tools/replacing.py _rename_over: os.open": "the user's files, as the umask says",
    "infrastructure/tools/replacing.py _write_in_place: os.open": "the user's files, which are there",
    "infrastructure/tools/replacing.py replace: mkdir": "the user's folders, as the umask says",
    "infrastructure/tools/searching.py _search: os.open": "only reads",
    "infrastructure/withheld.py _overwrite: open": "only reads",
    "infrastructure/withheld.py _overwrite: os.open": "this program's own memory",
    "infrastructure/tools/images.py _decode: open": "only reads",
    "infrastructure/tools/output.py _create: os.open": "an output, 0600",
}
"""Every place that may make a file or a folder, and with which mode."""

DELETING = {
    "unlink", "remove", "rmtree", "rmdir", "removedirs", "truncate", "ftruncate", "rename",
    "renames", "replace",
}  # fmt: skip
DELETED = {
    "domain/projections/orphans.py orphans: remove": "of a list in memory",
    "infrastructure/jsonl/disk.py remove: os.unlink": "the one function of the store that removes",
    "infrastructure/jsonl/disk.py rename: os.replace": "the one that puts a file in place",
    "infrastructure/jsonl/disk.py truncate: os.ftruncate": "the one that cuts",
    "infrastructure/jsonl/new_log.py put_in_place: disk.rename": "a new log; over one only if `sync` has it as a fork",
    "infrastructure/jsonl/log_file.py _cut: disk.truncate": "a failed append, back to before it",
    "infrastructure/jsonl/new_log.py _discard: disk.remove": "a new log that could not be made",
    "infrastructure/jsonl/log_file.py _refresh: disk.truncate": "a failed append, back to before it",
    "infrastructure/jsonl/log_file.py roll_back: disk.remove": "a new log that could not be synced",
    "infrastructure/jsonl/notification_file.py written_anew: disk.remove": "derived: half an index",
    "infrastructure/jsonl/notification_file.py written_anew: disk.rename": "derived: a new index",
    "infrastructure/jsonl/trash.py _move: disk.rename": "`delete` and `trash restore`: whole",
    "infrastructure/jsonl/trash.py purge: disk.remove": "`trash purge`, which was asked for by name",
    "app/trashed.py purge: shutil.rmtree": "the same: the side files of what is purged",
    "infrastructure/read_models/database.py _begin_anew: disk.remove": "derived: a damaged table",
    "infrastructure/jsonl/life_cycle.py supersede: disk.remove": "derived: the order, to be built again",
    "infrastructure/jsonl/life_cycle.py supersede: replace": "`sync`: the log stands in a fork, whole",
    "infrastructure/jsonl/snapshots.py _rewrite: replace": "derived: the snapshots, and new ones",
    "infrastructure/jsonl/tracking.py _write: disk.truncate": "derived: half a record",
    "infrastructure/jsonl/tracking.py advancing: disk.truncate": "derived: half a record",
    "infrastructure/jsonl/locks.py _say: disk.truncate": "a lease: who holds it",
    "infrastructure/seals.py _put: disk.rename": "a new key, where there is none",
    "infrastructure/seals.py _put: disk.remove": "its own temporary file",
    "infrastructure/tools/replacing.py _fill: os.ftruncate": "the user's file, as it was let to be",
    "infrastructure/tools/replacing.py _rename_over: replace": "the same: by a whole new file",
    "infrastructure/tools/replacing.py _rename_over: unlink": "its own temporary file",
    "infrastructure/tools/replacing.py _write_in_place: unlink": "its own copy, not needed any more",
    "app/commands/export.py _write: replace": "the file that --force was given for, by a whole one",
    "app/commands/export.py _write: unlink": "its own temporary file",
    "app/hooks/command.py run: unlink": "what the last run of the hook printed",
    "domain/request.py next: truncate": "of a buffer in memory",
    "infrastructure/tools/changing.py _written: replace": "the user's file, as the model was let to",
}
"""Every place that may end a file, or a part of it, and why it may. None but `delete` and `purge` is a conversation's."""

_OUR_NAMES = {"conversations", "_conversations", "conversation", "latest"}
"""Whose methods are called open and rename as well."""


def calls(names):
    """Every call of a function of one of *names* in the product: where, and what is called."""
    found = set()
    for package in PACKAGES:
        for path in sorted((ROOT / package).rglob("*.py")):
            for function, call in _calls(ast.parse(path.read_text())):
                if called := _called(call, names):
                    found.add(f"{path.relative_to(ROOT)} {function}: {called}")
    return found


def _calls(node, function="module"):
    for child in ast.iter_child_nodes(node):
        inside = (
            child.name if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef) else function
        )
        if isinstance(child, ast.Call):
            yield inside, child
        yield from _calls(child, inside)


def _called(call, names):
    match call.func:
        case ast.Name(id="replace" as name) if name in names:
            return name if len(call.args) > 1 and not call.keywords else None
        case ast.Name(id=name) if name in names:
            return name
        case ast.Attribute(attr=name, value=owner) if name in names:
            whose = getattr(owner, "id", getattr(owner, "attr", ""))
            if whose in ("os", "shutil", "disk", "tempfile"):
                return f"{whose}.{name}"
            if name in ("replace", "rename", "remove"):
                # str.replace has two arguments, dataclasses.replace names; Path.replace has one.
                is_path = len(call.args) == 1 and not call.keywords and whose not in _OUR_NAMES
                return name if is_path else None
            return None if whose in _OUR_NAMES else name
    return None


def test_every_place_that_makes_a_file_is_known_with_its_mode():
    assert calls(CREATING) == set(MADE)


def test_nothing_is_deleted_without_delete():
    """Case O4. Whoever adds a place to this list says here why no conversation can be lost by it."""
    assert calls(DELETING) == set(DELETED)


def test_whatever_commands_are_given_every_log_is_still_there(tmp_path):
    folder, log = store_of_evil(tmp_path)
    before = log.read_bytes()
    for command in (*READING, *WRITING):
        run(folder, *command)

    assert log.read_bytes().startswith(before)
    assert log.name in {path.name for path in folder.glob("*.jsonl")}
    assert len(list(folder.glob("*.jsonl"))) == 3  # it, what was recovered, and a fork


# -- ids never become paths ------------------------------------------------------------------------

PATHS = [
    "../x",
    "/etc/passwd",
    "a/b",
    "",
    "x\0",
    ".",
    "..",
    "~",
    "*",
    "%2e%2e%2f",
    "....",
    "\udcff",
]


@pytest.mark.parametrize("wanted", PATHS)
@pytest.mark.parametrize("command", ["show", "log", "tree", "context", "verify", "recover", "fork"])
def test_an_id_that_is_a_path_is_refused_and_touches_nothing(tmp_path, command, wanted):
    """Case H8."""
    folder, _ = store_of_evil(tmp_path)
    before = sorted(tmp_path.rglob("*"))
    done = run(folder, command, wanted)

    assert done.exit_code in (1, 2)
    assert sorted(tmp_path.rglob("*")) == before


@pytest.mark.parametrize("wanted", PATHS)
def test_the_store_takes_uuids_only(tmp_path, wanted):
    recorder = JSONLProcessRecorder(Store(tmp_path / "store"))

    with pytest.raises(InvalidIdError):
        recorder.select_events(wanted)
    assert not (tmp_path / "store").exists()


@pytest.mark.parametrize(
    "name", ["../../../evil", "/tmp/evil", "..", "a/b", "\0", "\udcff", "x" * 900]
)
def test_a_models_call_id_is_no_path(tmp_path, name):
    context = ToolContext(tmp_path, tmp_path / "outputs", name)
    shown = capped("much\n" * 100_000, context)
    [path] = (tmp_path / "outputs").iterdir()

    assert str(path) in shown
    assert list(tmp_path.iterdir()) == [tmp_path / "outputs"]


# -- control sequences -----------------------------------------------------------------------------

EVIL = (
    "a\x1b[2J\x1b]52;c;AAAA\x07\x1b[?1003h\x1bP+q\x1b\\b\rc\x08d\x9b31me\x9d0;title\x9cf\x7f"
    "\u202egnp\u202c\u2066x\u2069\u2028\u2029\x85\x00\x0e"
)
HIDDEN = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u2028-\u202e\u2066-\u2069]")
READING = [
    ["list", "--all"], ["list", "--all", "--json"], ["list", "--all", "--search", "a"],
    ["show", "0192"], ["show", "0192", "--json"], ["log", "0192"], ["log", "0192", "--json"],
    ["tree", "0192"], ["tree", "0192", "--json"], ["context", "0192"], ["stats", "0192"],
    ["stats", "0192", "--json"], ["verify"], ["verify", "--json"],
]  # fmt: skip
WRITING = [["recover", "0192"], ["fork", str(b.ID)]]


def store_of_evil(tmp_path):
    """A store with a log in which everything that can hold text holds control sequences."""
    talk = Conversation.start(b.ID, timestamp=b.NOW, cwd=f"/{EVIL}", metadata={EVIL: EVIL})
    talk.clock = b.Clock()
    # No command takes such a name; a log that somebody else wrote may hold it.
    talk._trigger(ModelChanged, model=f"model {EVIL}", max_tokens=1000, caching=False)
    talk.change_instructions(EVIL, [{**b.BASH, "description": EVIL}])
    talk.append_prompt(f"prompt {EVIL}\n```\n{EVIL}\n```")
    talk.append_answer(
        [
            b.thinking(EVIL),
            b.text(f"# {EVIL}\n[{EVIL}](http://{EVIL}) `{EVIL}`"),
            b.tool_use(f"call {EVIL}", f"tool {EVIL}", command=EVIL, **{EVIL: EVIL}),
            b.tool_use("two", "bash", command=EVIL),
            {"type": EVIL, EVIL: EVIL},
        ],
        stop_reason=EVIL,
        usage={"input_tokens": 1},
        request_digest=EVIL,
        request_version=3,
        projection=EVIL,
    )
    talk.start_tool("two")
    talk.append_tool_result("two", [b.text(EVIL)], is_error=True)
    talk.close_open_calls()
    talk.append_note(EVIL, EVIL, visible=True)
    talk.rename(EVIL)
    talk.label(talk.leaf, f"label {EVIL}")
    talk.end_turn("failed", error=b.events.TurnError(EVIL, EVIL, EVIL))
    talk.compact(EVIL, first_kept=talk.leaf, tokens_before=1, reason=EVIL)
    talk.queue_prompt(EVIL)
    folder = tmp_path / "store"
    store = Store(folder, durable=False)
    store.insert([mapper.to_stored_event(event) for event in talk.collect_events()])
    store.close()
    log = store.path_of(b.ID)
    append_line(log, talk.version + 1, f"topic {EVIL}", {"timestamp": EVIL, EVIL: EVIL})
    append_line(log, talk.version + 2, "Renamed", {"timestamp": EVIL, "name": [EVIL]})
    with log.open("ab") as file:
        file.write(EVIL.encode() + b"\n" + encode(1, f"old {EVIL}", b"{}"))
    head, _, rest = log.read_bytes().partition(b"\n")
    log.write_bytes(json.dumps(json.loads(head) | {"id": EVIL}).encode() + b"\n" + rest)
    return folder, log


def run(folder, *arguments):
    return CliRunner().invoke(leftfold, ["--store", str(folder), *arguments])


@pytest.mark.parametrize("command", [*READING, *WRITING], ids=" ".join)
def test_no_control_sequence_of_a_log_reaches_the_terminal(tmp_path, command):
    """Case E10."""
    folder, _ = store_of_evil(tmp_path)
    done = run(folder, *command)

    assert done.stdout
    assert done.exit_code == (1 if command[0] == "verify" else 0)
    assert HIDDEN.findall(done.stdout) == []
    assert HIDDEN.findall(done.stderr) == []


def test_no_control_sequence_of_a_log_reaches_a_terminal_with_colours(tmp_path):
    """The transcript as the REPL shows it on resuming: only our own colours are in it."""
    folder, _ = store_of_evil(tmp_path)
    with Conversations({"LEFTFOLD_STORE": str(folder)}) as conversations:
        talk = conversations.get(b.ID)
    screen = io.StringIO()
    console = Console(file=screen, force_terminal=True, width=100, color_system="truecolor")
    show_transcript(console, transcript(talk, talk.leaf))
    shown = re.sub(r"\x1b\[[0-9;]*m", "", screen.getvalue())

    assert "prompt" in shown
    assert HIDDEN.findall(re.sub(r"\x1b\]8;[^\x1b]*\x1b\\", "", shown)) == []
