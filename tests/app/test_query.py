"""``leftfold query``: what it answers is what the logs say, and it can do nothing but read."""

import csv
import io
import json
import random
import re
import shutil
import signal
import sqlite3
from collections import Counter, defaultdict
from contextlib import closing
from datetime import datetime
from pathlib import Path
from uuid import UUID

import pytest
from eventsourcing.cipher import AESCipher
from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import invariant, precondition, rule

from app.query import ask
from app.view.plain import plain
from domain.calls import NOBODY
from domain.events import TurnError
from infrastructure.jsonl import disk
from infrastructure.read_models import questions
from infrastructure.read_models.questions import VIEWS, columns_of
from infrastructure.tools import TOOLS
from infrastructure.tools.changing import ChangingTool
from tests.app.activity import naive
from tests.app.in_process import run
from tests.app.test_read_models import HERE, THERE, Histories, begin, files_of, opened, said, say
from tests.builders import text, tool_use
from tests.levels import examples

PAGE = (Path(__file__).parents[2] / "docs" / "query.md").read_text()
READY = dict(re.findall(r"^### ([^\n]*\?)\n```sql\n(.*?)```", PAGE, re.MULTILINE | re.DOTALL))
MODELS = ["claude-sonnet-4-5", "claude-haiku-4-5", "unheard-of"]
USAGES = [
    None, {}, {"input_tokens": 1000, "output_tokens": 7},
    {"input_tokens": 5, "output_tokens": 900, "cache_read_input_tokens": 70_000},
    {"input_tokens": 1, "output_tokens": 2, "cache_creation_input_tokens": 333},
]  # fmt: skip
CALLS = [
    ("bash", {"command": "pytest -x"}), ("bash", {"command": "make 数据库"}), ("bash", {}),
    ("write", {"path": "a.txt", "content": "x"}), ("edit", {"path": "../b.py", "edits": []}),
    ("edit", {"path": "/etc/c"}), ("Write", {"file_path": "d"}), ("Bash", {"command": "make"}), ("read", {"path": "a.txt"}), ("other", {"path": 7, "deep": [[]]}),
]  # fmt: skip
FATES = ["done", "done", "failed", "open", "refused", "nobody", "always"]


def work(talk, rng):
    """Record a turn: what a person says, an answer with a few calls, what becomes of them."""
    model, usage = rng.choice(MODELS), rng.choice(USAGES)
    if rng.random() < 0.3:
        talk.record(lambda talk: talk.change_model(model, max_tokens=1000))
    words = rng.choice(["fix it", "数据 \0", "=1+1", "x" * 200, " \n why?"])
    talk.record(lambda talk: talk.append_prompt(words))
    calls = [
        tool_use(rng.choice(["same", f"call_{rng.random()}"]) + f"_{n}", name, **arguments)
        for n, (name, arguments) in enumerate(rng.choices(CALLS, k=rng.randrange(3)))
    ]
    talk.record(
        lambda talk: talk.append_answer(
            [text("Well."), *calls], stop_reason="tool_use" if calls else "end_turn",
            model=model, usage=usage, duration=rng.choice([None, 0.5, 12.25]),
        )
    )  # fmt: skip
    for block in calls:
        follow(talk, block["id"], rng.choice(FATES))
    if rng.random() < 0.7:
        error = TurnError("overloaded", "try later") if rng.random() < 0.5 else None
        lost = rng.choice(USAGES) or {}
        outcome = "failed" if error else rng.choice(["done", "interrupted"])
        talk.record(lambda talk: talk.end_turn(outcome, error=error, lost=lost))


def follow(talk, call_id, fate):
    [call] = [call for call in talk.conversation.open_calls() if call.id == call_id]
    if fate in ("refused", "nobody"):
        reason = NOBODY if fate == "nobody" else "The user declined: 'no'"
        talk.record(lambda talk: talk.decide(call, "no", reason=reason))
        return
    if fate == "always":
        talk.record(lambda talk: talk.decide(call, "always"))
    talk.record(lambda talk: talk.start_tool(call_id))
    if fate != "open":
        failed = fate == "failed"
        talk.record(lambda talk: talk.append_tool_result(call_id, "gave\n", is_error=failed))


