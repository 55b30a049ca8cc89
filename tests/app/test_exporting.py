"""Export: what comes out can be read again, here and by the programs that it is for."""

import json

import msgspec
import pytest
from atif import Trajectory
from hypothesis import given
from hypothesis import strategies as st

from domain import events
from domain.messages import ROLES
from domain.projections.context import context
from domain.projections.exports import fenced
from tests.app.in_process import run
from tests.app.programs import Program
from tests.app.test_importing import FORMATS, GOLDEN, opened, taken
from tests.server import ScriptedServer


def exported(conversation_id, form, *options):
    ended = run("export", str(conversation_id), "--as", form, *options)
    assert ended.code == 0, ended.err
    return ended.out


def messages(conversations, done):
    """Return the messages of the path to the leaf, without what is about their import."""
    conversation = conversations.get(done.id)
    return [
        (entry.content.role, entry.content.blocks, entry.stop_reason, entry.usage and entry.usage["output_tokens"])
        for entry in conversation.path(conversation.leaf)
        if isinstance(entry, events.MessageAppended)
    ]  # fmt: skip


@pytest.mark.parametrize("name", FORMATS)
def test_the_messages_are_those_of_the_request_and_come_back(home, tmp_path, name):
    with opened(home) as conversations:
        done = taken(conversations, GOLDEN / name)
        conversation = conversations.get(done.id)
        request = without_signatures(context(conversation, conversation.leaf)["messages"])
        path = tmp_path / "session.jsonl"

        path.write_bytes(exported(done.id, "messages"))
        found = [json.loads(line) for line in path.read_text().splitlines()]
        again = conversations.get(taken(conversations, path, "messages").id)

        assert without_signatures(found) == request[: len(found)]
        left_out = request[len(found) :]
        assert left_out in (
            [],
            [{"role": "user", "content": [{"type": "text", "text": "(Continue.)"}]}],
        )
        assert context(again, again.leaf)["messages"] == request


def without_signatures(messages):
    """Return *messages* without thinking: the lines do not say which model it would go back to."""
    return [
        message | {"content": [b for b in message["content"] if b["type"] != "thinking"]}
        for message in messages
    ]


@pytest.mark.parametrize("name", FORMATS)
def test_a_session_of_pi_comes_back_with_its_tree(home, tmp_path, name):
    with opened(home) as conversations, opened(tmp_path / "other") as elsewhere:
        done = taken(conversations, GOLDEN / name)
        path = tmp_path / "pi.jsonl"
        path.write_bytes(exported(done.id, "pi"))

        header, *entries = [json.loads(line) for line in path.read_text().splitlines()]
        again = taken(elsewhere, path)

        assert (header["version"], header["harness"]) == (3, "leftfold")
        ids = [entry["id"] for entry in entries]
        assert len(set(ids)) == len(ids)
        assert all(entry["parentId"] in (None, *ids[:n]) for n, entry in enumerate(entries))
        theirs = messages(elsewhere, again)
        ours = messages(conversations, done)
        assert [blocks_as_lists(each) for each in theirs] == [
            blocks_as_lists(each) for each in ours
        ]
        assert elsewhere.get(again.id).name == conversations.get(done.id).name
        labels = conversations.get(done.id).labels.values()
        assert list(elsewhere.get(again.id).labels.values()) == list(labels)


def blocks_as_lists(message):
    """Return a message with what pi has no place for made the same: a result's text is a list there."""
    role, blocks, stop, tokens = message
    for block in blocks:
        if block["type"] == "tool_result" and isinstance(block.get("content"), str):
            block["content"] = [{"type": "text", "text": block["content"]}]
    return role, blocks, stop if role == "assistant" and stop else "end_turn", tokens or 0


@pytest.mark.parametrize("name", FORMATS)
def test_a_trajectory_is_what_atif_says_it_is(home, name):
    with opened(home) as conversations:
        done = taken(conversations, GOLDEN / name)
        conversation = conversations.get(done.id)
        path = [
            e for e in conversation.path(conversation.leaf) if isinstance(e, events.MessageAppended)
        ]

    found = Trajectory.model_validate_json(exported(done.id, "atif"))

    assert (found.schema_version, found.session_id) == ("ATIF-v1.8", str(done.id))
    agent = [step for step in found.steps if step.source == "agent"]
    answers = [entry for entry in path if entry.content.role == "assistant"]
    assert [step.message for step in agent] == ["\n".join(e.content.texts) for e in answers]
    calls = [call.tool_call_id for step in agent for call in step.tool_calls or ()]
    assert calls == [call["id"] for e in answers for call in e.content.tool_uses]
    seen = [
        r.source_call_id for step in agent if step.observation for r in step.observation.results
    ]
    assert seen == [r["tool_use_id"] for e in path for r in e.content.tool_results]


