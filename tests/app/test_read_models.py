"""The catalogue and the index say what the logs say, whatever became of either in the meantime."""

import json
import os
import random
import shutil
import sqlite3
from contextlib import closing
from pathlib import Path
from tempfile import mkdtemp
from time import time_ns
from uuid import UUID

import pytest
from eventsourcing.cipher import AESCipher
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import (
    RuleBasedStateMachine,
    initialize,
    invariant,
    precondition,
    rule,
)

from app import catalogue
from app.application import Conversations
from app.catalogue import Listing
from app.figures import statistics
from app.search import parts, search
from domain.conversation import Conversation
from domain.events import MessageAppended
from domain.projections.texts import folded
from infrastructure.jsonl import disk
from infrastructure.read_models.wanted import Wanted
from tests.app.in_process import run
from tests.builders import tool_use
from tests.infrastructure.jsonl.support import python
from tests.levels import examples

HERE, THERE = "/work/here", "/work/there"
WORDS = [
    "pytest", "FAILED", "Café", "naïve", "snake_case", "a.b.c", "src/main.py", "数据库", "数据",
    "连接被拒绝", "🦊", "ab", "x", "AND", "NOT", "NEAR(a b)", '"quoted', "text:x", "*", "-x", "^y",
    "it's", "100%", "_", "\0", "Straße", "각", "e\u0301", "日本", "line\nbreak", "x" * 300,
]  # fmt: skip
said = st.lists(st.sampled_from(WORDS), min_size=1, max_size=6).map(" ".join)


def opened(store, **more):
    return Conversations({"LEFTFOLD_STORE": str(store), "LEFTFOLD_DURABILITY": "os", **more})


def texts_of(log):
    """All that can be found in a log, read as a stranger would: JSON, a line at a time."""
    tools, found = {}, []
    for line in log.read_bytes().splitlines():
        event = json.loads(line)
        state = event.get("state", {})
        message = state.get("message") or {"content": []}
        for block in message["content"]:
            kind, tool, failed = message["role"], None, False
            match block["type"]:
                case "text":
                    text = block["text"]
                case "tool_use":
                    kind, tool = "tool_use", block["name"]
                    text = "\n".join([tool, *map(str, block["input"].values())])
                    tools[block["id"]] = tool
                case "tool_result":
                    kind, text, failed = "tool_result", block["content"], "is_error" in block
                    tool = tools.get(block["tool_use_id"])
            found.append((log.stem, event["v"], kind, tool, failed, text))
        if event.get("topic") == "NoteAppended":
            found.append((log.stem, event["v"], "note", None, False, state["content"]))
    return found


def naive(store, wanted, cwd=None):
    """What `search` has to find: every text of every log, looked at."""
    return sorted(
        text
        for log in store.glob("*.jsonl")
        for text in texts_of(log)
        if all(part in folded(text[-1]) for part in wanted.parts)
        and wanted.kind in (None, text[2])
        and wanted.tool in (None, text[3])
        and text[4] >= wanted.failed
        and (cwd is None or cwd.encode() in log.read_bytes())
    )


def searched(store, wanted, cwd=None, **more):
    with opened(store, **more) as conversations:
        within = cwd and {row.id for row in Listing(conversations, cwd).rows}
        hits = search(conversations, wanted, within=within, limit=10_000)
    return sorted(
        (str(hit.conversation), hit.version, hit.kind, hit.tool, hit.failed, hit.text)
        for hit in hits
    )


def listed(store, cwd=None, **more):
    """The rows by the catalogue, kept afterwards."""
    with opened(store, **more) as conversations:
        listing = Listing(conversations, cwd)
        listing.keep()
        return listing.rows, [row.id for row in listing.unreadable]


def read(store, cwd=None):
    """The rows, read from the logs themselves."""
    few, catalogue.FEW = catalogue.FEW, 10**6
    try:
        return listed(store, cwd)
    finally:
        catalogue.FEW = few