def asked(store, question, **more):
    with opened(store, **more) as conversations:
        return ask(conversations, question, seconds=60)


def views(store, **more):
    return {
        name: sorted(asked(store, f"SELECT * FROM {name}", **more).rows, key=repr)
        for name in VIEWS
        if name != "schema"
    }


def in_order(rows):
    return {name: sorted(found, key=repr) for name, found in rows.items()}


class Activities(Histories):
    """The same histories, with turns in them, and questions in place of searches."""

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9), seed=st.integers(0, 9999))
    def turn(self, number, seed):
        with opened(self.store) as conversations:
            work(conversations.open(UUID(self.log(number).stem)), random.Random(seed))

    @precondition(lambda self: self.has_logs)
    @rule(number=st.integers(0, 9), words=said)
    def compact(self, number, words):
        def summarise(talk):
            if talk.leaf is not None:
                talk.compact(
                    words,
                    first_kept=talk.leaf,
                    usage=USAGES[2],
                    model=MODELS[0],
                    tokens_before=5,
                    reason="threshold",
                )

        self.record(number, summarise)

    @rule(seed=st.integers(0, 999))
    def damage(self, seed):
        for path in files_of(self.store, "activity"):
            data = bytearray(path.read_bytes())
            data[: random.Random(seed).choice([16, 200, 5000])] = b"x" * 100
            path.write_bytes(data)

    def check(self, **_more):
        """Searches are not made here."""

    @invariant()
    def both_are_right(self):
        if hasattr(self, "store"):
            assert views(self.store) == in_order(naive(self.store))


Activities.TestCase.settings = settings(max_examples=examples(20), stateful_step_count=8)
TestActivities = Activities.TestCase


@pytest.fixture(scope="module")
def fleet(tmp_path_factory):
    """A store of a dozen conversations, one of them a fork, over two directories."""
    store, rng = tmp_path_factory.mktemp("fleet") / "conversations", random.Random(14)
    with opened(store) as conversations:
        talks = [conversations.start(begin(rng.choice([HERE, THERE]))) for _ in range(12)]
        for _ in range(80):
            work(rng.choice(talks), rng)
        child = conversations.open(conversations.fork(talks[0].id))
        work(child, rng)
    return store


def by_name(rows):
    return {
        name: [dict(zip(columns_of(name), row, strict=True)) for row in found]
        for name, found in rows.items()
    }


def commands_that_fail(rows):
    ran = [call for call in rows["tool_calls"] if call["command"] is not None]
    ran = [call for call in ran if call["outcome"] in ("done", "failed")]
    calls = Counter(call["command"] for call in ran)
    failed = Counter(call["command"] for call in ran if call["outcome"] == "failed")
    found = [(command, calls[command], failures) for command, failures in failed.items()]
    return sorted(found, key=lambda row: (-row[2], row[1], row[0]))


def refused(rows):
    found = [call for call in rows["tool_calls"] if call["outcome"] == "refused"]
    found.sort(key=lambda call: f"{call['id']}@{call['version']}")
    found.sort(key=lambda call: call["timestamp"], reverse=True)
    return [
        (f"{call['id']}@{call['version']}", call["decided_by"], call["tool"],
         call["command"] or call["path"], call["reason"])
        for call in found
    ]  # fmt: skip


def costs(rows):
    cwd = {row["id"]: row["cwd"] for row in rows["conversations"]}
    spent = defaultdict(list)
    for row in rows["requests"]:
        day = datetime.fromisoformat(row["timestamp"]).astimezone().date().isoformat()
        spent[day, cwd[row["id"]]].append(row["cost"])
    found = [(*key, _dollars(all_), all_.count(None)) for key, all_ in spent.items()]
    found.sort(key=lambda row: (-(row[2] or 0), row[1]))
    return sorted(found, key=lambda row: row[0], reverse=True)


