"""The command line, as a person or a script uses it: the real program, end to end."""

import hashlib
import json
import re
import signal

import pexpect
import pytest

from app.application import Conversations
from app.cli import COMMANDS
from tests.app.programs import (
    PATIENCE,
    Program,
    append_line,
    events,
    finish,
    results,
    said,
    topics,
    until,
)
from tests.server import ScriptedServer, call, reply, thinking


def sha256(path):
    return hashlib.sha256(path.read_bytes()).hexdigest()


# -- one conversation, made once, looked at by many ------------------------------------------------


class Example:
    """A conversation of two turns, with a tool and thinking; nobody writes to it."""

    def __init__(self, folder):
        script = [
            reply(thinking("Hm."), call("bash", command="ls", call_id="look")),
            reply("One file."),
            reply("You asked for the files."),
        ]
        with ScriptedServer(script) as server:
            self.program = Program(folder, server, MODEL_ID="from-environment")
            (self.program.cwd / "here.txt").write_text("x")
            self.first = self.program.run(
                "-p", "list the files", "--yes", "--output", "stream-json", "--name", "files"
            )
            self.second = self.program.run("-c", "-p", "-", "--output", "json", stdin="and?\n")
            self.requests = [received.json for received in server.requests]
            self.bodies = [received.body for received in server.requests]
            self.prefix_violations = server.prefix_violations
        self.log = self.program.log()
        self.id = self.log.stem

    def run(self, *arguments):
        done = self.program.run(*arguments)
        assert done.err == ""
        return done


@pytest.fixture(scope="module")
def example(tmp_path_factory):
    return Example(tmp_path_factory.mktemp("example"))


def test_the_log_is_one_readable_line_an_event(example):
    header, *lines = example.log.read_text().splitlines()

    assert json.loads(header)["format"] == "leftfold/1"
    assert [json.loads(line)["topic"] for line in lines] == [
        "Started",
        "ModelChanged",
        "ThinkingLevelChanged",
        "Renamed",
        "InstructionsChanged",
        "MessageAppended",
        "MessageAppended",
        "ToolStarted",
        "MessageAppended",
        "MessageAppended",
        "TurnEnded",
        "MessageAppended",
        "MessageAppended",
        "TurnEnded",
    ]
    assert [json.loads(line)["v"] for line in lines] == list(range(1, 15))
    assert example.log.stat().st_mode & 0o777 == 0o600
    assert example.log.parent.stat().st_mode & 0o777 == 0o700


def test_stream_json_begins_with_the_conversation_and_ends_with_the_result(example):
    assert example.first.code == 0
    assert example.first.err == ""
    first, *middle, last = example.first.objects
    cwd = str(example.program.cwd)
    assert first == {
        "type": "conversation",
        "id": example.id,
        "cwd": cwd,
        "model": "from-environment",
        "restored": 0,
    }
    assert last["type"] == "result"
    assert (last["id"], last["outcome"], last["text"]) == (example.id, "done", "One file.")
    assert (last["version"], last["stop_reason"]) == (11, "end_turn")
    assert last["usage"]["output_tokens"] > 0
    kinds = [item["type"] for item in middle if item["type"] != "stream"]
    assert kinds == ["tool_started", "tool_output", "tool_result"]
    by_kind = {item["type"]: item for item in middle}
    assert by_kind["tool_started"]["call"]["input"] == {"command": "ls"}
    assert by_kind["tool_started"]["summary"] == "$ ls"
    assert by_kind["tool_output"] == {
        "type": "tool_output",
        "tool_use_id": "look",
        "text": "here.txt\n",
    }
    assert by_kind["tool_result"] == {
        "type": "tool_result",
        "tool_use_id": "look",
        "content": "here.txt\n",
        "is_error": False,
    }
    streamed = [item["event"]["type"] for item in middle if item["type"] == "stream"]
    assert streamed.count("message_start") == streamed.count("message_stop") == 2


def test_a_prompt_from_stdin_goes_on_with_the_newest_and_json_is_one_object(example):
    assert example.second.code == 0
    assert example.second.err == ""
    [result] = example.second.objects
    assert result["type"] == "result"
    assert result["id"] == example.id
    assert result["text"] == "You asked for the files."
    assert result["version"] == 14
    assert "error" not in result
    assert said(events(example.log), "user") == ["list the files", "and?"]
    assert example.prefix_violations == []


