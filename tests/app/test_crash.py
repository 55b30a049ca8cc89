"""kill -9 at any moment of a turn, and start again: nothing that was acknowledged is lost.

Cases A1, A2, A3, G1, G2, G3.
"""

import asyncio
import os
import signal
from contextlib import contextmanager, suppress

import pytest

from app.application import Conversations
from app.verification import verify
from domain.calls import NEVER_STARTED, OUTCOME_UNKNOWN
from tests.app.doubles import STOPPED, Desk
from tests.app.programs import (
    Program,
    events,
    finish,
    is_running,
    messages,
    results,
    said,
    topics,
    until,
)
from tests.server import Gate, ScriptedServer, call, reply

SLEEP = "echo $$ > {0}.pid; echo {0} >> ran; sleep 600"


def sleeper(name):
    """A call of a tool that runs until it is killed, and leaves a trace each time it runs."""
    return call("bash", command=SLEEP.format(name), call_id=name)


def pids(program):
    written = [path.read_text().strip() for path in program.cwd.glob("*.pid")]
    return [int(pid) for pid in written if pid]


def ran(program):
    trace = program.cwd / "ran"
    return sorted(trace.read_text().split()) if trace.exists() else []


@contextmanager
def killed_turn(program, moment, number=signal.SIGKILL):
    """Run a turn up to the *moment*, and kill it; give the log's lines just before."""
    with program.started("-p", "the first prompt", "--yes") as process:
        until(moment, process)
        before = program.log().read_bytes()
        process.send_signal(number)
        process.communicate(timeout=60)
        assert process.returncode == -number
    try:
        yield before
    finally:
        kill_orphans(program)


def kill_orphans(program):
    for pid in pids(program):
        with suppress(ProcessLookupError, PermissionError):
            os.killpg(pid, signal.SIGKILL)


def resume_twice(program, server, before):
    """Start again, say something, and again; return the events after the first time.

    Checks what holds after every crash: all that was in the log is there, byte for byte; the
    prompts are answered; a second resume has nothing more to repair.
    """
    server.add(reply("Here I am."), reply("Still here."))
    first = program.run("-c", "-p", "the second prompt")
    assert (first.code, first.out) == (0, "Here I am.\n")
    repaired = events(program.log())
    with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
        desk = Desk(conversations, server, program.cwd, at_hand=conversations.open(program.id()))
        outcome = asyncio.run(desk.say("the third prompt"))
        report = verify(conversations, desk.at_hand.id)

    assert outcome == "done"
    assert report.findings == ()
    assert program.log().read_bytes().startswith(before)
    found = events(program.log())
    assert found[: len(repaired)] == repaired
    assert [event["topic"] for event in found[len(repaired) :]] == [
        "MessageAppended",
        "MessageAppended",
        "TurnEnded",
    ]
    assert said(found, "user") == ["the first prompt", "the second prompt", "the third prompt"]
    assert server.prefix_violations == []
    return repaired


def test_killed_before_the_answer(tmp_path):
    gate = Gate()
    with ScriptedServer([reply("Never heard.", gate=gate)]) as server:
        program = Program(tmp_path, server)
        with killed_turn(program, gate.arrived.is_set) as before:
            gate.release()
            found = resume_twice(program, server, before)

    assert said(found, "assistant") == ["Here I am."]


def test_killed_in_mid_stream(tmp_path):
    gate = Gate()
    long = "An answer of several pieces, of which only some will ever arrive at the other end."
    with ScriptedServer([reply(long, gate=gate, gate_after=5)]) as server:
        program = Program(tmp_path, server)
        with killed_turn(program, gate.arrived.is_set) as before:
            gate.release()
            found = resume_twice(program, server, before)

    assert said(found, "assistant") == ["Here I am."]