@pytest.mark.parametrize("name", FORMATS)
def test_a_log_is_the_same_conversation_in_another_store(home, tmp_path, name):
    with opened(home) as conversations, opened(tmp_path / "other") as elsewhere:
        done = taken(conversations, GOLDEN / name)
        path = tmp_path / "log.jsonl"
        path.write_bytes(exported(done.id, "jsonl"))

        first, again = taken(elsewhere, path), taken(elsewhere, path)

        assert (first.id, first.format, first.new) == (done.id, "jsonl", True)
        assert (again.new, again.added, again.known) == (False, 0, first.added)
        assert list(elsewhere.events_of(done.id)) == list(conversations.events_of(done.id))


def test_a_log_that_went_another_way_is_kept_as_a_fork(home, tmp_path):
    with opened(home) as conversations, opened(tmp_path / "other") as elsewhere:
        done = taken(conversations, GOLDEN / "pi3.jsonl")
        path = tmp_path / "log.jsonl"
        path.write_bytes(exported(done.id, "jsonl"))
        taken(elsewhere, path)
        mine, theirs = conversations.open(done.id), elsewhere.open(done.id)
        mine.record(lambda conversation: conversation.append_prompt("here"))
        theirs.record(lambda conversation: conversation.append_prompt("there"))
        path.write_bytes(exported(done.id, "jsonl"))

        first, again = taken(elsewhere, path), taken(elsewhere, path)

        assert first.id == again.id != done.id
        assert elsewhere.get(first.id).entry(elsewhere.get(first.id).leaf).content.text == "here"
        assert elsewhere.get(done.id).entry(elsewhere.get(done.id).leaf).content.text == "there"


def test_a_damaged_log_is_not_exported_as_if_it_were_whole(home):
    with opened(home) as conversations:
        done = taken(conversations, GOLDEN / "pi3.jsonl")
        log = conversations.store.path_of(done.id)
    lines = log.read_bytes().splitlines(keepends=True)
    log.write_bytes(b"".join(lines[:4] + lines[5:]))

    ended = run("export", str(done.id), "--as", "jsonl")

    assert (ended.code, ended.out) == (1, b"")
    assert "leftfold recover" in ended.err


def test_the_path_of_an_entry_alone_is_exported(home):
    with opened(home) as conversations:
        done = taken(conversations, GOLDEN / "messages.jsonl")

    lines = exported(f"{done.id}@2", "messages").splitlines()

    assert len(lines) == 1
    assert "列出" in lines[0].decode()


def test_markdown_shows_what_was_said_and_done(home):
    with opened(home) as conversations:
        done = taken(conversations, GOLDEN / "messages.jsonl")

    text = exported(done.id, "markdown").decode()

    assert "## User\n\n列出当前目录的文件\n" in text
    assert "**bash**\n\ncommand: `ls`\n\n```\na.py\nb.py\n```\n" in text


@given(text=st.text(alphabet="`a\n", max_size=40))
def test_no_text_leaves_its_block_of_code(text):
    fence, *lines, end = fenced(text).split("\n")
    assert fence == end
    assert "\n".join(lines) == text
    assert all(fence not in line for line in lines)


def test_a_file_that_is_there_is_replaced_only_if_that_is_said(home, tmp_path):
    with opened(home) as conversations:
        done = taken(conversations, GOLDEN / "messages.jsonl")
    path = tmp_path / "out.md"
    path.write_text("mine")

    refused = run("export", str(done.id), "--as", "markdown", "-o", str(path))
    assert (refused.code, path.read_text()) == (1, "mine")
    assert "--force" in refused.err

    exported(done.id, "markdown", "-o", str(path), "--force")
    assert path.read_text().startswith("# ")
    assert path.stat().st_mode & 0o777 == 0o600
    assert [each.name for each in tmp_path.iterdir() if each.name.endswith(".tmp")] == []


def test_a_folder_that_is_not_there_is_an_error_of_one_line(home, tmp_path):
    with opened(home) as conversations:
        done = taken(conversations, GOLDEN / "messages.jsonl")

    ended = run("export", str(done.id), "--as", "pi", "-o", str(tmp_path / "no" / "out.jsonl"))

    assert ended.code == 1
    [line] = ended.err.splitlines()
    assert "out.jsonl cannot be written" in line


@pytest.mark.parametrize("form", ["messages", "markdown", "pi", "atif", "jsonl"])
def test_a_full_disk_leaves_what_is_there_as_it_was(tmp_path, form):
    with ScriptedServer([]) as server:
        program = Program(tmp_path, server)
        session = tmp_path / "session.jsonl"
        lines = [{"role": role, "content": "word " * 2_000} for role in ROLES] * 20
        session.write_bytes(b"\n".join(map(msgspec.json.encode, lines)))
        [imported] = program.run("import", str(session), "--json").objects
        target = tmp_path / "out"
        target.write_text("mine")

        full = program.run(
            "export", imported["id"], "--as", form, "-o", str(target), "--force", most_bytes=50_000
        )

    assert full.code == 1
    assert "cannot be written" in full.complaint or "disk full" in full.complaint
    assert target.read_text() == "mine"
    assert sorted(tmp_path.glob(".out*")) == []
    assert list(tmp_path.glob("**/*.tmp")) == []