def test_context_is_byte_for_byte_what_the_server_received(example):
    answers = [
        event["v"]
        for event in events(example.log)
        if event["topic"] == "MessageAppended" and event["state"]["message"]["role"] == "assistant"
    ]

    assert len(answers) == len(example.bodies) == 3
    for version, received in zip(answers, example.bodies, strict=True):
        done = example.run("context", f"{example.id}@{version}", "--json")
        assert done.code == 0
        assert done.out.encode() == received + b"\n"


def test_context_without_an_entry_is_what_the_next_prompt_would_extend(example):
    done = example.run("context", example.id)

    body = json.loads(done.out)
    assert (
        body["messages"][: len(example.requests[-1]["messages"])]
        == (example.requests[-1]["messages"])
    )
    assert body["messages"][-1]["content"] == [{"type": "text", "text": "(Continue.)"}]


def test_list_show_log_and_verify_say_what_is_there(example):
    listed = example.run("list")
    assert re.fullmatch(rf"{example.id}  \d{{4}}-\d\d-\d\d \d\d:\d\d +14  files\n", listed.out)
    [row] = example.run("list", "--json").objects
    assert (row["id"], row["events"], row["title"]) == (example.id, 14, "files")
    assert row["cwd"] == str(example.program.cwd)
    assert row["created"] < row["updated"]

    shown = example.run("show", example.id).out
    for part in ("list the files", "$ ls", "here.txt", "One file.", "You asked for the files."):
        assert part in shown
    earlier = example.run("show", f"{example.id}@6", "--json").objects
    assert [(item["kind"], item["text"]) for item in earlier] == [("user", "list the files")]
    items = example.run("show", example.id[-8:], "--json").objects
    assert [item["kind"] for item in items] == [
        "user",
        "thinking",
        "tool_use",
        "tool_result",
        "assistant",
        "user",
        "assistant",
    ]

    lines = example.run("log", example.id).out.splitlines()
    assert len(lines) == 14
    assert lines[0].split()[0] == "1"
    assert "assistant: One file." in lines[9]
    objects = example.run("log", example.id, "--json", "--since", "12").objects
    assert objects == [{"version": event["v"], **event} for event in events(example.log)[11:]]

    verified = example.run("verify")
    assert verified.code == 0
    assert verified.out == (
        f"{example.id}  14 events, {example.log.stat().st_size:,} bytes, 3 requests proven: ok\n"
        "1 checked, all clean\n"
    )
    [report] = example.run("verify", example.id[:13], "--json").objects
    assert report == {
        "id": example.id,
        "ok": True,
        "events": 14,
        "bytes": example.log.stat().st_size,
        "requests_proven": 3,
        "findings": [],
    }


def test_looking_writes_nothing(example):
    before = {path: sha256(path) for path in example.program.store.rglob("*") if path.is_file()}

    example.run("show", example.id)
    example.run("context", example.id)
    example.run("verify")

    after = {path: sha256(path) for path in example.program.store.rglob("*") if path.is_file()}
    assert after == before


@pytest.mark.parametrize("command", ["", *COMMANDS])
def test_every_command_has_help(home, command, capsys):
    from app.cli import leftfold

    arguments = [command, "--help"] if command else ["--help"]
    leftfold.main(arguments, prog_name="leftfold", standalone_mode=False)

    shown = capsys.readouterr().out
    assert shown.startswith(f"Usage: leftfold {command}".rstrip())
    assert len(shown.splitlines()) > 4
    if not command:
        assert all(f"  {name} " in shown for name in COMMANDS)


# -- resuming, forking -----------------------------------------------------------------------------


def test_resume_by_id_beginning_and_end_and_continue_the_newest_of_this_directory(tmp_path):
    with ScriptedServer([reply("A."), reply("B."), reply("C.")]) as server:
        program = Program(tmp_path, server)
        with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
            first = str(_begin(conversations, str(program.cwd), "first"))
            second = str(_begin(conversations, str(program.cwd), "second"))
        shared = next(n for n, (a, b) in enumerate(zip(first, second, strict=True)) if a != b)
        beginning = first[: max(shared + 1, 4)]

        assert program.run("-r", beginning, "-p", "more").out == "A.\n"
        assert program.run("-r", first[-12:], "-p", "still more").out == "B.\n"
        assert program.run("-c", "-p", "again").out == "C.\n"

    prompts = ["first", "more", "still more", "again"]
    assert said(events(program.store / f"{first}.jsonl"), "user") == prompts
    assert said(events(program.store / f"{second}.jsonl"), "user") == ["second"]
    assert server.prefix_violations == []
    assert [block["text"] for block in _texts(server.requests[-1].json, "user")] == prompts