def _dollars(costs):
    known = [cost for cost in costs if cost is not None]
    return round(sum(known), 4) if known else None


def edited(rows):
    changes = Counter(row["path"] for row in rows["files"])
    within = {path: {row["id"] for row in rows["files"] if row["path"] == path} for path in changes}
    found = [(path, n, len(within[path])) for path, n in changes.items() if n > 1]
    return sorted(found, key=lambda row: (-row[1], row[0]))


def slow(rows):
    took = defaultdict(list)
    for call in rows["tool_calls"]:
        if call["seconds"] is not None:
            took[call["tool"]].append(call["seconds"])
    found = [(tool, len(s), round(sum(s) / len(s), 3), max(s)) for tool, s in took.items()]
    return sorted(found, key=lambda row: (-row[2], row[0]))


def cached(rows):
    asked_of = defaultdict(list)
    for row in rows["requests"]:
        if row["model"] is not None:
            asked_of[row["model"]].append(row)
    found = []
    for model, requests in asked_of.items():
        counted = [row for row in requests if row["input_tokens"] is not None]
        read = sum(row["cache_read_input_tokens"] for row in counted)
        rest = sum(row["input_tokens"] + row["cache_creation_input_tokens"] for row in counted)
        found.append((model, len(requests), round(100 * read / (read + rest), 1)))
    return sorted(found, key=lambda row: (-row[1], row[0]))


def costly(rows):
    spent = defaultdict(list)
    for row in rows["requests"]:
        spent[row["id"]].append(row["cost"])
    titles = {row["id"]: row["title"] for row in rows["conversations"]}
    found = [(id_, titles[id_], _dollars(costs), len(costs)) for id_, costs in spent.items()]
    return sorted(found, key=lambda row: (-(row[2] or -1), row[0]))[:10]


def failures(rows):
    failed = [row for row in rows["turns"] if row["outcome"] == "failed"]
    kinds = {row["error_type"] for row in failed}
    of = {kind: [row["timestamp"] for row in failed if row["error_type"] == kind] for kind in kinds}
    return sorted((kind, len(times), max(times)) for kind, times in of.items())


def decisions(rows):
    found = Counter((call["tool"], call["decision"] or "not asked") for call in rows["tool_calls"])
    counted = [(*key, n) for key, n in found.items()]
    return sorted(counted, key=lambda row: (row[0], -row[2], row[1]))


def directories(rows):
    cwd = {row["id"]: row["cwd"] for row in rows["conversations"]}
    prompts = Counter(cwd[row["id"]] for row in rows["prompts"])
    found = []
    for place in set(cwd.values()):
        here = [row for row in rows["conversations"] if row["cwd"] == place]
        latest = max(row["updated"] for row in here)
        found.append((place, len(here), prompts[place], latest))
    return sorted(found, key=lambda row: row[3], reverse=True)


ORACLES = {
    "Which commands fail most?": commands_that_fail,
    "What was refused?": refused,
    "What does it cost, by day and directory?": costs,
    "Which files are edited again and again?": edited,
    "Which tools are slow?": slow,
    "How much comes from the cache, by model?": cached,
    "Which conversations cost most?": costly,
    "Why do turns fail?": failures,
    "What is allowed and refused, by tool?": decisions,
    "Which directories are worked in?": directories,
}


@pytest.mark.parametrize("heading", ORACLES)
def test_the_questions_that_are_ready_are_answered_right(fleet, heading):
    expected = ORACLES[heading](by_name(naive(fleet)))
    found = asked(fleet, READY[heading]).rows

    assert expected
    assert len(found) == len(expected[:50])
    for row, right in zip(found, expected, strict=False):
        assert [_about(cell) for cell in right] == list(row)
    assert set(READY) == set(ORACLES)


def _about(cell):
    """Sums of parts of a number differ by their order."""
    return pytest.approx(cell, abs=1.5e-4) if isinstance(cell, float) else cell


