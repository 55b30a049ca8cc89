"""Counts, not clocks: what must not grow, so that a slower program goes red on any machine."""

import importlib
import json
import os
import shlex
import shutil
import subprocess
import sys
import tracemalloc
from collections import Counter
from datetime import UTC, datetime
from itertools import islice
from pathlib import Path
from uuid import uuid4

import msgspec
import pexpect
import pytest

from app.application import Conversations
from app.cli import COMMANDS
from domain import events, plain
from domain.projections.context import context, request_of
from domain.projections.message_builder import MessageBuilder
from domain.projections.requests import Requests
from domain.tree import Tree
from domain.unread import Run, Unread
from infrastructure import event_store
from infrastructure.jsonl import disk, line
from infrastructure.jsonl.one_pass import Decoder
from infrastructure.jsonl.reader import Reader
from infrastructure.jsonl.store import SNAPSHOTS
from infrastructure.mapper import ConversationMapper
from tests.benchmarks import workload

MAIN = Path(__file__).parents[1] / "app" / "main.py"
KILOBYTE = 1024
MESSAGE = events.MessageAppended(
    timestamp=datetime(2026, 12, 1, tzinfo=UTC), parent=None, message=msgspec.Raw(b"{}")
)


@pytest.fixture
def folder(tmp_path):
    return tmp_path / "conversations"


@pytest.fixture
def app(folder):
    conversations = Conversations({"LEFTFOLD_STORE": str(folder), "LEFTFOLD_DURABILITY": "fsync"})
    yield conversations
    conversations.close()


@pytest.fixture
def calls(monkeypatch):
    """Count the calls of everything that touches the disk, and the bytes read."""
    counted = Counter()
    for name, function in vars(disk).copy().items():
        if getattr(function, "__module__", None) == disk.__name__ and not isinstance(
            function, type
        ):
            monkeypatch.setattr(disk, name, counting(counted, name, function))
    return counted


def counting(counted, name, function):
    """Return what does as *function* does, and counts its calls under *name*."""

    def call(*args, **more):
        counted[name] += 1
        found = function(*args, **more)
        if name == "read":
            counted["bytes read"] += len(found)
        return found

    return call


@pytest.fixture
def bodies(monkeypatch, contexts):
    """Count the messages whose body is decoded."""
    contexts.undo()  # the other way to make a context decodes them
    counted = Counter()

    def decoded(raw):
        counted["decoded"] += 1
        return original(raw)

    original = events.decoded
    monkeypatch.setattr(events, "decoded", decoded)
    return counted


# -- appending ---------------------------------------------------------------------------------


def test_an_append_costs_one_write_to_the_log_one_to_the_order_and_one_sync(app, calls):
    at_hand = app.start(workload.begin)
    for number in range(3):
        at_hand.record(lambda talk, number=number: workload.append(talk, number))
    calls.clear()

    at_hand.record(lambda talk: workload.append(talk, 3))

    assert calls["write"] == 2
    assert calls["sync_data"] == 1
    assert calls["position"] == 0  # nobody else wrote to the order
    assert calls["read"] == calls["sync"] == calls["rename"] == calls["open_append"] == 0
    assert calls["stat"] == 1  # is the log still at its path
    assert calls["stat_fd"] == 1  # has the order still its name, and who else wrote to it
    assert calls["try_lock"] == calls["unlock"] == 1


def test_an_append_encodes_its_event_once_and_makes_no_object_that_nobody_reads(app, monkeypatch):
    talk = workload.begin(uuid4(), app.clock())
    app.save(talk)
    workload.append(talk, 0)
    counted = Counter()
    for place, name in (
        (msgspec.json, "encode"),
        (line, "encode"),
        (event_store, "Recording"),
        (event_store, "Notification"),
    ):
        made = getattr(place, name)
        monkeypatch.setattr(place, name, counting(counted, f"{place.__name__}.{name}", made))

    recordings = app.save(talk)

    once = {"msgspec.json.encode": 1, "infrastructure.jsonl.line.encode": 1}
    assert counted == once
    assert recordings[0].notification.id == 5
    assert counted["infrastructure.event_store.Recording"] == 1


def test_an_append_costs_the_same_at_the_end_of_a_long_conversation(app, folder, calls):
    costs = []
    for size in (3, 900):
        at_hand = app.open(workload.fill(folder, size))
        at_hand.record(lambda talk: talk.rename("warm"))
        calls.clear()
        at_hand.record(lambda talk: talk.rename("measured"))
        costs.append(Counter(calls))

    assert costs[0] == costs[1]


# -- reading -----------------------------------------------------------------------------------