def _texts(request, role):
    return [
        block
        for message in request["messages"]
        if message["role"] == role
        for block in message["content"]
        if block["type"] == "text"
    ]


def test_a_fork_is_a_byte_prefix_under_a_new_id_and_its_parent_stays_untouched(tmp_path):
    with ScriptedServer([reply("One."), reply("Two."), reply("Other.")]) as server:
        program = Program(tmp_path, server)
        program.run(stdin="one\ntwo\n")
        parent = program.log()
        before = sha256(parent)
        answer = next(
            event["v"]
            for event in events(parent)
            if event["topic"] == "MessageAppended" and event["state"].get("model")
        )

        forked = program.run("fork", f"{parent.stem}@{answer}")
        child = parent.with_name(f"{forked.out.strip()}.jsonl")
        kept = child.read_bytes()
        talked = program.run("--fork", f"{parent.stem}@{answer}", "-p", "other", "--output", "json")

    assert forked.code == 0
    lines, copied = parent.read_bytes().splitlines(), kept.splitlines()
    assert copied[1 : answer + 1] == lines[1 : answer + 1]
    assert topics(child) == [*topics(parent)[:answer], "Forked"]
    header = json.loads(copied[0])
    assert header["id"] == child.stem
    [result] = talked.objects
    assert result["text"] == "Other."
    grandchild = parent.with_name(f"{result['id']}.jsonl")
    assert grandchild not in (parent, child)
    assert grandchild.read_bytes().splitlines()[1 : answer + 1] == lines[1 : answer + 1]
    assert said(events(grandchild), "user") == ["one", "other"]
    assert sha256(parent) == before
    assert child.read_bytes() == kept
    assert program.run("verify").code == 0


@pytest.mark.parametrize(
    ("arguments", "told", "helped"),
    [
        (["shwo"], "There is no command 'shwo'. Did you mean 'show'?", "leftfold --help"),
        (["fix the bug"], "There is no command 'fix the bug'. What the model", "leftfold --help"),
        (["--foo"], "No such option '--foo'", "leftfold --help"),
        (["show"], "Missing argument 'ID[@ENTRY]'", "leftfold show --help"),
        (["log", "--since", "x", "0192"], "'x' is not a valid", "leftfold log --help"),
        (["-p", "x", "--output", "yaml"], "'yaml' is not one of", "leftfold --help"),
        (["-p"], "requires an argument", ""),
        (["a\x1b[31m"], "There is no command 'a\\x1b[31m'", "leftfold --help"),
    ],
)
def test_what_makes_no_sense_is_answered_in_two_lines(tmp_path, arguments, told, helped):
    done = Program(tmp_path).run(*arguments)

    assert (done.code, done.out) == (2, "")
    assert done.complaint.startswith("leftfold: ")
    assert told in done.complaint
    assert helped in done.complaint


def test_options_that_contradict_one_another_are_wrong_usage(tmp_path):
    program = Program(tmp_path)

    for arguments in (["-c", "-r", "0192"], ["-c", "--fork", "0192"], ["-p", " "], ["-p", "-"]):
        done = program.run("--offline", *arguments)
        assert done.code == 2
        assert done.complaint
    assert not program.home.exists()


def test_flags_are_recorded_and_outlive_the_process(tmp_path):
    with ScriptedServer([reply("A."), reply("B.")]) as server:
        program = Program(tmp_path, server)
        program.run("-p", "one", "--model", "claude-sonnet-5-5", "--thinking", "high")
        program.run("-c", "-p", "two", environment={"MODEL_ID": "from-environment"})

    sent = [(r.json["model"], r.json.get("output_config")) for r in server.requests]
    high = {"effort": "high"}
    assert sent == [("claude-sonnet-5-5", high)] * 2


def test_a_store_chosen_by_flag_is_the_one_that_is_continued_and_listed(tmp_path):
    """Case H9."""
    program = Program(tmp_path)
    elsewhere = tmp_path / "elsewhere"

    program.run("--offline", "--store", elsewhere, "-p", "hello")
    done = program.run("--offline", "--store", elsewhere, "-c", "-p", "what did I ask you?")

    assert "hello" in done.out
    assert not program.store.exists()
    [log] = elsewhere.glob("*.jsonl")
    [row] = program.run("--store", elsewhere, "list", "--json").objects
    assert row["id"] == log.stem