def begin(cwd):
    def begun(conversation_id, timestamp):
        return Conversation.start(conversation_id, timestamp=timestamp, cwd=cwd)

    return begun


def say(store, prompt="hello", cwd=HERE):
    """A new conversation with a prompt; its log."""
    with opened(store) as conversations:
        talk = conversations.start(begin(cwd))
        talk.record(lambda conversation: conversation.append_prompt(prompt))
        return store / f"{talk.id}.jsonl"


@pytest.fixture
def store(tmp_path, monkeypatch):
    monkeypatch.setattr(catalogue, "FEW", 0)
    return tmp_path / "home" / "conversations"


def files_of(store, name=""):
    return sorted(store.glob(f".index/{name}*.sqlite3"))


def told(store):
    """What the logs say of each conversation, by a replay: the figures of `stats`, and the tree's."""
    with opened(store) as conversations:
        found = {}
        for log in store.glob("*.jsonl"):
            talk = conversations.get(UUID(log.stem))
            messages = sum(isinstance(entry, MessageAppended) for entry in talk.entries.values())
            spent = statistics(talk).total
            source = talk.origin and talk.origin.source_id
            found[talk.id] = (
                messages, spent.tokens, spent.cost, source, talk.labels, talk.name, talk.model
            )  # fmt: skip
        return found


def kept_figures(store):
    with opened(store) as conversations:
        listing = Listing(conversations)
        listing.price()
        listing.keep()
        found = {}
        for row in listing.rows:
            cost = pytest.approx(listing.cost(row.id))
            figures = row.messages, row.tokens, cost, row.source_id, row.labels
            found[row.id] = (*figures, row.name, row.model)
        return found


