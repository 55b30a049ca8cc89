"""Import: what is kept of each format, that it can be gone on with, and that nothing comes twice."""

import json
import os
import random
from contextlib import suppress
from hashlib import sha256
from pathlib import Path

import msgspec
import pytest
import zstandard
from hypothesis import given
from hypothesis import strategies as st

from app import importing
from app.application import Conversations
from app.importing import ForeignFileError, import_file
from domain import events
from domain.messages import ROLES
from domain.projections.context import context
from domain.projections.outline import outline
from infrastructure.histories.source import DAMAGE
from tests.api_rules import violations
from tests.app.in_process import run

GOLDEN = Path(__file__).parents[1] / "golden" / "histories"
FORMATS = {
    "messages.jsonl": "messages",
    "pi1.jsonl": "pi",
    "pi3.jsonl": "pi",
    "claude_code.jsonl": "claude-code",
    "claude_code_bare.jsonl": "claude-code",
    "codex.jsonl": "codex",
    "codex_2025.jsonl": "codex",
    "gemini_cli.jsonl": "gemini-cli",
    "gemini_cli.json": "gemini-cli",
    "opencode.json": "opencode",
}
LINES = {name: FORMATS[name] for name in FORMATS if name.endswith(".jsonl")}
"""Those that are written line by line; the others are one document."""


@pytest.fixture
def conversations(home):
    with opened(home) as conversations:
        yield conversations


def opened(home):
    return Conversations({"LEFTFOLD_STORE": str(home / "conversations")})


def taken(conversations, path, format_name=None, tell=lambda done, total: None):
    return import_file(conversations, path, format_name=format_name, cwd="/here", tell=tell)


def said(conversations, done):
    """Return what the log says, but for what an import adds about its own end."""
    aside = (events.Started, events.ToolStarted, events.LeafMoved)
    found = list(conversations.events_of(done.id))
    return [event for event in found if not isinstance(event, aside)]


def word(block):
    return block.get("text") or block.get("name") or block.get("content") or block["type"]


def told(conversations, done):
    """Return the path to the leaf: who, and what in a word."""
    conversation = conversations.get(done.id)
    lines = []
    for entry in conversation.path(conversation.leaf):
        if isinstance(entry, events.MessageAppended):
            words = [word(block) for block in entry.content.blocks]
            lines.append((entry.content.role, *words))
        elif not isinstance(entry, events.NoteAppended) or entry.visible:
            lines.append((entry.TOPIC, getattr(entry, "summary", None) or entry.content))
    return lines


# -- what is kept ----------------------------------------------------------------------------------


@pytest.mark.parametrize(("name", "format_name"), FORMATS.items())
def test_each_format_is_recognised_and_what_it_tells_is_a_request_that_the_api_takes(
    conversations, name, format_name
):
    done = taken(conversations, GOLDEN / name)

    assert (done.format, done.new, done.damaged, done.unfinished) == (format_name, True, 0, False)
    conversation = conversations.get(done.id)
    for version in [None, *conversation.entries]:
        assert violations(context(conversation, version)) == []
    started = next(conversations.events_of(done.id))
    assert started.program == format_name
    assert started.metadata["imported"]["file"] == str(GOLDEN / name)
    assert run("verify", str(done.id)).code == 0


_SAID = ("text", "content", "thinking", "output", "summary", "message", "prompt", "description")
"""Keys under which the formats keep what somebody said."""


def texts_in(value):
    """Yield what is said in *value*, a part of a history or of our log."""
    if isinstance(value, list):
        for inner in value:
            yield from texts_in(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if key in _SAID and isinstance(inner, str):
                yield inner
            elif key in _SAID and isinstance(inner, list):
                yield from (part for part in inner if isinstance(part, str))
            yield from texts_in(inner)


@pytest.mark.parametrize("name", FORMATS)
def test_no_word_is_dropped(conversations, name):
    raw = (GOLDEN / name).read_bytes()
    source = json.loads(raw) if name.endswith(".json") else [*map(json.loads, raw.splitlines())]

    done = taken(conversations, GOLDEN / name)

    log = msgspec.json.encode(list(conversations.events_of(done.id))).decode()
    log += log.replace("\\\\", "\\")  # what stands in a note is JSON in JSON
    of_the_program = {"Conversation compacted"}
    for text in set(texts_in(source)) - of_the_program:
        assert json.dumps(text, ensure_ascii=False)[1:-1] in log


def test_the_lesson_s_own_file_is_gone_on_with(tmp_path, home, monkeypatch):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "session.jsonl").write_bytes((GOLDEN / "messages.jsonl").read_bytes())

    imported = run("import", "session.jsonl")
    answer = run("--offline", "-c", "-p", "刚才我让你做什么了")

    assert imported.code == answer.code == 0
    assert "列出当前目录的文件" in answer.out.decode()