def test_lists_are_of_this_directory_or_all_and_can_be_searched(tmp_path):
    """Cases H2, H5: by the directory in the log, however long the first prompt."""
    program = Program(tmp_path)
    with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
        here = _begin(conversations, str(program.cwd), "apples " * 20_000)
        there = _begin(conversations, f"{program.cwd}-other", "Pears\x1b[2K")

    assert [row["id"] for row in program.run("list", "--json").objects] == [str(here)]
    rows = program.run("list", "--all", "--json").objects
    assert [row["id"] for row in rows] == [str(there), str(here)]
    assert [row["id"] for row in program.run("list", "--search", "APPLES", "--json").objects] == [
        str(here)
    ]
    nothing = program.run("list", "--search", "quinces")
    assert (nothing.code, nothing.out) == (0, "")
    assert "no conversations" in nothing.complaint
    everything = program.run("list", "--all").out
    assert "\x1b" not in everything
    assert len(everything.splitlines()) == 2


def _begin(conversations, cwd, prompt):
    from domain.conversation import Conversation

    def begin(conversation_id, timestamp):
        return Conversation.start(conversation_id, timestamp=timestamp, cwd=cwd)

    at_hand = conversations.start(begin)
    at_hand.record(lambda talk: talk.append_prompt(prompt))
    return at_hand.id


