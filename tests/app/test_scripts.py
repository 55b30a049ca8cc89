"""A program drives a conversation over stdin and stdout: real processes, a JSON object a line."""

import json
import signal
import subprocess
from contextlib import contextmanager

import pexpect
import pytest

from app.headless.one_turn import result_of
from app.standard_input import LONGEST
from tests import builders as b
from tests.app.programs import PATIENCE, Program, events, finish, results, said, topics, until
from tests.server import Gate, ScriptedServer, call, refuse, reply


class Driven:
    """A process and both ends of its pipes."""

    def __init__(self, process):
        self.process = process

    def send(self, **said):
        self.send_line(json.dumps(said))

    def send_line(self, line):
        self.process.stdin.write(line.encode() if isinstance(line, str) else line)
        self.process.stdin.write(b"\n")
        self.process.stdin.flush()

    def next(self, *kinds):
        """The next object of one of these types; what comes before it is passed over."""
        while line := self.process.stdout.readline():
            found = json.loads(line)
            if found["type"] in kinds:
                return found
        raise AssertionError((kinds, self.process.stderr.read().decode()))

    def end(self):
        """Close its input, wait for its end; return what it still said, and its exit code."""
        out, err = self.process.communicate(timeout=PATIENCE)
        assert err == b""
        return [json.loads(line) for line in out.splitlines()], self.process.returncode


@contextmanager
def driven(program, *arguments):
    with program.started("--input", "stream-json", *arguments, stdin=subprocess.PIPE) as process:
        yield Driven(process)


def of(objects, kind):
    return [found for found in objects if found["type"] == kind]


def test_a_program_drives_a_whole_conversation(tmp_path):
    script = [reply(call("bash", command="echo hi", call_id="one")), reply("Hi."), reply("Bye.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        with driven(program, "--name", "driven") as other:
            about = other.next("conversation", "error")
            assert (about["cwd"], about["restored"]) == (str(program.cwd), 0)
            other.send(type="prompt", text="say hi 你好")
            asked = other.next("approval_needed", "result")
            assert asked == {
                "type": "approval_needed",
                "tool_use_id": "one",
                "tool": "bash",
                "input": {"command": "echo hi"},
                "summary": "$ echo hi",
            }
            other.send(type="approve", tool_use_id="one", decision="yes")
            assert other.next("tool_result")["content"] == "hi\n"
            first = other.next("result")
            assert (first["text"], first["outcome"]) == ("Hi.", "done")
            other.send(type="prompt", text="and bye")
            assert other.next("result")["text"] == "Bye."
            assert other.end() == ([], 0)

    log = events(program.log())
    assert said(log, "user") == ["say hi 你好", "and bye"]
    assert about["id"] == str(program.id())


def test_a_no_with_its_reason_is_told_to_the_model(tmp_path):
    script = [reply(call("bash", command="rm x", call_id="rm")), reply("Well.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        with driven(program) as other:
            other.send(type="prompt", text="go")
            other.next("approval_needed")
            other.send(type="approve", tool_use_id="rm", decision="no", reason="Keep x.")
            other.next("result")
            other.send(type="quit")
            assert other.end()[1] == 0

    assert "The user says: Keep x." in results(events(program.log()))["rm"]


def test_always_can_mean_this_command_alone(tmp_path):
    calls = [
        reply(call("bash", command=word, call_id=f"c{number}"))
        for number, word in enumerate(["true", "true", "pwd"])
    ]
    with (
        ScriptedServer([*calls, reply("Done.")]) as server,
        driven(Program(tmp_path, server)) as other,
    ):
        other.send(type="prompt", text="go")
        assert other.next("approval_needed")["tool_use_id"] == "c0"
        other.send(type="approve", tool_use_id="c0", decision="always", command=True)
        assert other.next("approval_needed")["tool_use_id"] == "c2"
        other.send(type="approve", tool_use_id="c2", decision="always")
        assert other.next("result")["text"] == "Done."


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ("nonsense", "this is no JSON"),
        (b'{"type": "prompt", "text": "\xff"}', "this is no JSON"),
        ("[" * 100_000, "this is no JSON"),
        ('["prompt"]', "an object with a type is expected"),
        ("{}", "an object with a type is expected"),
        ('{"type": "promt"}', "there is no type 'promt'; did you mean 'prompt'?"),
        ('{"type": "prompt"}', "a prompt needs some text"),
        ('{"type": "prompt", "text": " "}', "a prompt needs some text"),
        ('{"type": "prompt", "text": 5}', "a prompt needs some text"),
        ('{"type": "interrupt"}', "no turn is running"),
        ('{"type": "approve", "tool_use_id": "x"}', "no approval of 'x' is needed"),
        ('{"type": "approve", "tool_use_id": []}', "no approval of [] is needed"),
        ('{"type": "prompt", "text": "a", "text": "b"}', "a key stands there twice in one object"),
        (
            '{"type": "approve", "tool_use_id": "x", "decision": "no", "decision": "yes"}',
            "a key stands there twice in one object",
        ),
        ('{"type": "prompt", "text": "a", "x": NaN}', "this is no JSON: NaN is no number"),
        ("x" * (LONGEST + 10), "this line is longer than 67,108,864 bytes"),
    ],
)
def test_a_line_that_makes_no_sense_is_answered_and_ends_nothing(tmp_path, line, message):
    with (
        ScriptedServer([reply("Still here.")]) as server,
        driven(Program(tmp_path, server)) as other,
    ):
        other.send_line("")
        other.send_line(line)
        problem = other.next("error")
        assert (problem["line"], problem["message"][: len(message)]) == (2, message)
        other.send(type="prompt", text="there?")
        assert other.next("result")["text"] == "Still here."
        assert other.end() == ([], 0)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        ({"decision": "perhaps"}, "decision 'perhaps': choose one of yes, always, no"),
        ({"decision": []}, "decision []: choose one of"),
        ({"decision": "no", "reason": 5}, "reason has to be text"),
        ({"decision": "yes", "tool_use_id": "two"}, "no approval of 'two' is needed"),
    ],
)
def test_an_answer_that_makes_no_sense_leaves_the_question_open(tmp_path, answer, message):
    with (
        ScriptedServer([reply(call("bash", command="true", call_id="one")), reply("Ok.")]) as s,
        driven(Program(tmp_path, s)) as other,
    ):
        other.send(type="prompt", text="go")
        other.next("approval_needed")
        other.send(**({"type": "approve", "tool_use_id": "one"} | answer))
        assert other.next("error", "result")["message"].startswith(message)
        other.send(type="approve", tool_use_id="one", decision="yes")
        assert other.next("result")["text"] == "Ok."