def test_what_was_spent_is_what_stats_says(fleet):
    spent = run("--store", fleet, "stats", "--all", "--json").objects
    found = run(
        "--store", fleet, "query", "--json",
        "SELECT id, sum(input_tokens) input_tokens, sum(output_tokens) output_tokens, "
        "sum(cache_read_input_tokens) cache_read_input_tokens, "
        "sum(cache_creation_input_tokens) cache_creation_input_tokens, "
        "sum(seconds) seconds, sum(kind = 'answer') answers FROM requests GROUP BY id",
    ).objects  # fmt: skip
    assert len(spent) == 13
    by_id = {row["id"]: row for row in found}
    for one in spent:
        row = by_id[one["id"]]
        tokens = {kind: row[kind] for kind in row if kind.endswith("tokens") and row[kind]}
        assert tokens == one["total"]["tokens"]
        assert row["answers"] == one["total"]["answers"]
        assert (row["seconds"] or 0) == pytest.approx(one["total"]["seconds"], abs=0.002)


def test_the_page_tells_of_each_table_and_column_and_no_other():
    told = {}
    for name, rows in re.findall(
        r"^### (\w+)\n\| column \|.*\n.*\n((?:\|.*\n)+)", PAGE, re.MULTILINE
    ):
        cells = [row.split("|")[1] for row in rows.splitlines()]
        told[name] = [column for cell in cells for column in re.findall(r"`(\w+)`", cell)]
    assert told == {name: columns_of(name) for name in VIEWS}
    assert f"The version of these tables is {questions.VERSION}:" in PAGE
    listed = run("query", "--tables", "--json").objects
    assert {row["table"]: row["columns"] for row in listed} == told
    assert run("query", "SELECT version FROM schema", "--json").objects == [{"version": 1}]


def test_the_tools_whose_calls_are_changes_of_files_are_those_that_change_files():
    changing = {tool.name for tool in TOOLS if isinstance(tool, ChangingTool)}

    assert f"lower(tool) IN {tuple(sorted(changing, reverse=True))}" in VIEWS["files"]


@pytest.mark.parametrize(
    ("sql", "why"),
    [
        ("DELETE FROM prompts", "it is a view"),
        ("DELETE FROM main.said", "only reading"),
        ("UPDATE main.said SET text = ''", "only reading"),
        ("WITH x AS (SELECT 1) INSERT INTO main.said SELECT 1, 1, '', '' FROM x", "only reading"),
        ("INSERT INTO main.said VALUES (1, 1, '', '') RETURNING text", "only reading"),
        ("DROP TABLE main.said", "only reading"),
        ("CREATE TABLE x (y)", "only reading"),
        ("CREATE TEMP TABLE x (y)", "only reading"),
        ("CREATE TEMP VIEW x AS SELECT 1", "only reading"),
        ("PRAGMA query_only = OFF", "only reading"),
        ("PRAGMA writable_schema = ON", "only reading"),
        ("SELECT * FROM pragma_database_list", "only reading"),
        ("SELECT * FROM sqlite_schema", "only reading"),
        ("SELECT * FROM main.said", "only reading"),
        ("ATTACH '{folder}/new' AS x", "only reading"),
        ("VACUUM INTO '{folder}/new'", "only reading"),
        ("VACUUM", "only reading"),
        ("REINDEX", "only reading"),
        ("ANALYZE", "only reading"),
        ("BEGIN", "only reading"),
        ("COMMIT", "only reading"),
        ("SAVEPOINT x", "only reading"),
        ("DETACH main", "only reading"),
        ("SELECT load_extension('{folder}/x')", "not authorized"),
        ("SELECT writefile('{folder}/new', 'x')", "no such function"),
        ("SELECT readfile('/etc/passwd')", "no such function"),
        ("SELECT edit('x')", "no such function"),
        ("SELECT 1; SELECT 2", "one statement"),
        ("SELECT 1; DROP TABLE main.said", "one statement"),
        ("", "no question"),
        (" ;", "no question"),
        ("/* SELECT 1 */", "no question"),
        ("SELECT", "incomplete"),
        ("SELECT 'a", "unrecognized token"),
        ("SELECT nonsense FROM prompts", "no such column"),
        ("SELECT * FROM nonsense", "--tables"),
        ("SELECT ?", "bindings"),
        ("SELECT :x", "bindings"),
        ("SELECT 1\0", "null character"),
        ("SELECT abs(-9223372036854775808)", "integer overflow"),
        ("SELECT json_extract('{{', '$')", "malformed JSON"),
        ("SELECT zeroblob(1000000000)", "too big"),
        ("SELECT '" + "(" * 5000, "unrecognized token"),
        ("SELECT " + "(" * 5000, "SQLite"),
    ],
)
def test_what_is_no_question_is_refused_in_one_line(tmp_path, sql, why):
    log = say(tmp_path, "hello")
    assert len(asked(tmp_path, "SELECT * FROM prompts").rows) == 1
    before = {path: path.read_bytes() for path in tmp_path.glob("*") if path.is_file()}
    ended = run("--store", tmp_path, "query", "-", stdin=sql.format(folder=tmp_path).encode())

    assert (ended.code, ended.out) == (2, b"")
    (line,) = ended.complaint.splitlines()
    assert why in line
    assert {path: path.read_bytes() for path in tmp_path.glob("*") if path.is_file()} == before
    assert log in before
    assert len(asked(tmp_path, "SELECT * FROM prompts").rows) == 1
    assert len(files_of(tmp_path, "activity")) == 1  # and it was not taken for damage