def test_tools_run_in_the_directory_of_the_conversation_wherever_it_is_resumed(tmp_path):
    """Cases H1, H6."""
    script = [reply("Hi."), reply(call("bash", command="pwd", call_id="where")), reply("There.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        program.run("-p", "hello")
        own, program.cwd = program.cwd, tmp_path
        assert program.run("-r", program.id(), "-p", "where?", "--yes").out == "There.\n"

    assert results(events(program.log())) == {"where": f"{own}\n"}


def test_tools_that_need_approval_are_refused_when_nobody_can_be_asked(tmp_path):
    with ScriptedServer([reply(call("bash", command="touch made")), reply("I see.")]) as server:
        program = Program(tmp_path, server)
        done = program.run("-p", "make it")

    assert (done.code, done.out) == (0, "I see.\n")
    [told] = results(events(program.log())).values()
    assert "--yes" in told
    assert "ToolStarted" not in topics(program.log())
    assert not (program.cwd / "made").exists()


# -- following, verifying --------------------------------------------------------------------------


def test_log_follow_prints_what_another_process_appends(tmp_path):
    program = Program(tmp_path)
    with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
        conversation_id = _begin(conversations, str(program.cwd), "hello")
        with program.started(
            "log", conversation_id, "--follow", "--json", "--since", "2"
        ) as follow:
            first = json.loads(follow.stdout.readline())
            at_hand = conversations.open(conversation_id)
            at_hand.record(lambda talk: talk.rename("followed"))
            second = json.loads(follow.stdout.readline())
            at_hand.record(lambda talk: talk.rename("and again"))
            third = json.loads(follow.stdout.readline())
            follow.send_signal(signal.SIGINT)
            done = finish(follow)

    assert [first["topic"], second["topic"], third["topic"]] == [
        "MessageAppended",
        "Renamed",
        "Renamed",
    ]
    assert (second["v"], second["state"]["name"]) == (3, "followed")
    assert (third["v"], third["state"]["name"]) == (4, "and again")
    assert (done.code, done.out, done.err.strip()) == (130, "", "")


def test_verify_names_the_damaged_line_and_exits_with_1(tmp_path):
    program = Program(tmp_path)
    with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
        hurt = _begin(conversations, str(program.cwd), "hello")
        whole = _begin(conversations, str(program.cwd), "hello")
    log = program.store / f"{hurt}.jsonl"
    append_line(log, 3, "Renamed", {"timestamp": "2026-01-01T00:00:00Z", "name": "by hand"})
    with log.open("ab") as file:
        file.write(b"\0" * 40 + b"\n")

    done = program.run("verify")
    assert done.code == 1
    first, *findings, last = done.out.splitlines()
    assert first.startswith(f"{whole}  2 events")
    assert first.endswith(": ok")
    assert findings[0].endswith(": 1 findings")
    assert "line 5" in findings[1]
    assert "NUL" in findings[1]
    assert last == "2 checked, 1 with findings"
    [report] = program.run("verify", hurt, "--json").objects
    assert report["ok"] is False
    assert report["findings"][0]["line"] == 5
    assert program.run("verify", whole).code == 0


# -- whoever reads our output goes away ------------------------------------------------------------


def test_a_reader_that_goes_away_costs_nothing_of_the_turn(tmp_path):
    """`leftfold -p … --output stream-json | head -1`: the work is done and recorded all the same."""
    command = (
        "while [ ! -e go ]; do sleep 0.05; done; for i in 1 2 3; do echo $i; done; echo > made"
    )
    script = [reply(call("bash", command=command, call_id="slow")), reply("Done.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        with program.started("-p", "work", "--yes", "--output", "stream-json") as process:
            process.stdout.readline()
            process.stdout.close()
            (program.cwd / "go").touch()
            process.stdout = None
            _, err = process.communicate(timeout=PATIENCE)

    assert err == b""
    assert results(events(program.log())) == {"slow": "1\n2\n3\n"}
    assert (program.cwd / "made").exists()
    assert topics(program.log())[-1] == "TurnEnded"
    assert events(program.log())[-1]["state"]["outcome"] == "done"


# -- at a terminal ---------------------------------------------------------------------------------

_ESCAPES = re.compile(r"\x1b(\[[0-9;?>=]*[a-zA-Z]|[=>78]|\][^\x07]*\x07)")


class Terminal:
    """The program in a pseudo-terminal, without a key: the offline model answers."""

    def __init__(self, program, *arguments):
        self.child = program.at_terminal(
            *arguments, size=(40, 120), LANG="C.UTF-8", PROMPT_TOOLKIT_NO_CPR="1"
        )
        self.shown = ""

    def sees(self, *texts):
        """Wait until each of *texts* is shown, in this order."""
        for text in texts:
            self.child.expect_exact(text)
            self.shown += self.child.before + self.child.after

    def types(self, text):
        self.child.send(text)

    def says(self, text):
        self.types(text + "\r")

    def leaves(self):
        """Wait for the end, and return the exit code."""
        self.child.expect(pexpect.EOF)
        self.shown += self.child.before
        self.child.close()
        return self.child.exitstatus

    @property
    def text(self):
        return _ESCAPES.sub("", self.shown)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.child.close(force=True)


@pytest.mark.parametrize(
    ("request_", "question"),
    [
        ("列出当前目录的文件", "刚才我让你做什么了"),
        ("list the files here", "what did I just ask you?"),
    ],
    ids=["Chinese", "English"],
)
def test_the_first_conversation_of_a_person_without_a_key(tmp_path, request_, question):
    program = Program(tmp_path)
    (program.cwd / "apples.txt").touch()
    (program.cwd / "pears.txt").touch()
    with Terminal(program) as terminal:
        terminal.sees("Offline (no ANTHROPIC_API_KEY is set)", "leftfold>")
        terminal.says(request_)
        terminal.sees("Allow ", "ls", "[n]o")
        assert not program.has_logged(lambda found: "ToolStarted" in [e["topic"] for e in found])
        terminal.types("y")
        terminal.sees("apples.txt", "pears.txt")
        until(lambda: topics(program.log())[-1] == "TurnEnded")
        terminal.sees("leftfold>")
        terminal.says("q")
        assert terminal.leaves() == 0

    assert f"To resume: leftfold -r {program.id()}" in terminal.text
    assert "Traceback" not in terminal.text
    with Terminal(program, "-c") as terminal:
        terminal.sees("Restored 4 messages", "leftfold>")
        terminal.says(question)
        until(lambda: topics(program.log()).count("TurnEnded") == 2)
        terminal.sees("leftfold>")
        terminal.says("q")
        assert terminal.leaves() == 0

    answer = said(events(program.log()), "assistant")[-1]
    assert request_ in answer
    assert "Traceback" not in terminal.text


@pytest.mark.parametrize(
    ("prompt", "sent"),
    [("explain this", "line 1\nline 2\n\nexplain this"), ("-", "line 1\nline 2")],
)
def test_what_is_piped_in_goes_before_the_prompt(tmp_path, prompt, sent):
    with ScriptedServer([reply("Well.")]) as server:
        program = Program(tmp_path, server)

        assert program.run("-p", prompt, stdin="line 1\nline 2\n\n").code == 0

    assert said(events(program.log()), "user") == [sent]