class Histories(RuleBasedStateMachine):
    """Logs are written, changed by hand, copied in and removed; read models are lost and damaged."""

    @initialize()
    def begin(self):
        self.few, catalogue.FEW = catalogue.FEW, 0
        memory = "/dev/shm"  # where no commit waits for a disk
        self.folder = Path(mkdtemp(dir=memory if Path(memory).is_dir() else None))
        self.store = self.folder / "store"
        self.talks = self.steps = 0
        say(self.store)

    def teardown(self):
        catalogue.FEW = self.few
        shutil.rmtree(self.folder)

    def log(self, number):
        logs = sorted(self.store.glob("*.jsonl"))
        return logs[number % len(logs)]

    def record(self, number, command):
        with opened(self.store) as conversations:
            conversations.open(UUID(self.log(number).stem)).record(command)

    @property
    def has_logs(self):
        return any(self.store.glob("*.jsonl"))

    @rule(prompt=said, cwd=st.sampled_from([HERE, THERE]))
    def start(self, prompt, cwd):
        say(self.store, prompt, cwd)

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9), prompts=st.lists(said, min_size=1, max_size=20))
    def prompt(self, number, prompts):
        for text in prompts:
            self.record(number, lambda talk, text=text: talk.append_prompt(text))

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9), call=said, gave=said, failed=st.booleans())
    def call(self, number, call, gave, failed):
        self.talks += 1
        call_id = f"call_{self.talks}"
        block = tool_use(call_id, ("bash", "read")[failed], command=call)
        model = ("claude-sonnet-4-5", "claude-opus-4-1", "nobody-knows-it")[self.talks % 3]
        self.record(number, lambda talk: talk.change_model(model, max_tokens=100))
        used = {"input_tokens": self.talks, "output_tokens": 7, "service_tier": "standard"}
        self.record(
            number, lambda talk: talk.append_answer([block], stop_reason="tool_use", usage=used)
        )
        if failed:
            self.record(number, lambda talk: talk.label(talk.leaf, call[:9].strip("\0 ") or "it"))
        if self.talks % 3:
            self.check(said=gave)
        self.record(number, lambda talk: talk.append_tool_result(call_id, gave, is_error=failed))

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9), name=said, flag=st.booleans())
    def rename(self, number, name, flag):
        self.record(number, lambda talk: talk.rename(name.replace("\0", " ")))
        self.record(number, lambda talk: talk.archive(archived=flag))
        self.record(number, lambda talk: talk.append_note("note", name, visible=True))

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9))
    def fork(self, number):
        with opened(self.store) as conversations:
            conversations.fork(UUID(self.log(number).stem))

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9))
    def remove(self, number):
        self.log(number).unlink()

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9))
    def copy_in(self, number):
        self.talks += 1
        name = f"01920000-0000-7000-8000-{self.talks:012}.jsonl"
        shutil.copy2(self.log(number), self.store / name)

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9), in_place=st.booleans())
    def edit(self, number, in_place):
        """A person changes a log with an editor: in place, or by a new file."""
        log = self.log(number)
        changed = log.read_bytes().replace(b"pytest", b"ptyest").replace(b'"crc"', b'"was"')
        if in_place:
            log.write_bytes(changed)
            os.utime(log, ns=(log.stat().st_mtime_ns + 10**7,) * 2)  # the clock of a disk ticks
        else:
            (self.store / "new").write_bytes(changed)
            (self.store / "new").rename(log)

    @rule()
    def lose(self):
        shutil.rmtree(self.store / ".index", ignore_errors=True)

    @rule(seed=st.integers(0, 999), which=st.sampled_from(["catalogue", "texts"]))
    def damage(self, seed, which):
        """The beginning of a file is overwritten, or it is cut."""
        rng = random.Random(seed)
        for path in files_of(self.store, which):
            data = bytearray(path.read_bytes())
            if rng.random() < 0.5:
                data[: rng.choice([16, 200, 5000])] = rng.randbytes(100)
            else:
                del data[rng.randrange(len(data)) :]
            path.write_bytes(data)

    @rule(said=said, cut=st.integers(0, 5), kind=st.sampled_from([None, "user", "tool_result"]))
    def check(self, said, cut=0, kind=None):
        for text in {said, said[cut : cut + 2], said[cut : cut + 4].upper()}:
            if folded(text):
                wanted = Wanted(parts([text]), kind, None, failed=bool(cut % 2 and kind))
                for cwd in (None, HERE):
                    assert searched(self.store, wanted, cwd) == naive(self.store, wanted, cwd)

    @invariant()
    def both_are_right(self):
        if hasattr(self, "store"):
            self.steps += 1
            for cwd in (HERE, None):
                assert listed(self.store, cwd) == read(self.store, cwd)
            assert kept_figures(self.store) == told(self.store)
            for part in ("pytest", ("x", "数据", "a.b.c", "not")[self.steps % 4]):
                assert searched(self.store, Wanted((part,))) == naive(self.store, Wanted((part,)))


Histories.TestCase.settings = settings(max_examples=examples(20), stateful_step_count=8)
TestHistories = Histories.TestCase


def test_a_list_opens_no_log_once_it_is_kept(store, monkeypatch):
    for number in range(5):
        say(store, f"prompt {number}")
    rows, _ = listed(store)
    opened_files = opened_later(monkeypatch)

    assert listed(store) == (rows, [])
    assert listed(store, HERE) == (rows, [])
    assert opened_files == []
    log = say(store, "one more")
    opened_files.clear()
    assert len(listed(store)[0]) == 6
    assert {path for path in opened_files if path.suffix == ".jsonl"} == {log}


def test_a_log_is_seen_whatever_the_clock_of_the_folder_says(store):
    """The names in a folder are not read again as long as it is as it was; clocks tick slowly."""
    say(store)
    for age in (3600, 0):
        then = time_ns() - age * 10**9
        os.utime(store, ns=(then, then))
        assert listed(store, HERE) == listed(store, HERE) == read(store, HERE)

        say(store)
        if age == 0:
            os.utime(store, ns=(then, then))  # in the same tick
        assert listed(store, HERE) == read(store, HERE)