def test_killed_while_a_tool_runs(tmp_path):
    with ScriptedServer([reply(sleeper("one"))]) as server:
        program = Program(tmp_path, server)
        with killed_turn(program, lambda: pids(program)) as before:
            found = resume_twice(program, server, before)

        assert results(found) == {"one": OUTCOME_UNKNOWN}
        assert ran(program) == ["one"]
        sent = server.requests[1].json["messages"][-1]["content"]
        assert [block["type"] for block in sent] == ["tool_result", "text"]


def test_killed_between_two_of_three_results(tmp_path):
    quick = call("bash", command="echo quick >> ran; echo done", call_id="quick")
    with ScriptedServer([reply(quick, sleeper("two"), sleeper("three"))]) as server:
        program = Program(tmp_path, server)

        def between():
            recorded = program.has_logged(results)
            return recorded and pids(program)

        with killed_turn(program, between) as before:
            found = resume_twice(program, server, before)

        assert results(found) == {
            "quick": "done\n",
            "two": OUTCOME_UNKNOWN,
            "three": NEVER_STARTED,
        }
        assert ran(program) == ["quick", "two"]
        sent = server.requests[1].json["messages"][-1]["content"]
        answered = [block["tool_use_id"] for block in sent if block["type"] == "tool_result"]
        assert answered == ["quick", "two", "three"]


@pytest.mark.parametrize(
    ("number", "code"),
    [(signal.SIGTERM, 143), (signal.SIGHUP, 129), (signal.SIGINT, 130)],
    ids=lambda value: getattr(value, "name", ""),
)
def test_a_signal_ends_the_turn_and_its_tools_and_records_all_of_it(tmp_path, number, code):
    quick = call("bash", command="echo quick", call_id="quick")
    with ScriptedServer([reply("Both:", quick, sleeper("slow"))]) as server:
        program = Program(tmp_path, server)
        with program.started("-p", "run them", "--yes", "--output", "json") as process:
            until(lambda: pids(program) and program.has_logged(results), process)
            process.send_signal(number)
            done = finish(process)
        [pid] = pids(program)
        alive = is_running(pid)
        kill_orphans(program)

    assert done.code == code
    assert done.objects[0]["outcome"] == "interrupted"
    assert done.objects[0]["text"] == "Both:"
    assert not alive
    found = events(program.log())
    assert results(found) == {"quick": "quick\n", "slow": STOPPED}
    assert found[-1]["topic"] == "TurnEnded"
    assert found[-1]["state"]["outcome"] == "interrupted"


def test_a_second_ctrl_c_does_not_lose_what_the_first_one_recorded(tmp_path):
    """The tool ignores the polite signals: the turn is being stopped when the second one comes."""
    command = "trap '' TERM INT HUP; echo $$ > stubborn.pid; while :; do sleep 0.05; done"
    with ScriptedServer([reply(call("bash", command=command, call_id="stubborn"))]) as server:
        program = Program(tmp_path, server)
        with program.started("-p", "run it", "--yes") as process:
            until(lambda: pids(program), process)
            process.send_signal(signal.SIGINT)
            process.send_signal(signal.SIGINT)
            done = finish(process)
        [pid] = pids(program)
        until(lambda: not is_running(pid))

    assert done.code == 130
    assert done.err == "leftfold: interrupted\n"
    found = events(program.log())
    assert results(found) == {"stubborn": STOPPED}
    assert topics(program.log())[-1] == "TurnEnded"


def test_a_prompt_that_was_interrupted_in_mid_answer_keeps_what_was_said(tmp_path):
    gate = Gate()
    long = "The first piece of an answer, and then more pieces of it than anybody waits for."
    with ScriptedServer([reply(long, gate=gate, gate_after=6)]) as server:
        program = Program(tmp_path, server)
        with program.started("-p", "talk", "--output", "stream-json") as process:
            read = [process.stdout.readline() for _ in range(5)]
            process.send_signal(signal.SIGINT)
            done = finish(process)
        gate.release()

    assert done.code == 130
    assert b"text_delta" in read[-1]
    [partial] = said(events(program.log()), "assistant")
    assert partial
    assert long.startswith(partial)
    assert messages(events(program.log()))[-1]["role"] == "assistant"