def test_replaying_reads_every_byte_once_and_decodes_no_body(app, folder, calls, bodies):
    talk_id = workload.fill(folder, 900)
    shutil.rmtree(folder / SNAPSHOTS)
    size = (folder / f"{talk_id}.jsonl").stat().st_size
    calls.clear()
    bodies.clear()

    talk = app.get(talk_id)

    assert len(talk.entries) == 900
    assert bodies["decoded"] == 0
    assert calls["bytes read"] <= size + 16 * KILOBYTE


def test_replaying_what_is_as_written_takes_one_pass(app, folder, calls, monkeypatch):
    """No line is made, and no event of a message but the newest; much is read at once."""
    talk_id = workload.fill(folder, 900)
    shutil.rmtree(folder / SNAPSHOTS)
    monkeypatch.setattr(Reader, "feed", lambda *_: pytest.fail("line by line"))
    monkeypatch.setattr(ConversationMapper, "read", lambda *_, **__: pytest.fail("event by event"))
    read = []
    monkeypatch.setattr(Unread, "read", lambda _, version: read.append(version) or MESSAGE)
    calls.clear()

    talk = app.get(talk_id)

    assert (talk.version, len(talk.entries), talk.message_count(), len(read)) == (904, 900, 900, 1)
    assert calls["read"] <= 8


def test_opening_after_a_compaction_reads_the_same_however_long_the_history_is(
    app, folder, calls, bodies
):
    read = []
    for entries in (900, 3_000):
        talk_id = workload.fill(folder, entries, compact_at=entries - 10, kept=50)
        calls.clear()
        bodies.clear()

        talk = app.get(talk_id)
        context(talk, talk.leaf)

        assert bodies["decoded"] <= 1
        read.append(calls["bytes read"])

    assert max(read) <= 1024 * KILOBYTE
    assert max(read) - min(read) <= 256 * KILOBYTE


def test_opening_without_a_compaction_reads_its_end(app, folder, calls):
    talk_id = workload.fill(folder, 3_000)
    size = (folder / f"{talk_id}.jsonl").stat().st_size
    calls.clear()

    talk = app.get(talk_id)

    assert len(list(islice(talk.backwards(talk.leaf), 20))) == 20
    assert talk.message_count() == 3_000
    assert calls["bytes read"] <= size // 2


def test_showing_the_end_decodes_what_is_shown(app, folder, bodies):
    talk = app.get(workload.fill(folder, 300))
    bodies.clear()

    shown = [entry.content for entry in talk.path(talk.leaf)[-20:]]

    assert len(shown) == bodies["decoded"] == 20


def test_a_request_of_plain_messages_decodes_none_of_them(app, folder, bodies):
    talk = app.get(workload.fill(folder, 300))
    bodies.clear()

    request = request_of(talk, talk.leaf)

    assert bodies["decoded"] <= 1  # the definitions of the tools
    assert len(request.content["messages"]) == 201  # prompt and result are one message