def test_a_question_that_does_not_end_is_stopped(tmp_path, monkeypatch):
    say(tmp_path)
    endless = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT {} FROM t"
    clock = iter(range(10**6))
    monkeypatch.setattr(questions.time, "monotonic", lambda: next(clock))
    late = run("--store", tmp_path, "query", endless.format("max(x)"), "--timeout", "5")
    assert (late.code, late.out) == (2, b"")
    assert "5 seconds" in late.complaint
    monkeypatch.undo()

    monkeypatch.setattr(questions, "_MOST", 1 << 20)
    large = run("--store", tmp_path, "query", endless.format("x"))
    assert (large.code, large.out) == (2, b"")
    assert "256 MiB" in large.complaint


@pytest.mark.parametrize("where", ["between steps", "in a price"])
def test_ctrl_c_stops_a_question(tmp_path, monkeypatch, where):
    with opened(tmp_path) as conversations:
        work(conversations.start(begin(HERE)), random.Random(1))
    asked(tmp_path, "SELECT 1")

    def press(*_):
        signal.raise_signal(signal.SIGINT)
        return 0

    if where == "in a price":
        monkeypatch.setattr("app.query._price", press)
        sql = "SELECT cost FROM requests"
    else:
        numbers = iter([0.0])
        monkeypatch.setattr(questions.time, "monotonic", lambda: next(numbers, None) or press())
        sql = "WITH RECURSIVE t(x) AS (SELECT 1 UNION ALL SELECT x + 1 FROM t) SELECT max(x) FROM t"
    ended = run("--store", tmp_path, "query", sql)

    assert (ended.code, ended.out, ended.err.strip()) == (130, b"", "")


HARD = "=cmd|' /C calc'!A0\x1b[2J\u202e\"x\",\r\nmore\0end"


def test_text_of_others_commands_neither_a_terminal_nor_a_spreadsheet(tmp_path):
    say(tmp_path, HARD)
    sql = "SELECT text, -1 AS \"\x1b[2J\", '-1' AS minus, NULL AS none, x'00ff', '' FROM prompts"
    raw = run("--store", tmp_path, "query", sql, "--csv").out

    assert raw.endswith(b"\r\n")
    assert plain(raw.decode().replace("\r\n", "\n")) == raw.decode().replace("\r\n", "\n")
    names, row = csv.reader(io.StringIO(raw.decode(), newline=""))
    assert row == ["'" + plain(HARD), "-1", "'-1", "", "x'00ff'", ""]
    assert names[1:4] == ["␛[2J", "minus", "none"]
    head, line = run("--store", tmp_path, "query", sql).out.decode().splitlines()
    assert plain(line) == line
    assert "NULL" in line
    (found,) = run("--store", tmp_path, "query", sql, "--json").objects
    assert found["text"] == HARD
    assert found["none"] is None
    assert found["x'00ff'"] == "x'00ff'"
    assert head