def test_pi_keeps_its_tree_its_names_and_its_summaries(conversations):
    done = taken(conversations, GOLDEN / "pi3.jsonl")

    conversation = conversations.get(done.id)
    assert (conversation.name, conversation.cwd) == ("shop", "/nowhere/shop")
    assert (conversation.model, conversation.thinking_level) == ("claude-sonnet-4-5", "low")
    [(labelled, label)] = conversation.labels.items()
    assert (label, conversation.entry(labelled).content.text) == ("here", "It prints 1.")
    # The last line hangs, past what says nothing here, from the first branch.
    assert told(conversations, done) == [
        ("user", "look at a.py"),
        ("assistant", "thinking", "read"),
        ("user", [{"type": "text", "text": "print(1)"}]),
        ("assistant", "It prints 1."),
        ("BranchSummarized", "On the other branch an image was seen."),
        ("user", "and now?"),
    ]
    other = next(e for e in conversation.entries.values() if isinstance(e, events.Compacted))
    kept = conversation.entry(other.first_kept).content
    assert [block["type"] for block in kept.blocks] == ["text", "image"]
    cut = conversation.entry(other.parent)
    assert (cut.model, cut.stop_reason) == ("gpt-5", "interrupted")
    notes = [e for e in conversation.entries.values() if isinstance(e, events.NoteAppended)]
    assert [(note.kind, note.visible) for note in notes] == [
        ("shell", True), ("shell", False), ("pi/custom", False), ("ext", True),
        ("pi/context_edit", False),
    ]  # fmt: skip


def test_claude_code_s_lines_of_one_answer_are_one_answer_with_the_last_usage(conversations):
    done = taken(conversations, GOLDEN / "claude_code.jsonl")

    conversation = conversations.get(done.id)
    answer = next(
        entry for entry in conversation.entries.values()
        if isinstance(entry, events.MessageAppended) and entry.response_id == "msg_1"
    )  # fmt: skip
    kinds = [block["type"] for block in answer.content.blocks]
    assert kinds == ["thinking", "text", "tool_use", "tool_use"]
    assert (answer.usage["output_tokens"], answer.stop_reason) == (40, "tool_use")
    compacted = next(e for e in conversation.entries.values() if isinstance(e, events.Compacted))
    assert told(conversations, done)[:6] == [
        ("user", "what is in a and b?"),
        ("assistant", "thinking", "I look at both.", "Read", "Read"),
        ("user", "in a"),
        ("user", "no such file"),
        ("user", "be quick"),
        ("assistant", "a has text, b is not there."),
    ]
    assert told(conversations, done)[6:] == [
        ("Compacted", "They asked for a and b."),
        ("user", "see this", "image"),
        ("assistant", "Bash"),
    ]
    assert compacted.tokens_before == 5000
    assert conversation.name == "Two files"
    inner = [row for row in outline(conversation) if "inner" in row.text]
    assert len(inner) == 2, "a tree of its own, beside the path"


def test_codex_s_items_become_answers_with_their_calls(conversations):
    done = taken(conversations, GOLDEN / "codex.jsonl")

    conversation = conversations.get(done.id)
    assert told(conversations, done) == [
        ("user", "run the tests"),
        ("assistant", "thinking", "shell", "shell"),
        ("user", '{"output":"1 failed","metadata":{"exit_code":1}}'),
        ("user", "invalid arguments"),
        ("assistant", "One test fails.", "apply_patch"),
        ("Compacted", "The tests were run; one failed."),
        ("user", "go on", "image"),
    ]
    first = next(
        e for e in conversation.entries.values()
        if isinstance(e, events.MessageAppended) and e.model
    )  # fmt: skip
    assert first.model == "gpt-5.2-codex"
    assert (first.usage["input_tokens"], first.usage["cache_read_input_tokens"]) == (40, 60)
    assert [block["input"] for block in first.content.tool_uses] == [
        {"command": ["bash", "-lc", "pytest"]}, {"arguments": "{not json"},
    ]  # fmt: skip