def test_messages_are_hung_and_looked_at_in_groups(app, folder, monkeypatch, contexts):
    contexts.undo()  # the other way to make a context looks at each
    talk_id = workload.fill(folder, 900)
    shutil.rmtree(folder / SNAPSHOTS)
    counted = Counter()
    for place, name in ((Tree, "record"), (plain, "_as_we_write"), (MessageBuilder, "add")):
        monkeypatch.setattr(place, name, counting(counted, name, getattr(place, name)))

    talk = app.get(talk_id)
    request_of(talk, talk.leaf)

    pieces = 5  # of the log, a quarter of a megabyte each
    assert counted["record"] <= 4 + pieces
    assert counted["add"] <= pieces
    assert counted["_as_we_write"] <= 2 * (900 // plain._GROUP + pieces)  # and of results


def test_with_what_is_kept_of_it_nothing_of_the_past_is_parsed(
    app, folder, calls, monkeypatch, contexts
):
    contexts.undo()  # what is told by columns is read, too
    talk_id = workload.fill(folder, 2_600)
    sizes = [(path / f"{talk_id}.jsonl").stat().st_size for path in (folder, folder / SNAPSHOTS)]
    parsed = []
    decode_lines = Decoder.decode
    monkeypatch.setattr(
        Decoder,
        "decode",
        lambda self, data, end, at: (
            parsed.append(data[:end].count(b"\n")),
            decode_lines(self, data, end, at),
        )[1],
    )
    looked_at = Counter()
    for name in ("_as_we_write", "shapes"):
        monkeypatch.setattr(plain, name, counting(looked_at, name, getattr(plain, name)))
    calls.clear()

    talk = app.get(talk_id)
    request = request_of(talk, talk.leaf)

    assert talk.restored_from == 2_500
    assert sum(parsed) <= 2_604 - talk.restored_from + 20  # what came since, and a few lines
    assert looked_at["_as_we_write"] <= 2 * (sum(parsed) // plain._GROUP + 1)
    assert (
        calls["bytes read"] <= sum(sizes) + 800 * KILOBYTE
    )  # to find snapshots, and ends of pieces
    assert len(request.content["messages"]) == 1735


def test_what_is_kept_of_the_past_is_read_as_far_as_it_is_looked_at(app, folder, calls):
    read = []
    for entries in (1_010, 4_010):
        talk_id = workload.fill(folder, entries)
        calls.clear()
        talk = app.get(talk_id)
        assert len(list(islice(talk.backwards(talk.leaf), 20))) == 20
        read.append(calls["bytes read"])

    assert max(read) - min(read) <= 300 * KILOBYTE  # a piece more or less


def length(entry):
    return entry.length if isinstance(entry, Run) else 1


def test_a_request_looks_at_no_message_of_the_one_before(app, folder, monkeypatch, contexts):
    contexts.undo()  # the other way to make a context looks at them too
    talk = app.get(workload.fill(folder, 300))
    requests = Requests(talk)
    requests.request(talk.leaf)
    looked = []
    add = MessageBuilder.add
    monkeypatch.setattr(
        MessageBuilder, "add", lambda self, entry: (looked.append(length(entry)), add(self, entry))
    )
    workload.append(talk, 300)
    workload.append(talk, 301)

    assert requests.request(talk.leaf)[0] == request_of(talk, talk.leaf)
    assert sum(looked) == 2 + 302


def test_a_request_that_is_let_go_of_grows_into_the_next_one(app, folder, contexts):
    """It was joined anew: in a turn after 10,000 entries, that took three times all the rest."""
    contexts.undo()  # the other way to make a context makes one of its own
    talk = app.get(workload.fill(folder, 900))
    requests = Requests(talk)
    tracemalloc.start()
    try:
        size = len(requests.request(talk.leaf)[0].body)
        for number in range(900, 903):
            workload.append(talk, number)
        tracemalloc.reset_peak()
        before, _ = tracemalloc.get_traced_memory()
        requests.request(talk.leaf)
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert size > 600 * KILOBYTE
    assert peak - before < size // 4  # what was added, and room to grow


def test_after_a_compaction_the_context_decodes_none_of_what_was_kept(app, folder, bodies):
    talk = app.get(workload.fill(folder, 900, compact_at=890, kept=50))
    bodies.clear()

    context(talk, talk.leaf)

    assert bodies["decoded"] <= 1


def test_the_end_and_the_middle_of_a_log_are_read_without_the_rest(app, folder, calls):
    talk_id = workload.fill(folder, 1_500)
    calls.clear()

    assert app.last_event_of(talk_id) is not None
    assert len(list(app.events_of(talk_id, since=700, until=701))) == 2

    assert calls["bytes read"] <= 512 * KILOBYTE


def test_the_beginning_of_a_log_is_read_without_the_rest(app, folder, calls):
    talk_id = workload.fill(folder, 1_500)
    calls.clear()

    assert len(list(app.events_of(talk_id, until=16))) == 16

    assert calls["bytes read"] <= 512 * KILOBYTE


def test_a_fork_reads_its_parent_once(app, folder, calls, bodies):
    talk_id = workload.fill(folder, 1_500)
    size = (folder / f"{talk_id}.jsonl").stat().st_size
    calls.clear()
    bodies.clear()

    app.fork(talk_id)

    assert calls["bytes read"] <= size + 256 * KILOBYTE
    assert bodies["decoded"] == 0


# -- starting ----------------------------------------------------------------------------------


SLOW = {"anthropic", "pydantic", "genai_prices", "markdown_it", "pygments", "http.client"}
"""What is slow to import: a model's SDK, typed views, prices, Markdown, servers."""

FOR_PEOPLE = {"prompt_toolkit", "rich", "asyncio", "ssl"}
"""What only a person at a terminal is shown with."""

UNTIL_THE_PROMPT = """
import gc, json, os, sys, threading
from pathlib import Path
from prompt_toolkit.renderer import Renderer

def render(*args, **more):
    draw(*args, **more)
    found = {
        "modules": list(sys.modules),
        "threads": threading.active_count(),
        "collections": collections() - before,
    }
    Path(written).write_text(json.dumps(found))
    os._exit(0)

def collections():
    return sum(generation["collections"] for generation in gc.get_stats())

written = sys.argv.pop(1)
draw, Renderer.render = Renderer.render, render

from app.cli import main
before = collections()
main()
"""
"""The program as it is, up to the moment when its first prompt stands on the screen."""


OURS = {"app", "domain", "infrastructure"}


def imported(tmp_path, *args):
    """Return the modules that a whole process imports."""
    command = [sys.executable, "-X", "importtime", str(MAIN), *args]
    done = subprocess.run(
        command, capture_output=True, text=True, check=True, cwd=tmp_path, timeout=60
    )
    lines = [line for line in done.stderr.splitlines() if line.startswith("import time:")]
    return {line.rpartition("|")[2].strip() for line in lines}


def not_ours(modules):
    """Leave out our own: how many rooms the house has is not what makes a start slow."""
    return [name for name in modules if name.partition(".")[0] not in OURS]


def at_the_prompt(tmp_path, *args):
    """Return what there is when the prompt is on the screen, the modules as a set."""
    written = tmp_path / "found.json"
    pexpect.run(
        shlex.join([sys.executable, "-c", UNTIL_THE_PROMPT, str(written), *args]),
        env=os.environ | {"TERM": "xterm-256color"},
        cwd=tmp_path,
        timeout=60,
    )
    found = json.loads(written.read_text())
    return found | {"modules": set(found["modules"])}


def test_the_help_imports_neither_the_domain_nor_a_command(tmp_path):
    modules = imported(tmp_path, "--help")
    roots = {name.partition(".")[0] for name in modules}

    assert roots.isdisjoint({"domain", "infrastructure", "eventsourcing", "msgspec"})
    assert modules.isdisjoint(SLOW | FOR_PEOPLE)
    assert len(modules) < 130


@pytest.mark.parametrize(
    "command",
    ["list --all", "show", "show --json", "log", "log --json", "tree", "context", "verify"],
)
def test_looking_at_logs_imports_nothing_slow_and_nothing_for_a_terminal(folder, tmp_path, command):
    talk_id = workload.fill(folder, 6)
    args = command.split() + ([] if "--all" in command else [str(talk_id)])

    modules = imported(tmp_path, "--store", str(folder), *args)

    assert "app.run" not in modules
    assert modules.isdisjoint(SLOW | FOR_PEOPLE)
    assert len(not_ours(modules)) < 165


BEHIND_THE_PROMPT = {
    "rich.console",
    "app.repl.loop",
    "app.repl.desk",
    "infrastructure.model.client",
}
"""What a person does not wait for who looks at a prompt."""


def test_the_prompt_of_a_new_conversation_waits_for_nothing_that_works_behind_it(folder, tmp_path):
    found = at_the_prompt(tmp_path, "--store", str(folder), "--offline")
    modules = found["modules"]

    assert {"app.repl.prompt", "app.repl.status"} <= modules
    assert modules & (SLOW | BEHIND_THE_PROMPT) == set()
    assert modules & {"app.bootstrap", "app.application", "domain.conversation"} == set()
    assert len(not_ours(modules)) < 400
    assert found["threads"] == 1  # what is imported in the background begins after that
    assert found["collections"] <= 1  # of garbage: looked for among modules, there is none


def test_the_prompt_of_an_earlier_conversation_waits_for_its_store_alone(folder, tmp_path):
    talk_id = workload.fill(folder, 6)

    found = at_the_prompt(
        tmp_path, "--store", str(folder), "--offline", "-r", str(talk_id), "--here"
    )
    modules = found["modules"]

    assert {"app.application", "domain.conversation"} <= modules
    assert modules & (SLOW | BEHIND_THE_PROMPT - {"infrastructure.model.client"}) == set()
    assert len(not_ours(modules)) < 400
    assert found["threads"] == 1


def test_setting_up_compiles_what_is_ours_whatever_the_environment_says(tmp_path):
    """Else each start compiles it anew where PYTHONDONTWRITEBYTECODE is set: 0.1 s and more."""
    for package in OURS:
        (tmp_path / package).mkdir()
        (tmp_path / package / "module.py").write_text("x = 1\n")
    environment = {name: value for name, value in os.environ.items() if name != "MAKEFLAGS"}
    steps = subprocess.run(
        ["make", "-n", "-B", ".venv/.ready"],
        cwd=MAIN.parents[1],
        env=environment,
        capture_output=True,
        text=True,
        check=True,
    ).stdout
    [step] = [line for line in steps.splitlines() if "compileall" in line]

    subprocess.run(
        shlex.split(step.replace(".venv/bin/python", sys.executable)),
        cwd=tmp_path,
        env=environment | {"PYTHONDONTWRITEBYTECODE": "1"},
        check=True,
    )

    assert {path.parents[1].name for path in tmp_path.rglob("*.pyc")} == OURS


@pytest.mark.parametrize("name", COMMANDS)
def test_every_command_of_the_help_is_there(name):
    command = importlib.import_module(f"app.commands.{name}").command

    assert command.name == name
    assert COMMANDS[name].endswith(".")


def test_every_command_is_in_the_help():
    files = {path.stem for path in (MAIN.parent / "commands").glob("*.py")}

    assert files - {"__init__", "selecting"} == set(COMMANDS)