def test_a_log_that_was_replaced_is_of_the_directory_that_it_says(store):
    log = say(store, cwd=THERE)
    then = time_ns() - 3600 * 10**9
    os.utime(store, ns=(then, then))
    assert listed(store, HERE) == ([], [])

    (store / "new").write_bytes(log.read_bytes().replace(THERE.encode(), HERE.encode()))
    (store / "new").rename(log)
    assert len(listed(store, HERE)[0]) == 1


def test_a_text_has_to_have_what_is_looked_for_as_it_stands(store):
    say(store, "abc bcd cde")

    assert searched(store, Wanted(("abcde",))) == []
    assert len(searched(store, Wanted(("bc b",)))) == 1


def opened_later(monkeypatch):
    """The files that are opened for reading from here on."""
    opened_files, real = [], disk.open_read
    monkeypatch.setattr(disk, "open_read", lambda path: (opened_files.append(path), real(path))[1])
    return opened_files


def test_few_logs_are_read_and_nothing_is_written(store, monkeypatch):
    monkeypatch.setattr(catalogue, "FEW", 32)
    say(store)
    before = sorted(store.rglob("*"))

    assert len(listed(store)[0]) == 1
    assert sorted(store.rglob("*")) == before


def test_what_is_wrong_with_a_log_is_kept_with_its_row(store, monkeypatch, tmp_path):
    monkeypatch.chdir(tmp_path)
    say(store, "whole", str(tmp_path))
    log = say(store, "hurt", str(tmp_path))
    whole = log.read_bytes()
    log.write_bytes(whole.replace(b"hurt", b"hirt"))
    first = run("list", "--json")
    assert [row["title"] for row in first.objects if "damage" in row] == ["hirt"]
    opened_files = opened_later(monkeypatch)

    assert run("list", "--json") == first
    assert opened_files == []
    log.write_bytes(whole)
    assert [row["title"] for row in run("list", "--json").objects if "damage" in row] == []


@pytest.mark.parametrize("folder_state", ["a file", "a link", "no writing", "locked"])
def test_where_they_cannot_be_kept_everything_works_and_it_is_said(
    store, capsys, monkeypatch, tmp_path, folder_state
):
    say(store, "the pytest run")
    listed(store)
    wanted = Wanted(("pytest",))
    assert len(searched(store, wanted)) == 1
    say(store, "another pytest run")
    connections = []
    if folder_state in ("a file", "a link"):
        shutil.rmtree(store / ".index")
        if folder_state == "a file":
            (store / ".index").write_text("")
        else:
            (store / ".index").symlink_to(tmp_path)
    elif folder_state == "no writing":

        def refuse(_path):
            raise OSError(30, "Read-only file system")

        monkeypatch.setattr(disk, "open_or_create", refuse)
    else:
        monkeypatch.setattr("infrastructure.read_models.database.PATIENCE", 0.01)
        for path in files_of(store):
            connections.append(connection := sqlite3.connect(path, isolation_level=None))
            connection.execute("PRAGMA locking_mode = EXCLUSIVE")
            connection.execute("BEGIN EXCLUSIVE")
    capsys.readouterr()

    assert listed(store) == read(store)
    assert "the catalogue cannot be used" in capsys.readouterr().err
    assert searched(store, wanted) == naive(store, wanted)
    assert len(naive(store, wanted)) == 2
    (line,) = capsys.readouterr().err.splitlines()
    assert "the index cannot be used" in line
    for connection in connections:
        connection.close()


def test_another_version_of_the_tables_has_a_file_of_its_own(store):
    say(store, "pytest")
    listed(store)
    searched(store, Wanted(("pytest",)))
    newer = []
    for path in files_of(store):
        newer.append(path.with_name(path.name.replace("-", "-9")))
        newer[-1].write_bytes(b"of a newer program")
    say(store, "pytest again")

    assert listed(store) == read(store)
    assert len(searched(store, Wanted(("pytest",)))) == 2
    assert [path.read_bytes() for path in newer] == [b"of a newer program"] * 2


