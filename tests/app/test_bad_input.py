"""Bad input of every kind: a line or two, the right exit code, nothing lost, and it goes on after.

The list is issue 2's. `Done.complaint` checks that stderr has one or two lines, and no traceback.
"""

import os
import resource
import socket
import subprocess
from contextlib import contextmanager

import pytest

from app import run
from app.application import Conversations
from app.errors import UsageError
from domain.calls import OUTCOME_UNKNOWN
from domain.conversation import Conversation
from tests.app.programs import Program, events, results, said, topics
from tests.server import ScriptedServer, call, refuse, reply

SOON = 0.01
OFFLINE_ANSWER = "offline model"


def begin(program, *prompts):
    """Put a conversation of *prompts* into the program's store, without starting a process."""

    def start(conversation_id, timestamp):
        talk = Conversation.start(conversation_id, timestamp=timestamp, cwd=str(program.cwd))
        talk.change_model("claude-test", max_tokens=1000)
        talk.change_thinking_level("off")
        return talk

    with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
        at_hand = conversations.start(start)
        for prompt in prompts:
            at_hand.record(lambda talk, prompt=prompt: talk.append_prompt(prompt))
        return at_hand.id


# -- the model -------------------------------------------------------------------------------------


def test_without_a_key_and_without_a_terminal_it_is_wrong_usage(tmp_path):
    program = Program(tmp_path)
    done = program.run("-p", "hello")

    assert done.code == 2
    assert "ANTHROPIC_API_KEY" in done.complaint
    assert "--offline" in done.complaint
    assert not program.home.exists()


@pytest.mark.parametrize("text", ["--help", "-h", "--output=json", "--halp"])
def test_an_option_is_no_prompt(text):
    with pytest.raises(UsageError, match="is an option"):
        run._prompt(text)


@pytest.mark.parametrize("closed", [">&-", "2>&- <&-"])
def test_closed_streams_cost_a_turn_nothing(tmp_path, closed):
    program = Program(tmp_path)
    done = program.run("--offline", "-p", "hello", redirected=closed)

    assert (done.code, done.err) == (0, "")
    assert events(program.log())[-1]["state"]["outcome"] == "done"


def test_a_variable_that_makes_no_sense_ends_a_turn_and_leaves_the_offline_model_alone(tmp_path):
    wrong = {
        "ANTHROPIC_BASE_URL": "http://[::1",
        "SSL_CERT_FILE": "/nowhere/ca.pem",
        "ALL_PROXY": "socks5://[",
        "NO_PROXY": "[::1",
        "ANTHROPIC_CUSTOM_HEADERS": "x y: z",
        "ANTHROPIC_API_KEY": "sk-ant-abcdefgh\r",
    }
    program = Program(tmp_path)
    done = program.run("-p", "hello", "--output", "json", environment=wrong)
    result = done.objects[-1]

    assert (done.code, result["outcome"]) == (1, "failed")
    assert "ANTHROPIC_BASE_URL='http://[::1'" in result["error"]["message"]
    assert events(program.log())[-1]["state"]["outcome"] == "failed"
    offline = program.run("--offline", "-p", "hello", environment=wrong)
    assert offline.code == 0
    assert OFFLINE_ANSWER in offline.out


def test_one_conversation_survives_every_failure_of_the_model(tmp_path):
    """Each failure ends a turn; the next turn goes on, and nothing that was said is lost."""
    failures = [
        ("a wrong key", [refuse(401, "invalid\x1b[2J key")], "check ANTHROPIC_API_KEY"),
        ("an answer that ends early", [reply("Half an answer", finished=False)], "ended early"),
        ("an unknown model", [refuse(404, "model: nope")], "model: nope): check --model"),
        ("too many requests", [refuse(429, retry_after=SOON)] * 4, "too many requests ("),
        ("an overload", [refuse(529, retry_after=SOON)] * 4, "overloaded ("),
        ("a connection that breaks", [reply("Half again", drop_after=4)], "connection broke"),
    ]
    prompts, steps, told = zip(*failures, strict=True)
    with ScriptedServer([step for each in steps for step in each]) as server:
        program = Program(tmp_path, server)
        for number in range(2):
            done = program.run("-p", prompts[number], *["-c"][:number])
            assert done.code == 1
            assert done.complaint.startswith("leftfold: ")
            assert told[number] in done.err
            assert "\x1b" not in done.err
        lines = program.run("-c", stdin="\n".join(prompts[2:]))
        assert lines.code == 1
        assert server.unused == ()
        server.add(reply("All is well."))
        last = program.run("-c", "-p", "and now?")
        assert server.prefix_violations == []

    assert all(part in lines.out for part in told[2:]), lines.out
    assert (last.code, last.out, last.err) == (0, "All is well.\n", "")
    found = events(program.log())
    assert said(found, "user") == [*prompts, "and now?"]
    halves = said(found, "assistant")[:-1]
    assert len(halves) == 2
    assert "Half an answer".startswith(halves[0])
    assert "Half again".startswith(halves[1])
    ends = [event["state"]["outcome"] for event in found if event["topic"] == "TurnEnded"]
    assert ends == ["failed"] * 6 + ["done"]