def test_an_item_without_a_type_or_a_payload_is_told_by_older_versions_of_codex(
    conversations, tmp_path
):
    path = tmp_path / "rollout.jsonl"
    lines = (GOLDEN / "codex.jsonl").read_text().replace('"type":"message",', "")
    path.write_text(lines)

    done = taken(conversations, path)
    older = taken(conversations, GOLDEN / "codex_2025.jsonl")

    assert told(conversations, done)[:2] == [
        ("user", "run the tests"),
        ("assistant", "thinking", "shell", "shell"),
    ]
    assert told(conversations, older) == [
        ("user", "which files are here?"),
        ("assistant", "thinking", "shell"),
        ("user", "a.py"),
        ("assistant", "Only a.py."),
    ]


def test_what_only_an_event_of_codex_tells_is_a_note(conversations, tmp_path):
    path = tmp_path / "rollout.jsonl"
    event = {"type": "agent_reasoning_raw_content", "text": "Only here."}
    line = json.dumps({"timestamp": "2026-07-01T08:00:02Z", "type": "event_msg", "payload": event})
    lines = (GOLDEN / "codex.jsonl").read_text().splitlines()
    path.write_text("\n".join([*lines[:7], line, *lines[7:]]) + "\n")

    done = taken(conversations, path)

    notes = [e for e in said(conversations, done) if "Only here." in str(getattr(e, "content", ""))]
    assert [note.kind for note in notes] == ["codex/event_msg"]
    assert ("assistant", "thinking", "shell", "shell") in told(conversations, done)


def test_lines_of_claude_code_without_ids_follow_each_other(conversations):
    done = taken(conversations, GOLDEN / "claude_code_bare.jsonl")

    assert told(conversations, done) == [
        ("user", "Fix the login"),
        ("assistant", "I read two files.", "Read", "Read"),
        ("user", "export {}"),
        ("user", "let user"),
        ("assistant", "Both are fine."),
        ("user", "Thank you, ", "that was all"),
    ]
    assert conversations.get(done.id).cwd == "/nowhere/login"


@pytest.mark.parametrize("name", ["codex.jsonl", "pi3.jsonl"])
def test_what_zstd_has_compressed_is_read(conversations, tmp_path, name):
    whole = (GOLDEN / name).read_bytes()
    (tmp_path / "sessions").mkdir()
    path = tmp_path / "sessions" / f"{name}.zst"
    path.write_bytes(zstandard.compress(whole))

    done = taken(conversations, path)

    assert (done.format, done.damaged, done.unfinished) == (FORMATS[name], 0, False)
    source = next(conversations.events_of(done.id)).metadata["imported"]
    assert source["sha256"] == sha256(whole).hexdigest()
    folder = run("import", str(tmp_path / "sessions"), "--json")
    assert [row["added"] for row in folder.objects] == [0]