def test_an_interruption_stops_the_turn_and_the_conversation_goes_on(tmp_path):
    with (
        Gate() as gate,
        ScriptedServer([reply("Long.", gate=gate, gate_after=1), reply("Next.")]) as server,
    ):
        program = Program(tmp_path, server)
        with driven(program) as other:
            other.send(type="prompt", text="go")
            other.next("stream")
            other.send(type="interrupt")
            assert other.next("result")["outcome"] == "interrupted"
            other.send(type="prompt", text="again")
            assert other.next("result")["text"] == "Next."


def test_an_interruption_right_behind_the_prompt_finds_it_recorded(tmp_path):
    with ScriptedServer([reply("Never read.")]) as server:
        program = Program(tmp_path, server)
        with driven(program) as other:
            other.next("conversation")
            other.send_line('{"type": "prompt", "text": "go"}\n{"type": "interrupt"}')
            assert other.next("result")["outcome"] == "interrupted"
            other.end()

    assert said(events(program.log()), "user") == ["go"]


def test_a_prompt_during_a_turn_is_queued_and_delivered_after_the_tools(tmp_path):
    with Gate() as gate:
        first = reply(call("read", path="here.txt", call_id="r"), gate=gate, gate_after=1)
        with ScriptedServer([first, reply("Both.")]) as server:
            program = Program(tmp_path, server)
            (program.cwd / "here.txt").write_text("x")
            with driven(program) as other:
                other.send(type="prompt", text="read it")
                other.next("stream")
                other.send(type="prompt", text="and then?")
                assert other.next("queued")["text"] == "and then?"
                gate.release()
                assert other.next("result")["text"] == "Both."
                assert other.end() == ([], 0)

    assert said(events(program.log()), "user") == ["read it", "and then?"]