def test_tables_that_are_not_ours_are_made_again(store, capsys):
    say(store, "pytest")
    listed(store)
    searched(store, Wanted(("pytest",)))
    for path in files_of(store):
        with closing(sqlite3.connect(path)) as connection:
            connection.execute(
                "DROP TABLE conversations" if "cat" in path.name else "DROP TABLE texts"
            )

    assert listed(store) == read(store)
    assert len(searched(store, Wanted(("pytest",)))) == 1
    assert capsys.readouterr().err == ""
    assert len(files_of(store)) == 2


@pytest.mark.parametrize(
    "cells", ["kept = x'ff'", "kept = '[]'", "kept = replace(kept, '20', 'no')", "kept = 7"]
)
def test_a_row_that_is_not_what_was_kept_is_read_again(store, cells):
    say(store, "pytest")
    rows = listed(store)
    (path,) = files_of(store, "catalogue")
    with closing(sqlite3.connect(path, isolation_level=None)) as connection:
        connection.execute(f"UPDATE conversations SET {cells}")

    assert listed(store) == rows


def test_encrypted_conversations_are_found_and_nothing_is_written_beside_them(
    store, capsys, monkeypatch
):
    key = {"CIPHER_TOPIC": "eventsourcing.cipher:AESCipher", "CIPHER_KEY": AESCipher.create_key(16)}
    with opened(store, **key) as conversations:
        talk = conversations.start(begin(HERE))
        talk.record(lambda conversation: conversation.append_prompt("a secret place"))

    assert [hit[-1] for hit in searched(store, Wanted(("secret",)), **key)] == ["a secret place"]
    assert "encrypted" in capsys.readouterr().err
    assert [row.title for row in listed(store, **key)[0]] == ["a secret place"]
    assert not files_of(store)
    assert listed(store)[0][0].title == ""  # without the key: kept, and not believed with it
    assert [row.title for row in listed(store, **key)[0]] == ["a secret place"]
    assert not any(b"secret" in path.read_bytes() for path in store.rglob("*") if path.is_file())


def test_a_log_that_cannot_be_read_hides_none_and_is_found_when_it_can_be(store, capsys):
    say(store, "pytest")
    log = say(store, "pytest")
    data = log.read_bytes()
    log.write_bytes(data.replace(b"leftfold/1", b"leftfold/9"))

    assert len(searched(store, Wanted(("pytest",)))) == 1
    assert "newer" in capsys.readouterr().err
    assert len(searched(store, Wanted(("pytest",)))) == 1
    assert "newer" in capsys.readouterr().err
    log.write_bytes(data)
    assert len(searched(store, Wanted(("pytest",)))) == 2


def test_what_was_read_before_it_was_stopped_is_kept(store, monkeypatch):
    """Ctrl+C while the index is built: what is whole stays, and nothing is there twice."""
    for number in range(8):
        say(store, f"pytest {number}")
    monkeypatch.setattr("infrastructure.read_models.follower._SECONDS", 0)
    monkeypatch.setattr("app.progress.Progress.tell", stop_at(3))
    with pytest.raises(KeyboardInterrupt):
        searched(store, Wanted(("pytest",)))
    monkeypatch.setattr("app.progress.Progress.tell", lambda *_: None)
    (path,) = files_of(store, "texts")
    with closing(sqlite3.connect(path)) as connection:
        assert connection.execute("SELECT count(*) FROM texts").fetchone() == (3,)

    assert len(searched(store, Wanted(("pytest",)))) == 8


def stop_at(count):
    calls = iter(range(1, 100))

    def tell(*_):
        if next(calls) == count:
            raise KeyboardInterrupt

    return tell