def test_an_object_has_every_column_and_each_number_exactly(tmp_path):
    sql = "SELECT 1 a, 2 a, 3 a_2, 9223372036854775807 big, 0.1 small, 1e999 endless"
    ended = run("--store", tmp_path / "none", "query", sql, "--json")

    assert ended.out == (
        b'{"a":1,"a_3":2,"a_2":3,"big":9223372036854775807,"small":0.1,"endless":null}\n'
    )
    assert not (tmp_path / "none").exists()


def test_what_cannot_be_asked_at_all_is_wrong_usage(tmp_path):
    for arguments in (["query"], ["query", "SELECT 1", "--json", "--csv"],
                      ["query", "SELECT 1", "--timeout", "0"]):  # fmt: skip
        ended = run("--store", tmp_path, *arguments)
        assert (ended.code, ended.out) == (2, b"")
        assert ended.complaint
    nothing = run("--store", tmp_path, "query", "SELECT 1 WHERE 0")
    assert (nothing.code, nothing.out) == (0, b"")
    assert nothing.complaint
    assert run("--store", tmp_path, "query", "SELECT 1 a WHERE 0", "--csv").out == b"a\r\n"


@pytest.mark.parametrize("state", ["a file", "no writing", "full", "locked"])
def test_without_the_tables_the_logs_are_read_and_it_is_said(fleet, tmp_path, monkeypatch, state):
    store = tmp_path / "conversations"
    shutil.copytree(fleet, store)
    expected = in_order(naive(store))
    connections = []
    if state == "a file":
        shutil.rmtree(store / ".index", ignore_errors=True)
        (store / ".index").write_text("")
    elif state in ("no writing", "full"):
        error = (
            OSError(30, "Read-only file system") if state == "no writing" else OSError(28, "full")
        )

        def refuse(_path):
            raise error

        monkeypatch.setattr(disk, "open_or_create", refuse)
    else:
        asked(store, "SELECT 1")
        say(store, "news")
        expected = in_order(naive(store))
        monkeypatch.setattr("infrastructure.read_models.database.PATIENCE", 0.01)
        (path,) = files_of(store, "activity")
        connections.append(connection := sqlite3.connect(path, isolation_level=None))
        connection.execute("PRAGMA locking_mode = EXCLUSIVE")
        connection.execute("BEGIN EXCLUSIVE")

    ended = run("--store", store, "query", "SELECT count(*) FROM requests", "--csv")
    assert "the index cannot be used" in ended.complaint
    assert ended.code == 0
    assert views(store) == expected
    for connection in connections:
        connection.close()


def test_tables_that_are_not_ours_or_of_another_version_cost_nothing(fleet, tmp_path, capsys):
    store = tmp_path / "conversations"
    shutil.copytree(fleet, store)
    expected = in_order(naive(store))
    assert views(store) == expected
    (path,) = files_of(store, "activity")
    newer = path.with_name("activity-9.1.sqlite3")
    newer.write_bytes(b"of a newer program")
    with closing(sqlite3.connect(path)) as connection:
        connection.execute("DROP TABLE asked")

    assert views(store) == expected
    assert newer.read_bytes() == b"of a newer program"
    assert capsys.readouterr().err == ""