def test_the_end_of_the_input_lets_the_running_turn_end_and_refuses_what_it_asks(tmp_path):
    script = [reply(call("bash", command="touch hit", call_id="one")), reply("Too bad.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        line = json.dumps({"type": "prompt", "text": "go"})
        done = program.run("--input", "stream-json", stdin=line)  # without a newline at its end

    assert (done.code, done.err) == (0, "")
    assert done.objects[-1]["text"] == "Too bad."
    assert "--yes" in results(events(program.log()))["one"]
    assert not (program.cwd / "hit").exists()


def test_a_compaction_is_told_before_and_after(tmp_path):
    long = "word " * 1700
    notes = reply("## Goal\n- notes")
    with ScriptedServer([reply("One."), reply("Two."), *[notes] * 4]) as server:
        program = Program(tmp_path, server, LEFTFOLD_CONTEXT_WINDOW="8000")
        for _ in range(3):
            done = program.run(
                "-p", long, "--output", "stream-json", *(["-c"] * bool(program.logs()))
            )

    told = [each for each in done.objects if each["type"].startswith("compact")]
    assert [each["type"] for each in told] == ["compacting", "compacted"]
    assert told[0]["tokens"] > told[1]["tokens"] > 0


@pytest.mark.parametrize("source", ["file", "nothing", "closed"])
def test_any_kind_of_input_will_do(tmp_path, source):
    with ScriptedServer([reply("Hi.")]) as server:
        program = Program(tmp_path, server)
        given = tmp_path / "lines"
        given.write_text('{"type": "prompt", "text": "go"}\n' if source == "file" else "")
        redirected = "<&-" if source == "closed" else ""
        with (
            given.open() as stdin,
            program.started(
                "--input", "stream-json", stdin=stdin, redirected=redirected
            ) as process,
        ):
            done = finish(process)

    kinds = [told["type"] for told in done.objects]
    assert (done.code, done.err) == (0, "")
    assert kinds[0] == "conversation"
    assert kinds[-1] == ("result" if source == "file" else "conversation")


def test_yes_needs_no_approval(tmp_path):
    with (
        ScriptedServer([reply(call("bash", command="echo hi")), reply("Ok.")]) as server,
        driven(Program(tmp_path, server), "--yes") as other,
    ):
        other.send(type="approve", tool_use_id="x", decision="yes")
        assert other.next("error")["message"] == "with --yes no approval is needed"
        other.send(type="prompt", text="go")
        assert other.next("approval_needed", "result")["text"] == "Ok."


def test_a_turn_that_fails_is_a_result_and_ends_nothing(tmp_path):
    with (
        ScriptedServer([refuse(400, "no such thing"), reply("Better.")]) as server,
        driven(Program(tmp_path, server)) as other,
    ):
        other.send(type="prompt", text="go")
        failed = other.next("result")
        assert failed["outcome"] == "failed"
        assert "no such thing" in failed["error"]["message"]
        other.send(type="prompt", text="again")
        assert other.next("result")["text"] == "Better."


def test_a_turn_that_the_log_cannot_take_is_a_result_too(tmp_path):
    """Whoever waits for a `result` after each prompt must not wait for ever."""
    big = reply(call("bash", command="head -c 20000 /dev/zero | tr '\\0' x"))
    with ScriptedServer([big]) as server:
        program = Program(tmp_path, server)
        prompt = json.dumps({"type": "prompt", "text": "go"}) + "\n"
        done = program.run("--input", "stream-json", "--yes", stdin=prompt, most_bytes=16_000)

    told = [json.loads(line) for line in done.out.splitlines()]
    assert (done.code, done.err) == (0, "")
    [conversation], [result] = of(told, "conversation"), of(told, "result")
    assert of(told, "error") == []
    assert (result["id"], result["outcome"]) == (conversation["id"], "failed")
    assert result["error"]["type"] == "not_recorded"
    assert str(program.log()) in result["error"]["message"]


def test_the_result_of_a_turn_that_had_not_begun_is_not_that_of_the_one_before():
    talk = b.conversation(b.started(), b.user("hello"), b.assistant("Hi."), b.turn_ended("done"))

    assert result_of(talk, 2).outcome == "done"
    assert result_of(talk, talk.version + 1).outcome == "interrupted"


@pytest.mark.parametrize("is_busy", [True, False], ids=["in a turn", "between turns"])
@pytest.mark.parametrize(
    ("number", "code"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)]
)
def test_signals_end_it_cleanly(tmp_path, number, code, is_busy):
    with Gate() as gate, ScriptedServer([reply("Long.", gate=gate, gate_after=1)]) as server:
        program = Program(tmp_path, server)
        with driven(program) as other:
            other.next("conversation")
            if is_busy:
                other.send(type="prompt", text="go")
                other.next("stream")
            other.process.send_signal(number)
            rest = [json.loads(line) for line in other.process.stdout]
            assert other.process.wait(PATIENCE) == code
            assert other.process.stderr.read() == b""

    if is_busy:
        assert of(rest, "result")[0]["outcome"] == "interrupted"
        assert topics(program.log())[-1] == "TurnEnded"


def test_what_waits_for_approval_after_a_crash_is_asked_again(tmp_path):
    script = [reply(call("bash", command="echo hi", call_id="one")), reply("Hi.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        with driven(program) as other:
            other.send(type="prompt", text="go")
            other.next("approval_needed")
            other.process.kill()
        with driven(program, "-c") as other:
            assert other.next("approval_needed")["tool_use_id"] == "one"
            other.send(type="approve", tool_use_id="one", decision="yes")
            assert other.next("result")["text"] == "Hi."


def test_nobody_who_reads_ends_nothing_badly(tmp_path):
    with ScriptedServer([reply("Unheard.")]) as server:
        program = Program(tmp_path, server)
        with driven(program) as other:
            other.next("conversation")
            other.process.stdout.close()
            other.send(type="prompt", text="go")
            until(lambda: program.has_logged(lambda log: log[-1]["topic"] == "TurnEnded"))
            other.process.stdin.close()
            assert other.process.wait(PATIENCE) == 0
            assert other.process.stderr.read() == b""


def test_a_prompt_and_an_input_of_lines_exclude_one_another(tmp_path):
    done = Program(tmp_path).run("--offline", "-p", "x", "--input", "stream-json")

    assert done.code == 2
    assert "exclude one another" in done.complaint


# -- a directory that is gone ----------------------------------------------------------------------


@pytest.fixture
def moved(tmp_path):
    """A program whose only conversation belongs to a directory that is gone, and its server."""
    script = [reply("Hi."), reply(call("bash", command="pwd", call_id="where")), reply("There.")]
    with ScriptedServer(script) as server:
        program = Program(tmp_path, server)
        assert program.run("-p", "hello").code == 0
        program.cwd.rename(tmp_path / "elsewhere")
        gone, program.cwd = program.cwd, tmp_path / "elsewhere"
        yield program, gone


@pytest.mark.parametrize("how", [["-p", "where?"], ["--input", "stream-json"]])
@pytest.mark.parametrize("which", ["-r", "--fork"])
def test_a_script_is_told_that_the_directory_is_gone(moved, how, which):
    program, gone = moved
    before = program.log().read_bytes()

    done = program.run(which, program.id(), *how, "--yes")

    assert done.code == 1
    assert str(gone) in done.complaint
    assert str(program.cwd) in done.complaint
    assert program.log().read_bytes() == before


def test_a_script_says_here_and_goes_on_here(moved):
    program, _ = moved

    assert program.run("-r", program.id(), "--here", "-p", "where?", "--yes").out == "There.\n"
    begun = program.run("-r", program.id(), "--here", "--input", "stream-json").objects[0]
    assert begun["cwd"] == str(program.cwd)  # where tools run, not what the log says
    assert results(events(program.log())) == {"where": f"{program.cwd}\n"}


@pytest.mark.parametrize("choice", ["here", "fork", "cancel", ""])
def test_a_person_is_asked_where_to_go_on(moved, choice):
    program, gone = moved
    conversation = program.id()
    child = program.at_terminal("-r", conversation)
    child.expect_exact(f"The directory of this conversation is gone: {gone}")
    child.expect_exact("[cancel]")
    child.sendline(choice)
    if choice in ("here", "fork"):
        child.expect(r"tools\s+run\s+in\s")
        child.expect_exact("leftfold>")
        child.sendline("q")
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 0
    assert len(program.logs()) == (2 if choice == "fork" else 1)


@pytest.mark.parametrize("choice", ["here", "fork", "cancel", ""])
def test_whoever_resumes_it_from_another_conversation_is_asked_as_well(moved, choice):
    program, gone = moved
    before = program.log().read_bytes()
    child = program.at_terminal()
    child.expect_exact("leftfold>")
    child.sendline(f"/resume {program.id()}")
    child.expect_exact(f"The directory of this conversation is gone: {gone}")
    child.expect_exact("[cancel]:")
    child.send(f"{choice}\r")
    if choice in ("here", "fork"):
        child.expect(r"tools\s+run\s+in\s")
    else:
        child.expect_exact("Still in the same conversation.")
    child.expect_exact("leftfold>")
    child.send("q\r")
    child.expect(pexpect.EOF)
    child.close()

    assert child.exitstatus == 0
    assert len(program.logs()) == (2 if choice == "fork" else 1)
    assert before in [log.read_bytes() for log in program.logs()]


def test_who_cannot_be_asked_does_not_resume_it(moved):
    program, gone = moved
    before = program.log().read_bytes()

    done = program.run("--offline", stdin=f"/resume {program.id()}\n")

    assert f"the directory of this conversation is gone: {gone}" in done.out.replace("\n", " ")
    assert program.log().read_bytes() == before