WRITE = """
import sys
from pathlib import Path
from tests.app.test_read_models import Wanted, catalogue, listed, opened, say, searched
from uuid import UUID
catalogue.FEW = 0
store, name = Path(sys.argv[1]), sys.argv[2]
log = say(store, f"pytest {name} 0")
for number in range(1, 14):
    with opened(store) as conversations:
        talk = conversations.open(UUID(log.stem))
        talk.record(lambda conversation: conversation.append_prompt(f"pytest {name} {number}"))
    if number % 6 == 0:
        mine = [hit for hit in searched(store, Wanted(("pytest",))) if f" {name} " in hit[-1]]
        assert len(mine) == number + number // 6, mine
        assert UUID(log.stem) in [row.id for row in listed(store)[0]]
        log = say(store, f"pytest {name} again {number}")
"""


def test_it_is_right_while_four_processes_append_and_what_is_kept_is_lost(store):
    """What was saved before is found: by those who write, and by us, who look and tear down."""
    say(store, "pytest")
    wanted = Wanted(("pytest",))
    writers = [python(WRITE, store, name) for name in "abcd"]
    looks = 0
    while any(writer.poll() is None for writer in writers):
        before = naive(store, wanted)
        found = searched(store, wanted)
        rows, _ = listed(store)
        after = naive(store, wanted)
        assert set(before) <= set(found) <= set(after)
        assert len(found) == len(set(found))
        assert {hit[0] for hit in before} <= {str(row.id) for row in rows}
        looks += 1
        if looks % 4 == 0:
            for path in files_of(store):
                path.write_bytes(b"lost" * looks)
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 4
    assert len(naive(store, wanted)) == 1 + 4 * 16
    assert searched(store, wanted) == naive(store, wanted)
    assert listed(store) == read(store)


def test_a_log_that_grew_is_read_on_where_it_was_left(store, monkeypatch):
    log = say(store)
    listed(store)
    with opened(store) as conversations:
        talk = conversations.open(UUID(log.stem))
        talk.record(lambda conversation: conversation.append_prompt("more"))
    since, real = [], Conversations.pages_of
    monkeypatch.setattr(
        Conversations,
        "pages_of",
        lambda self, id_, since_=since, **more: (since_.append(more), real(self, id_, **more))[1],
    )

    (row,), _ = listed(store)
    assert (row.messages, since) == (2, [{"since": 3}])


def test_a_large_log_alone_is_kept_too(store, monkeypatch):
    """Few logs are read sooner than a database is opened, but not if they are long."""
    monkeypatch.setattr(catalogue, "FEW", 32)
    monkeypatch.setattr(catalogue, "LITTLE", 100)
    say(store)

    assert len(listed(store)[0]) == 1
    assert len(files_of(store)) == 1


def test_a_log_that_was_edited_and_grew_is_read_again(store):
    log = say(store, "an old prompt")
    listed(store)
    edited = log.read_bytes().replace(b"an old", b"a new")
    log.write_bytes(edited)
    with opened(store) as conversations:
        talk = conversations.open(UUID(log.stem))
        talk.record(lambda conversation: conversation.append_prompt("more"))

    (row,), _ = listed(store)
    assert (row.title, row.messages) == ("a new prompt", 2)
    assert listed(store) == read(store)


def test_what_was_spent_is_added_up_once(store):
    """What was priced before is not priced again, and an unknown price hides the sum."""
    log = say(store)

    def answer(model):
        with opened(store) as conversations:
            talk = conversations.open(UUID(log.stem))
            talk.record(lambda talk: talk.change_model(model, max_tokens=9))
            used = {"input_tokens": 1_000_000}
            talk.record(
                lambda talk: talk.append_answer(
                    [{"type": "text", "text": "x"}], stop_reason="end_turn", usage=used
                )
            )
        assert kept_figures(store) == told(store)
        (figures,) = kept_figures(store).values()
        return figures[2]

    assert [answer("claude-opus-4-1") for _ in range(3)] == [15, 30, 45]
    assert answer("nobody-knows-it") == pytest.approx(None)
    assert answer("claude-opus-4-1") == pytest.approx(None)