def test_an_address_where_nobody_listens(tmp_path):
    with socket.socket() as taken:
        taken.bind(("127.0.0.1", 0))  # bound, never listening: nobody else gets the port
        url = f"http://127.0.0.1:{taken.getsockname()[1]}"
        program = Program(tmp_path, ANTHROPIC_BASE_URL=url, ANTHROPIC_API_KEY="test")
        done = program.run("-p", "hello", "--output", "json")

    assert done.code == 1
    [result] = done.objects
    assert result["outcome"] == "failed"
    assert "no connection" in result["error"]["message"]
    assert said(events(program.log()), "user") == ["hello"]
    assert OFFLINE_ANSWER in program.run("-c", "--offline", "-p", "again").out


def test_calls_that_make_no_sense_are_results_for_the_model(tmp_path):
    """An unknown tool, wrong arguments, JSON that was cut off: the turn goes on."""
    script = [
        reply(call("fly", call_id="fly", height=3), call("bash", call_id="bash", cmd="ls")),
        reply(call("write", call_id="cut", path="a", content="x" * 300), cut=True),
        reply("I see."),
    ]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        done = program.run("-p", "go", "--yes")

    assert (done.code, done.out, done.err) == (0, "I see.\n", "")
    told = results(events(program.log()))
    assert "no tool 'fly'" in told["fly"]
    assert "Wrong arguments" in told["bash"]
    assert "cut off" in told["cut"]
    assert not (program.cwd / "a").exists()


def test_a_recorded_model_that_is_gone_is_an_error_and_another_can_be_chosen(tmp_path):
    """Case L3."""
    with ScriptedServer([refuse(404, "model: claude-test"), reply("Hi.")]) as server:
        program = Program(tmp_path, server)
        begin(program, "hello")
        gone = program.run("-c", "-p", "again")
        other = program.run("-c", "-p", "and again", "--model", "claude-other")

    assert gone.code == 1
    assert "--model" in gone.complaint
    assert (other.code, other.out) == (0, "Hi.\n")
    assert [r.json["model"] for r in server.requests] == ["claude-test", "claude-other"]


# -- the store -------------------------------------------------------------------------------------


def test_a_store_that_is_a_file_or_below_one_or_cannot_be_made(tmp_path):
    """Case O6: told before the model is asked anything."""
    file = tmp_path / "file"
    file.write_text("mine")
    with ScriptedServer() as server:
        program = Program(tmp_path, server)
        for store, code in ((file, 1), (file / "store", 2), ("/proc/nowhere/store", 2)):
            done = program.run("--store", store, "-p", "hello")
            assert done.code == code  # 2: what was named has no place to be
            assert str(store) in done.complaint
        assert server.requests == []

    assert file.read_text() == "mine"


@contextmanager
def frozen(*paths):
    """Make *paths* unchangeable, for root too; skip where that is not possible."""
    if os.geteuid() != 0:
        modes = [(path, path.stat().st_mode) for path in paths]
        for path, mode in modes:
            path.chmod(mode & ~0o222)
        yield
        for path, mode in modes:
            path.chmod(mode)
        return
    command = ["chattr", "+i", *map(str, paths)]
    try:
        subprocess.run(command, check=True, capture_output=True)
    except (OSError, subprocess.CalledProcessError):
        pytest.skip("this file system cannot make files immutable")
    try:
        yield
    finally:
        subprocess.run(["chattr", "-i", *map(str, paths)], check=True, capture_output=True)


def test_a_read_only_store_can_be_read_and_refuses_to_be_written(tmp_path):
    with ScriptedServer() as server:
        program = Program(tmp_path, server)
        begin(program, "hello")
        log = program.log()
        before = log.read_bytes()
        with frozen(log, program.store):
            for arguments in (["-c", "-p", "again"], ["-p", "new"], ["fork", program.id()]):
                done = program.run(*arguments)
                assert done.code == 1
                assert str(program.store) in done.complaint
            assert program.run("show", program.id()).code == 0
            assert program.run("verify").code == 0
        assert server.requests == []
        assert (log.read_bytes(), program.logs()) == (before, [log])

        server.add(reply("Hi."))
        assert program.run("-c", "-p", "again").out == "Hi.\n"


