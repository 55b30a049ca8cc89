"""What every command prints for programs: by its schema, in one vocabulary, in any state of the store."""

import json
import re
from datetime import UTC, datetime
from pathlib import Path

import jsonschema
import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.application import Conversations
from app.cli import COMMANDS, leftfold
from app.outputs import encoded
from app.view.plain import plain
from domain.conversation import Conversation
from domain.text import valid_json
from tests import builders as b
from tests.app.in_process import run
from tests.json_docs import END, KEYS, NESTED, OUTPUTS, PAGE, SCHEMAS, STREAMS, page, schemas

TIME = re.compile(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?")
HARD = "é 中文 \x9b31m \u202e \x7f ☃ 🐍 \ud800"
"""Text that some terminal or encoder does not take as it is."""

OLD_NAMES = {"v": "version", "events": "version", "source": "source_id"}
"""What was documented under another name: it says the same."""


def begin(store, prompt, *, cwd=None, name=None):
    """Put a conversation of one turn with a call into the store, and return its id."""

    def start(conversation_id, timestamp):
        talk = Conversation.start(conversation_id, timestamp=timestamp, cwd=cwd or str(Path.cwd()))
        talk.change_model("claude-test", max_tokens=1000)
        return talk

    def one_turn(talk):
        talk.append_prompt(prompt)
        call = b.tool_use("one", "bash", command="ls")
        talk.append_answer([call], stop_reason="tool_use", usage={"input_tokens": 3})
        talk.append_tool_result("one", "a.txt", is_error=True)
        talk.append_answer([b.text(f"Well: {prompt}")], stop_reason="end_turn", usage={})
        talk.label(talk.leaf, f"end of {prompt}"[:20])
        talk.end_turn("done", spent={"input_tokens": 3})
        if name is not None:
            talk.rename(name)

    with Conversations({"LEFTFOLD_STORE": str(store)}) as conversations:
        at_hand = conversations.start(start)
        at_hand.record(one_turn)
        return at_hand.id


@pytest.fixture
def store(home):
    home.mkdir(exist_ok=True)
    (home / "settings.toml").write_text(HOOK)
    return home / "conversations"


def hurt(store, conversation_id):
    """Change a word of a log by hand: its checksum disagrees from then on."""
    log = store / f"{conversation_id}.jsonl"
    log.write_bytes(log.read_bytes().replace(b"Well: ", b"Hell: "))


def empty(store, conversation_id):
    (store / f"{conversation_id}.jsonl").write_bytes(b"")


def foreign(store, conversation_id):
    (store / f"{conversation_id}.jsonl").write_bytes(b'{"format":"other/1","id":"x"}\n{"a":1}\n')


def newer(store, conversation_id):
    log = store / f"{conversation_id}.jsonl"
    log.write_bytes(log.read_bytes().replace(b"leftfold/1", b"leftfold/9"))


HOOK = """
[[hooks]]
name = "one"
events = ["TurnEnded"]
command = "true"
"""

PI = Path(__file__).parents[1] / "golden" / "histories" / "pi3.jsonl"
COMMAND_LINES = [
    ["list"], ["list", "--all", "--archived"], ["list", "--search", "hello"], ["show", "{id}"],
    ["show", "{id}@5"], ["log", "{id}"], ["log", "{id}", "--since", "4"], ["tree", "{id}"],
    ["context", "{id}"], ["context", "{id}@-1"], ["verify"], ["verify", "{id}"], ["stats"],
    ["stats", "{id}"], ["stats", "--all"], ["config"], ["recover", "{id}"], ["fork", "{id}"],
    ["fork", "{id}@5"], ["rename", "{id}", "new 名"], ["label", "{id}@5", "here"],
    ["label", "{id}@5"], ["archive", "{id}"], ["archive", "{id}", "--undo"],
    ["delete", "{id}", "--yes"], ["trash", "list"], ["trash", "restore", "{id}"],
    ["trash", "purge", "{id}", "--yes"],
    ["search", "ls"], ["query", "SELECT * FROM tool_calls"], ["query", "--tables"],
    ["log", "--all"], ["hooks"], ["hooks", "run", "one"],
    ["export", "{id}", "--as", "pi"], ["export", "{id}", "--as", "markdown"],
    ["import", "{pi}"], ["copy", "{id}", "--to", "{other}"], ["sync", "{other}"],
]  # fmt: skip


def check(command, printed):
    """Hold each line against the schema of *command*; return them."""
    lines = printed.split(b"\n")
    assert lines.pop() == b""
    assert printed.decode().isprintable() or b"\n" in printed
    schema = json.loads((SCHEMAS / f"{command}.json").read_text())
    validate = jsonschema.Draft202012Validator(schema, format_checker=jsonschema.FormatChecker())
    for line in lines:
        value = json.loads(line)
        validate.validate(value)
        for time in _times(value):
            assert time.endswith("Z"), time
        for old, name in OLD_NAMES.items():
            assert old not in value or name not in value or value[old] == value[name]
        if command != "context":
            assert plain(line.decode()) == line.decode(), "nothing in it draws on a terminal"
    return [json.loads(line) for line in lines]


def _times(value):
    match value:
        case dict():
            for key, item in value.items():
                if key in ("timestamp", "created", "updated", "deleted"):
                    yield item
                yield from _times(item)
        case list():
            for item in value:
                yield from _times(item)


@pytest.mark.parametrize("prompt", ["hello", HARD], ids=["hello", "hard text"])
@pytest.mark.parametrize("damage", [None, hurt], ids=["whole", "damaged"])
@pytest.mark.parametrize("arguments", COMMAND_LINES, ids=" ".join)
def test_every_command_prints_what_its_schema_says(store, arguments, damage, prompt):
    conversation_id = begin(store, prompt, name=prompt if prompt == HARD else None)
    if damage is not None:
        damage(store, conversation_id)
    if arguments[0] == "trash":
        run("delete", conversation_id, "--yes")
    names = {"id": conversation_id, "pi": PI, "other": store.parent / "other"}
    done = run(*(part.format(**names) for part in arguments), "--json")

    lines = check(arguments[0], done.out)
    assert done.code == (1 if arguments[0] in ("verify", "copy", "sync") and damage else 0)
    assert lines or "--search" in arguments or "run" in arguments  # a new hook has nothing to do
    is_said = [line.get("damage") or line.get("findings") for line in lines]
    whole = " ".join(arguments) == "log --all"  # of all conversations: `verify` says what is wrong
    if damage and not whole and arguments[0] in ("list", "show", "log", "tree", "stats", "verify"):
        assert any("checksum disagrees" in str(said) for said in is_said) or not lines
    if damage and arguments[0] == "context":
        assert "checksum disagrees" in done.complaint


def test_damage_has_the_same_shape_in_every_command(store):
    conversation_id = begin(store, "hello")
    hurt(store, conversation_id)
    said = [
        run(*arguments, "--json").objects[0]["damage"]
        for arguments in (
            ["list"], ["show", conversation_id], ["log", conversation_id], ["stats"],
            ["tree", conversation_id], ["stats", conversation_id],
        )
    ]  # fmt: skip

    assert said == [said[0]] * 6
    [report] = run("verify", conversation_id, "--json").objects
    assert said[0]["findings"] == report["findings"]
    assert f"leftfold recover {conversation_id}" in said[0]["message"]


@pytest.mark.parametrize("damage", [empty, foreign, newer])
def test_a_log_that_nobody_can_read_is_never_ok_and_costs_the_others_nothing(store, damage):
    first, other, last = begin(store, "hello 1"), begin(store, "hello 2"), begin(store, "hello 3")
    damage(store, other)

    for arguments in (["list"], ["list", "--search", "hello"], ["stats", "--all"], ["stats"]):
        done = run(*arguments, "--json")
        lines = check(arguments[0], done.out)
        assert done.code == 0
        assert {line["id"] for line in lines} == {str(first), str(other), str(last)}
        [broken] = [line for line in lines if "error" in line]
        assert broken["id"] == str(other)
        assert broken["error"]["message"] in done.complaint
        plain = run(*arguments)
        assert str(other) in plain.complaint
        assert (plain.code, str(first).encode() in plain.out) == (0, True)
    done = run("verify", "--json")
    reports = {line.get("id"): line for line in check("verify", done.out)}
    assert done.code == 1
    assert [reports[str(each)]["ok"] for each in (first, other, last)] == [True, False, True]
    assert b"2 findings" in run("verify").out or b"1 findings" in run("verify").out
    for command in ("show", "log", "tree", "stats", "context"):
        done = run(command, other, "--json")
        assert (done.code, done.out) == (1, b""), command
        assert done.complaint


def test_stats_takes_what_list_takes(store):
    here, there = begin(store, "hello"), begin(store, "there", cwd="/elsewhere")
    away = begin(store, "away")
    run("archive", away)

    def ids(*arguments):
        done = run(*arguments, "--json")
        assert done.code == 0
        return {line["id"] for line in done.objects}

    for options, expected in [
        ([], {here}),
        (["--all"], {here, there}),
        (["--archived"], {here, away}),
        (["--all", "--archived"], {here, there, away}),
        (["--all", "--search", "THERE"], {there}),
        (["--search", "away"], set()),
    ]:
        found = [ids(command, *options) for command in ("list", "stats")]
        assert found == [{str(each) for each in expected}] * 2, options
    assert run("stats", here, "--all").code == 2


def test_an_archived_conversation_is_not_listed_until_it_is_brought_back(store):
    conversation_id = begin(store, "hello")

    assert str(conversation_id).encode() in run("list").out
    assert run("archive", conversation_id, "--json").objects[0]["archived"] is True
    assert (run("list").out, run("list", "--json").out) == (b"", b"")
    assert str(conversation_id).encode() in run("list", "--archived").out
    run("archive", conversation_id, "--undo")
    assert str(conversation_id).encode() in run("list").out


def test_times_are_utc_whatever_a_log_says(store):
    conversation_id = begin(store, "hello")
    log = store / f"{conversation_id}.jsonl"
    written = re.sub(rb'"timestamp":"[^"]*"', b'"timestamp":"2026-12-02T03:00:00+02:00"', log.read_bytes())  # fmt: skip
    log.write_bytes(written)

    [event, *_] = run("log", conversation_id, "--json").objects[1:]
    [row] = run("list", "--json").objects
    assert event["state"]["timestamp"] == row["created"] == "2026-12-02T01:00:00Z"
    assert datetime.fromisoformat(row["updated"]).tzinfo == UTC


def test_an_event_that_nobody_knows_is_printed_as_it_stands(store):
    conversation_id = begin(store, "hello")
    with (store / f"{conversation_id}.jsonl").open("a") as file:
        file.write('{"v":9,"topic":"Tomorrow","state":{"timestamp":"2026-12-02T00:00:00Z"}}\n')

    last = check("log", run("log", conversation_id, "--json").out)[-1]
    assert (last["version"], last["v"], last["topic"]) == (9, 9, "Tomorrow")
    assert json.loads(last["unreadable"]) == {"timestamp": "2026-12-02T00:00:00Z"}
    assert "state" not in last


def test_a_failure_is_said_on_stderr_and_nothing_else_is_printed(store):
    begin(store, "hello")
    for command in ("show", "log", "tree", "context", "fork", "rename", "archive", "recover"):
        name = ["a name"] if command == "rename" else []
        done = run(command, "ffff-ffff", *name, "--json")
        assert (done.code, done.out) == (1, b"")
        assert "no conversation matches 'ffff-ffff'" in done.complaint


JSON = st.recursive(
    st.none() | st.text(st.characters() | st.sampled_from("\x7f\x9b\ud800\udc0d\u202e\u2028🐍\n")),
    lambda inner: st.lists(inner) | st.dictionaries(st.sampled_from("a\x7f\ud800"), inner),
    max_leaves=5,
)


@given(JSON)
def test_what_is_printed_is_one_line_of_the_same_json_that_draws_nothing(value):
    printed = encoded(value).decode()

    assert json.loads(printed) == valid_json(value)
    assert plain(printed) == printed
    assert "\n" not in printed


# -- the page and the schemas ----------------------------------------------------------------------


def test_every_command_has_json_and_stands_in_the_page():
    assert set(OUTPUTS) == set(COMMANDS)
    for name in COMMANDS:
        command = leftfold.get_command(None, name)
        for inner in getattr(command, "commands", {name: command}).values():
            assert "--json" in [option for each in inner.params for option in each.opts], name
        assert f"leftfold {name} --json" in PAGE.read_text()
    assert {arguments[0] for arguments in COMMAND_LINES} == set(COMMANDS)


def test_the_page_and_the_schemas_are_those_of_the_types():
    """If this fails: ``python -m tests.json_docs``."""
    text = PAGE.read_text()
    assert END in text
    assert page(text) == text
    assert {path.name: path.read_text() for path in SCHEMAS.iterdir()} == schemas()


def test_every_key_is_explained_once_and_no_other():
    types = [each for types in (OUTPUTS | STREAMS).values() for each in types] + list(NESTED)
    structs = [each for each in types if hasattr(each, "__struct_encode_fields__")]
    keys = {key for each in structs for key in each.__struct_encode_fields__}
    special = {
        f"{each.__name__}.{key}" for each in structs for key in each.__struct_encode_fields__
    }

    assert {key for key in KEYS if "." not in key} == keys | {"type"}
    assert {key for key in KEYS if "." in key} <= special


# -- exit codes ------------------------------------------------------------------------------------


def test_exit_codes_are_those_of_the_table(store):
    """Those of signals are held by test_scripts and test_crash."""
    page = (PAGE.parent / "scripting.md").read_text()
    rows = re.findall(r"^\| ([\d, ]+) \|", page.partition("## Exit codes")[2].partition("\n## ")[0], re.MULTILINE)  # fmt: skip
    fine, hurt_one, broken = (begin(store, "hello") for _ in range(3))
    hurt(store, hurt_one)
    empty(store, broken)
    codes = {
        0: [["list"], ["stats", "--all"], ["show", fine], ["verify", fine], ["show", hurt_one]],
        1: [["show", "ffff"], ["show", broken], ["verify"], ["verify", hurt_one], ["tree", "eeee"], ["show", f"{fine}@99"]],
        2: [["show"], ["list", "--nonsense"], ["lst"], ["show", "x"], ["label", fine], ["delete", fine], ["log", fine, "--since", "0"], ["--thinking", "x", "-p", "hi"]],
    }  # fmt: skip

    assert rows == ["0", "1", "2", "129, 130, 143"]
    for code, lines in codes.items():
        for words in lines:
            assert run(*words).code == code, words