def test_of_a_compressed_file_that_is_cut_off_the_beginning_is_read(conversations, tmp_path):
    lines = [
        json.dumps({"role": ROLES[number % 2], "content": str(random.Random(number).random())})
        for number in range(20_000)
    ]
    compressed = zstandard.compress("\n".join(lines).encode())
    path = tmp_path / "session.jsonl.zst"
    path.write_bytes(compressed[: len(compressed) // 2])

    first = taken(conversations, path)
    path.write_bytes(compressed)
    second = taken(conversations, path)

    assert first.messages > 1_000
    assert first.unfinished
    assert first.messages + second.messages == 20_000
    assert first.id == second.id


@pytest.mark.parametrize("name", ["gemini_cli.jsonl", "gemini_cli.json", "opencode.json"])
def test_results_that_stand_with_their_calls_follow_the_answer(conversations, name):
    done = taken(conversations, GOLDEN / name)

    path = told(conversations, done)
    assert path[0] == ("user", "read a", "image")
    assert path[1][0] == "assistant"
    assert [*path[1][1:3], len(path[1])] == ["thinking", "I look.", 5]
    assert path[2:5] == [("user", "in a"), ("user", "exit 1"), ("assistant", "a has text.")]
    conversation = conversations.get(done.id)
    answer = next(
        e for e in conversation.entries.values()
        if isinstance(e, events.MessageAppended) and e.usage
    )  # fmt: skip
    assert answer.usage["output_tokens"] == 15, "thoughts are paid for"
    assert answer.usage["cache_read_input_tokens"] == 40
    said = [
        e.content
        for e in conversation.path(conversation.leaf)
        if isinstance(e, events.MessageAppended)
    ]
    results = [block for content in said for block in content.tool_results]
    assert [block.get("is_error", False) for block in results] == [False, True]


def test_opencode_s_steps_are_answers_of_their_own(conversations):
    done = taken(conversations, GOLDEN / "opencode.json")

    conversation = conversations.get(done.id)
    assert (conversation.name, conversation.cwd) == ("Read a", "/nowhere/shop")
    assert told(conversations, done)[5:] == [("user", "and run it"), ("assistant", "bash")]
    last = list(conversation.entries.values())[-1]
    assert last.stop_reason == "failed"


def test_a_document_that_has_grown_is_gone_on_with(conversations, tmp_path):
    whole = json.loads((GOLDEN / "opencode.json").read_bytes())
    path = tmp_path / "export.json"
    path.write_text(json.dumps(whole | {"messages": whole["messages"][:2]}))
    first = taken(conversations, path)

    path.write_text(json.dumps(whole))
    second = taken(conversations, path)

    assert (second.id, second.new, second.messages) == (first.id, False, 2)


def test_a_call_without_a_result_may_have_run(conversations):
    done = taken(conversations, GOLDEN / "claude_code.jsonl")

    conversation = conversations.get(done.id)
    [call] = conversation.open_calls()
    assert conversation.was_started(call)
    assert not conversation.has_own_calls(), "and it is not run unasked"


def test_what_is_found_at_once(tmp_path, home):
    done = run("import", str(GOLDEN / "pi3.jsonl"), "--json").objects[0]

    [row] = run("list", "--all", "--json").objects
    hits = run("search", "--all", "It prints 1", "--json").objects

    assert (row["id"], row["name"]) == (done["id"], "shop")
    assert [hit["id"] for hit in hits] == [done["id"]]


# -- once ------------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINES)
def test_a_file_that_grows_is_gone_on_with_wherever_the_last_import_stopped(tmp_path_factory, name):
    whole = (GOLDEN / name).read_bytes()
    lines = whole.splitlines(keepends=True)

    @given(cuts=st.sets(st.integers(0, len(whole)), min_size=1, max_size=4))
    def property_(cuts):
        folder = tmp_path_factory.mktemp("grows")
        path = folder / name
        with opened(folder) as grown, opened(folder / "other") as at_once:
            for cut in [*sorted(cuts), len(whole)]:
                path.write_bytes(whole[:cut])
                try:
                    done = taken(grown, path, FORMATS[name])
                except ForeignFileError:
                    assert cut < len(b"".join(lines[:4])), "nothing told yet of what it is"
            path.write_bytes(whole)
            expected = said(at_once, taken(at_once, path, FORMATS[name]))
            found = said(grown, done)
            again = taken(grown, path, FORMATS[name])
            assert again.added == 0
        # An answer that was half written is there as it was, too; all that is new comes after.
        bodies = [body(event) for event in found]
        assert [each for each in map(body, expected) if each not in bodies] == []
        if name in ("messages.jsonl", "pi1.jsonl", "pi3.jsonl"):  # entries are never told anew
            assert bodies == [body(event) for event in expected]

    property_()


def body(event):
    """Return what an event says, without its place and the time of its import."""
    places = {"originator_id", "originator_version", "timestamp", "from", "first_kept", "target"}
    found = msgspec.json.decode(msgspec.json.encode(event))
    return (event.TOPIC, {key: found[key] for key in found.keys() - places - {"parent"}})


def test_two_programs_that_import_at_once_record_everything_once(conversations, home, monkeypatch):
    monkeypatch.setattr(importing, "_MOST_EVENTS", 3)
    raced = []

    def race(done, total):
        if not raced:
            raced.append(True)
            with opened(home) as other:
                taken(other, GOLDEN / "pi3.jsonl")

    done = taken(conversations, GOLDEN / "pi3.jsonl", tell=race)

    with opened(home / "alone") as alone:
        expected = said(alone, taken(alone, GOLDEN / "pi3.jsonl"))
        assert [*map(body, said(conversations, done))] == [*map(body, expected)]


def test_an_import_that_was_killed_goes_on(conversations, home, monkeypatch):
    monkeypatch.setattr(importing, "_MOST_EVENTS", 1)
    for stop in range(2, 8):
        with suppress(KeyboardInterrupt):
            taken(conversations, GOLDEN / "pi3.jsonl", tell=_killed_at(stop))
    done = taken(conversations, GOLDEN / "pi3.jsonl")

    with opened(home / "alone") as alone:
        expected = said(alone, taken(alone, GOLDEN / "pi3.jsonl"))
        assert [*map(body, said(conversations, done))] == [*map(body, expected)]


def _killed_at(stop):
    calls = []

    def tell(done, total):
        calls.append(done)
        if len(calls) == stop:
            raise KeyboardInterrupt

    return tell


def test_a_person_who_went_on_stays_where_they_are(conversations, tmp_path):
    lines = (GOLDEN / "pi3.jsonl").read_bytes().splitlines(keepends=True)
    path = tmp_path / "pi.jsonl"
    path.write_bytes(b"".join(lines[:6]))
    done = taken(conversations, path)
    mine = conversations.open(done.id)
    mine.record(lambda conversation: conversation.append_prompt("my own question"))
    leaf = mine.conversation.leaf

    path.write_bytes(b"".join(lines))
    again = taken(conversations, path)

    conversation = conversations.get(done.id)
    assert (again.id, again.new, conversation.leaf) == (done.id, False, leaf)
    assert "branch B" in [row.text for row in outline(conversation)]


# -- bad input -------------------------------------------------------------------------------------


@pytest.mark.parametrize("name", LINES)
@given(data=st.data())
def test_damage_costs_only_itself(tmp_path_factory, name, data):
    lines = (GOLDEN / name).read_bytes().splitlines(keepends=True)
    hurt = data.draw(st.integers(1, len(lines) - 1))
    what = data.draw(
        st.sampled_from([b"{broken\n", b"\xff\xfe\n", b"[]\n", b'"x"\n', b"\0\0\n", b"\n"])
    )
    folder = tmp_path_factory.mktemp("damaged")
    path = folder / name
    path.write_bytes(b"".join([*lines[:hurt], what, *lines[hurt:]]))

    with opened(folder) as conversations:
        done = taken(conversations, path, FORMATS[name])
        found = said(conversations, done)
        conversation = conversations.get(done.id)
        assert violations(context(conversation, conversation.leaf)) == []
    notes = [event for event in found if getattr(event, "kind", "") == DAMAGE]
    assert len(notes) == done.damaged == (what.strip(b"\0\n") != b"")
    assert done.messages == sum(isinstance(event, events.MessageAppended) for event in found)


@given(value=st.recursive(
    st.none() | st.booleans() | st.integers(-5, 5) | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(
        st.sampled_from(["type", "id", "message", "role", "content", "payload", "uuid", "parentId",
                         "parentUuid", "sessionId", "text", "usage", "summary", "timestamp"]), inner, max_size=5),
    max_leaves=12,
), place=st.integers(1, 12), name=st.sampled_from(sorted(LINES)))  # fmt: skip
def test_no_line_stops_an_import(tmp_path_factory, value, place, name):
    lines = (GOLDEN / name).read_bytes().splitlines(keepends=True)
    known = [json.loads(line) for line in lines]
    template = known[place % len(known)]
    if isinstance(value, dict):
        value = template | value
    folder = tmp_path_factory.mktemp("any")
    path = folder / name
    inserted = json.dumps(value).encode() + b"\n"
    path.write_bytes(
        b"".join([*lines[: place % len(lines)], inserted, *lines[place % len(lines) :]])
    )

    with opened(folder) as conversations:
        try:
            done = taken(conversations, path)
        except ForeignFileError:
            return
        conversation = conversations.get(done.id)
        assert violations(context(conversation, conversation.leaf)) == []


def test_a_last_line_that_is_being_written_is_left_for_the_next_time(conversations, tmp_path):
    whole = (GOLDEN / "pi3.jsonl").read_bytes()
    path = tmp_path / "pi.jsonl"
    path.write_bytes(whole[:-20])

    first = taken(conversations, path)
    path.write_bytes(whole)
    second = taken(conversations, path)

    assert (first.unfinished, first.damaged) == (True, 0)
    assert (second.unfinished, second.messages) == (False, 1)


def test_what_is_no_history_is_named_and_costs_the_others_nothing(tmp_path, home):
    (tmp_path / "notes.jsonl").write_text('{"some": "thing"}\n')
    (tmp_path / "empty.jsonl").touch()
    (tmp_path / "pi.jsonl").write_bytes((GOLDEN / "pi3.jsonl").read_bytes())
    os.mkfifo(tmp_path / "pipe.jsonl")

    ended = run("import", str(tmp_path), "--json")

    assert ended.code == 1
    rows = {Path(row["source"]).name: row for row in ended.objects}
    assert rows["pi.jsonl"]["messages"] == 9
    assert "error" in rows["notes.jsonl"]
    assert "error" in rows["empty.jsonl"]
    assert "pipe.jsonl" not in rows
    assert "notes.jsonl is not a known history" in ended.err


def test_a_file_that_is_not_there_is_an_error_of_one_line(home):
    ended = run("import", "/nowhere/session.jsonl")

    assert ended.code == 1
    [line] = ended.err.splitlines()
    assert "/nowhere/session.jsonl" in line