def test_a_full_disk_before_the_request_loses_nothing_and_asks_nothing(tmp_path):
    """Case D8."""
    with ScriptedServer([reply("Hi.")]) as server:
        program = Program(tmp_path, server)
        begin(program, "hello")
        before = program.log().read_bytes()
        full = program.run("-c", "-p", "again", most_bytes=len(before) + 100)
        assert server.requests == []
        kept = program.log().read_bytes()
        after = program.run("-c", "-p", "again")

    assert full.code == 1
    assert str(program.log()) in full.complaint
    assert kept == before
    assert (after.code, after.out) == (0, "Hi.\n")
    assert said(events(program.log()), "user") == ["hello", "again"]


def test_a_disk_that_fills_up_in_mid_turn_stops_the_turn_and_the_next_one_goes_on(tmp_path):
    """The tool has run, and its result has no room: no request is made with what is not recorded."""
    command = "echo once >> ran; head -c 20000 /dev/zero | tr '\\0' x"
    script = [reply(call("bash", command=command, call_id="big")), reply("Back.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        full = program.run("-p", "go", "--yes", most_bytes=16_000)
        assert len(server.requests) == 1
        before = program.log().read_bytes()
        after = program.run("-c", "-p", "go on")

    assert full.code == 1
    assert str(program.log()) in full.complaint
    assert (after.code, after.out) == (0, "Back.\n")
    assert program.log().read_bytes().startswith(before)
    assert results(events(program.log())) == {"big": OUTCOME_UNKNOWN}
    assert (program.cwd / "ran").read_text() == "once\n"
    assert program.run("verify").code == 0


def test_limits_can_be_set_here():
    """Or the two tests above prove nothing."""
    assert resource.getrlimit(resource.RLIMIT_FSIZE)[1] in (resource.RLIM_INFINITY, -1)


# -- ids -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("wanted", "code", "told"),
    [
        ("ffffffff", 1, "no conversation matches"),
        ("01920000", 1, "matches 2 conversations"),
        ("019", 2, "too short"),
        ("../x", 2, "not a part of an id"),
        ("/etc/x", 2, "not a part of an id"),
        ("", 2, "not a part of an id"),
    ],
)
def test_an_id_that_names_no_conversation(tmp_path, wanted, code, told):
    """Case H8: wherever an id is taken."""
    program = Program(tmp_path)
    with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
        for number in range(2):
            talk = Conversation.start(
                conversations_id(number), timestamp=conversations.clock(), cwd=str(program.cwd)
            )
            conversations.save(talk)

    for arguments in (["show", wanted], ["--offline", "-p", "hi", "-r", wanted]):
        done = program.run(*arguments)
        assert done.code == code
        assert told in done.complaint
        if code == 2 and wanted != "":
            break
    assert len(program.logs()) == 2


def conversations_id(number):
    from uuid import UUID

    return UUID(f"01920000-0000-7000-8000-{number:012}")


def test_resuming_without_an_id_needs_somebody_to_choose(tmp_path):
    program = Program(tmp_path)
    begin(program, "hello")
    done = program.run("--offline", "-p", "hi", "-r")

    assert done.code == 2
    assert "-r" in done.complaint
    assert said(events(program.log()), "user") == ["hello"]


def test_an_entry_that_is_not_there(tmp_path):
    program = Program(tmp_path)
    conversation_id = begin(program, "hello")

    for command, entry, code in (
        ("fork", "99", 1),
        ("show", "1", 1),
        ("context", "-9", 1),
        ("fork", "no-such-label", 2),
    ):
        done = program.run(command, f"{conversation_id}@{entry}")
        assert done.code == code
        assert entry in done.complaint
    assert len(program.logs()) == 1


# -- logs ------------------------------------------------------------------------------------------


def test_a_log_of_a_newer_format_is_named_and_the_others_go_on(tmp_path):
    program = Program(tmp_path)
    newer, other = begin(program, "from the future"), begin(program, "hello")
    log = program.store / f"{newer}.jsonl"
    log.write_bytes(log.read_bytes().replace(b"leftfold/1", b"leftfold/9", 1))
    before = log.read_bytes()

    for arguments in (["show", newer], ["--offline", "-r", newer, "-p", "hi"], ["fork", newer]):
        done = program.run(*arguments)
        assert done.code == 1
        assert "leftfold/9" in done.complaint
    listed = program.run("list")
    assert listed.code == 0
    assert str(other) in listed.out
    assert "leftfold/9" in listed.complaint
    verified = program.run("verify")
    assert verified.code == 1
    assert f"{other}  4 events" in verified.out
    assert "leftfold/9" in verified.out
    talked = program.run("--offline", "-c", "-p", "what did I ask you?")
    assert talked.code == 0
    assert "hello" in talked.out
    assert log.read_bytes() == before


def test_a_log_written_with_a_key_needs_that_key(tmp_path):
    from eventsourcing.cipher import AESCipher

    program = Program(tmp_path)
    keys = {"CIPHER_KEY": AESCipher.create_key(16)}
    begin_with = Program(tmp_path, **keys)
    done = begin_with.run("--offline", stdin="hello\nwhat did I ask you?\n")
    assert done.code == 0
    assert "“hello”" in done.out
    assert b"hello" not in program.log().read_bytes()
    assert begin_with.run("verify").code == 0

    wrong = Program(tmp_path, CIPHER_KEY=AESCipher.create_key(16)).run("show", program.id())
    assert wrong.code == 1
    assert "CIPHER_KEY" in wrong.complaint
    assert wrong.out == ""
    without = program.run("verify", program.id())
    assert without.code == 1
    assert "hello" not in without.out


# -- standard input --------------------------------------------------------------------------------

CLOSED = "<&-"


def test_standard_input_that_is_closed_or_empty_leaves_at_once(tmp_path):
    """Case Q3."""
    program = Program(tmp_path)

    for redirected in (CLOSED, ""):
        done = program.run("--offline", redirected=redirected)
        assert done.code == 0
        asked = program.run("--offline", "-p", "-", redirected=redirected)
        assert asked.code == 2
        assert asked.complaint
    assert program.logs() == []


def test_a_turn_with_a_tool_needs_no_standard_input(tmp_path):
    program = Program(tmp_path)
    (program.cwd / "here.txt").touch()
    done = program.run("--offline", "--yes", "-p", "list the files here", redirected=CLOSED)

    assert done.code == 0
    assert "here.txt" in done.out
    assert program.run("verify").code == 0


def test_lines_on_standard_input_are_prompts_and_the_end_leaves(tmp_path):
    program = Program(tmp_path)
    done = program.run("--offline", stdin=b"hello\nodd \xff bytes\nwhat did I ask you?")

    assert done.code == 0
    assert OFFLINE_ANSWER in done.out
    assert "Traceback" not in done.out
    assert said(events(program.log()), "user") == [
        "hello",
        "odd \ufffd bytes",
        "what did I ask you?",
    ]
    assert topics(program.log()).count("TurnEnded") == 3


def test_bytes_that_are_no_text_are_replaced_at_the_door(tmp_path):
    """Cases E4, E7, E8: by argument and by pipe; and a terminal that knows no such characters."""
    program = Program(tmp_path, LC_ALL="C", PYTHONUTF8="0", PYTHONIOENCODING="ascii")
    done = program.run("--offline", "-p", "-", stdin=b"odd \xff bytes \0 and a zero\n")
    assert done.code == 0
    argument = program.run(
        "--offline", "-c", "-p", b"again \xff".decode("utf-8", "surrogateescape")
    )
    assert argument.code == 0

    assert said(events(program.log()), "user") == [
        "odd \ufffd bytes \0 and a zero",
        "again \ufffd",
    ]


# -- settings --------------------------------------------------------------------------------------


def test_a_directory_whose_name_is_no_text_finds_its_conversations(tmp_path):
    program = Program(tmp_path)
    program.cwd = program.cwd / os.fsdecode(b"\xff\xe9")
    program.cwd.mkdir()
    assert program.run("--offline", "-p", "hello").code == 0

    assert len(program.run("list", "--json").objects) == 1
    again = program.run("--offline", "-c", "-p", "run: pwd", "--yes")
    assert (again.code, again.err) == (0, "")
    assert len(program.run("list", "--json").objects) == 1


def test_settings_that_mean_nothing(tmp_path):
    program = Program(tmp_path)

    for arguments, environment, code, told in [
        (["-p", "hi", "--thinking", "hard"], {}, 2, "--thinking"),
        (["-p", "hi", "--output", "xml"], {}, 2, "--output"),
        (["lst"], {}, 2, "lst"),
        (["list"], {"LEFTFOLD_DURABILITY": "maybe"}, 2, "LEFTFOLD_DURABILITY"),
        (["list"], {"PERSISTENCE_MODULE": "no.such.module"}, 1, "no.such.module"),
        (["list"], {"CIPHER_KEY": "short"}, 1, "CIPHER_KEY"),
        (["list"], {"CIPHER_TOPIC": "json:JSONDecoder"}, 1, "CIPHER_TOPIC=json:JSONDecoder"),
        (["-p", "hi"], {"COMPRESSOR_TOPIC": "os"}, 1, "COMPRESSOR_TOPIC=os"),
    ]:
        done = program.run("--offline", *arguments, environment=environment)
        assert done.code == code, (arguments, environment, done)
        assert told in done.err
        assert "this is a bug" not in done.err