def test_encrypted_conversations_are_asked_and_nothing_is_written_beside_them(tmp_path, capsys):
    key = {"CIPHER_TOPIC": "eventsourcing.cipher:AESCipher", "CIPHER_KEY": AESCipher.create_key(16)}
    with opened(tmp_path, **key) as conversations:
        talk = conversations.start(begin(HERE))
        talk.record(lambda talk: talk.append_prompt("a secret place"))

    assert asked(tmp_path, "SELECT text FROM prompts", **key).rows == [("a secret place",)]
    assert "encrypted" in capsys.readouterr().err
    assert not any(b"secret" in path.read_bytes() for path in tmp_path.rglob("*") if path.is_file())


def test_a_log_that_cannot_be_read_hides_none(tmp_path):
    say(tmp_path, "one")
    log = say(tmp_path, "two")
    log.write_bytes(log.read_bytes().replace(b"leftfold/1", b"leftfold/9"))
    ended = run("--store", tmp_path, "query", "SELECT text FROM prompts", "--json")

    assert (ended.code, ended.objects) == (0, [{"text": "one"}])
    assert "newer" in ended.complaint


def test_of_a_log_that_was_changed_by_hand_nothing_old_is_left(tmp_path):
    with opened(tmp_path) as conversations:
        talk = conversations.start(begin(HERE))
        for seed in range(24):
            work(talk, random.Random(seed))
    log = tmp_path / f"{talk.id}.jsonl"
    before = views(tmp_path)
    assert all(before.values())

    (tmp_path / "new").write_bytes(log.read_bytes().replace(b'"crc"', b'"was"'))
    (tmp_path / "new").rename(log)
    assert views(tmp_path) == before == in_order(naive(tmp_path))


def test_a_call_has_one_result_the_first(tmp_path):
    log = say(tmp_path, "hello")
    call = {"role": "assistant", "content": [tool_use("t", command="ls")]}
    results = [
        {"role": "user", "content": [{"type": "tool_result", "tool_use_id": id_, "content": gave}]}
        for id_, gave in (("t", "one"), ("t", "two"), ("lost", "three"))
    ]
    lines = [
        {"v": version, "topic": "MessageAppended",
         "state": {"timestamp": "2026-01-01T00:00:00Z", "parent": version - 1, "message": message}}
        for version, message in enumerate([call, *results], 3)
    ]  # fmt: skip
    log.write_bytes(
        log.read_bytes() + b"".join(json.dumps(line).encode() + b"\n" for line in lines)
    )

    assert asked(tmp_path, "SELECT version, result FROM tool_calls").rows == [(3, "one")]


def test_a_log_that_was_made_by_hand_breaks_no_question(tmp_path):
    """Numbers and shapes that no program of ours writes."""
    log = say(tmp_path, "hello")
    usage = {"input_tokens": 10**30, "output_tokens": -5, "cache_read_input_tokens": "many"}
    deep = json.loads("[" * 900 + "]" * 900)
    call = {"type": "tool_use", "id": "t", "name": "bash", "input": {"command": deep, "n": 10**40}}
    state = {
        "timestamp": "2026-01-01T00:00:00Z", "parent": 2, "model": MODELS[0], "usage": usage,
        "message": {"role": "assistant", "content": [call, {"type": "tool_use"}, "text", None]},
    }  # fmt: skip
    line = {"v": 9, "topic": "MessageAppended", "state": state}
    log.write_bytes(log.read_bytes() + json.dumps(line).encode() + b"\n")

    rows = asked(tmp_path, "SELECT input_tokens, output_tokens, cost FROM requests").rows
    assert [row[:2] for row in rows] == [(0, -5)]
    assert len(asked(tmp_path, "SELECT * FROM tool_calls").rows) == 1


def test_a_conversation_of_any_kind_is_one_row_that_the_list_has_too(fleet):
    listed = run("--store", fleet, "list", "--all", "--json").objects
    found = run(
        "--store", fleet, "query", "--json", "SELECT * FROM conversations ORDER BY updated DESC"
    ).objects
    keys = ("id", "version", "cwd", "title", "name", "model")
    assert [[row[key] for key in keys] for row in found] == [
        [row[key] for key in keys] for row in listed
    ]
