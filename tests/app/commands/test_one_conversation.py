"""Commands that look at one conversation, or change one: what they print, for people and programs."""

import json
from datetime import UTC, datetime

import pytest

from app.application import Conversations
from tests.app.in_process import run
from tests.app.test_outputs import begin


@pytest.fixture
def store(home):
    return home / "conversations"


def log_of(store, conversation_id):
    return store / f"{conversation_id}.jsonl"


def changed(path, old, new):
    data = path.read_bytes()
    assert old in data
    path.write_bytes(data.replace(old, new))


def test_a_copy_says_from_which_entry_it_goes_on(store):
    conversation_id = begin(store, "hello")
    *_, last = [e for e in run("tree", conversation_id, "--json").objects if e["is_leaf"]]

    for reference, entry in ((f"{conversation_id}@4", 4), (conversation_id, last["version"])):
        [made] = run("fork", reference, "--json").objects
        assert (made["source_id"], made["entry"]) == (str(conversation_id), entry)
        assert [e["version"] for e in run("tree", made["id"], "--json").objects if e["is_leaf"]] == [entry]  # fmt: skip


def test_a_summary_for_a_copy_needs_a_model_and_without_one_nothing_is_made(store):
    done = run("fork", begin(store, "hello"), "--compact")

    assert done.code == 2
    assert "ANTHROPIC_API_KEY" in done.complaint
    assert len(run("list", "--json").objects) == 1


@pytest.mark.parametrize("command", ["rename", "label"])
def test_a_name_or_a_label_of_blanks_is_none(store, command):
    conversation_id = begin(store, "hello", name="Anna")
    reference = f"{conversation_id}@6" if command == "label" else conversation_id
    [given] = run(command, reference, "x", "--json").objects
    [taken] = run(command, reference, " ", "--json").objects

    key = "label" if command == "label" else "name"
    assert (given[key], taken[key]) == ("x", None)
    with Conversations({"LEFTFOLD_STORE": str(store)}) as conversations:
        talk = conversations.get(conversation_id)
    assert (talk.labels.get(6), talk.name) == ((None, "Anna") if key == "label" else ("end of hello", None))  # fmt: skip


def test_a_request_that_was_not_the_one_sent_is_said_to_be_none(store):
    assert run("--offline", "-p", "hello there", "--output", "json").code == 0
    [row] = run("list", "--json").objects
    assert run("context", f"{row['id']}@-1", "--json").code == 0

    changed(log_of(store, row["id"]), b"hello there", b"hello Anna.")
    done = run("context", f"{row['id']}@-1", "--json")
    assert done.code == 1
    assert "NOT the request that was sent" in done.err
    assert "hello Anna." in json.dumps(done.objects)
    assert run("context", row["id"], "--json").code == 0  # the next one: nobody has sent it


def test_a_conversation_whose_directory_is_lost_is_listed_everywhere_and_never_gone_on_with(store):
    conversation_id = begin(store, "hello")
    data = log_of(store, conversation_id).read_bytes().split(b"\n")
    log_of(store, conversation_id).write_bytes(b"\n".join([data[0], *data[2:]]))

    [row] = run("list", "--json").objects
    assert (row["id"], row["cwd"]) == (str(conversation_id), None)
    assert f"{conversation_id}  " in run("list").out.decode()
    assert "  ?  hello" in run("list", "--all").out.decode()
    assert (
        "There is no conversation of this directory yet" in run("-c", "--offline", "-p", "hi").err
    )


def test_times_are_shown_in_utc_whatever_the_log_says(store):
    conversation_id = begin(store, "hello")
    log = log_of(store, conversation_id)
    lines = [json.loads(line) for line in log.read_bytes().splitlines()]
    for line in lines[1:]:
        line["state"]["timestamp"] = "2026-12-02T03:00:00+02:00"
        del line["crc"]
    log.write_text("".join(json.dumps(line) + "\n" for line in lines))

    for item in run("show", conversation_id, "--json").objects:
        assert item["timestamp"] == "2026-12-02T01:00:00Z"
    [row] = run("list", "--json").objects
    assert datetime.fromisoformat(row["updated"]).tzinfo == UTC


def test_the_log_begins_where_one_says(store):
    conversation_id = begin(store, "hello")

    printed = run("log", conversation_id, "--since", "4", "--json").objects
    assert [event["version"] for event in printed] == [4, 5, 6, 7, 8]
    assert len(run("log", conversation_id, "--since", "4").out.splitlines()) == 5


def test_lost_versions_are_named_as_ranges(store):
    conversation_id = begin(store, "hello")
    log = log_of(store, conversation_id)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:3] + lines[5:6] + lines[7:]))  # without 3, 4 and 6

    assert "lost versions: 3-4, 6; " in run("recover", conversation_id).err


def test_what_nobody_can_read_here_costs_statistics_nothing_but_itself(store, monkeypatch):
    monkeypatch.setenv("COMPRESSOR_TOPIC", "zlib")
    locked = begin(store, "hidden")
    monkeypatch.setenv("COMPRESSOR_TOPIC", "bz2")
    readable = begin(store, "hello")

    done = run("stats", "--all", "--json")
    assert done.code == 0
    printed = {line["id"]: line for line in done.objects}
    assert printed.keys() == {str(locked), str(readable)}
    assert "COMPRESSOR_TOPIC" in printed[str(locked)]["error"]["message"]
    assert printed[str(readable)]["messages"] == 4
