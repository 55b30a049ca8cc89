import asyncio
import os
import signal
import subprocess
import sys
import time
from dataclasses import replace
from pathlib import Path

import pytest

from infrastructure.tools import process
from infrastructure.tools.bash import Bash
from infrastructure.tools.output import StoppedError
from infrastructure.tools.process import environment

from .conftest import BOUND


def is_running(number):
    """Zombies, which a container without an init never reaps, do not run."""
    try:
        return Path(f"/proc/{number}/stat").read_text().rpartition(")")[2].split()[0] != "Z"
    except (FileNotFoundError, ProcessLookupError):
        if Path("/proc").is_dir():
            return False
    try:
        os.kill(number, 0)
    except ProcessLookupError:
        return False
    return True


def processes_in(path):
    return [int(line) for line in path.read_text().split()]


def wait_until(is_true):
    deadline = time.monotonic() + BOUND
    while not is_true():
        assert time.monotonic() < deadline
        time.sleep(0.01)


def test_output_is_stdout_and_stderr_in_order(call):
    output = call("bash", command="echo one; echo two >&2; echo three")

    assert (output.content, output.is_error) == ("one\ntwo\nthree\n", False)


@pytest.mark.parametrize(
    ("command", "content", "is_error"),
    [
        ("true", "(no output)", False),
        ("false", "(no output)\nexit code 1", True),
        ("echo", "(only blank output)", False),
        ("printf hi", "hi", False),
        ("echo hi; exit 3", "hi\nexit code 3", True),
        ("kill -SEGV $$", "(no output)\nkilled by SIGSEGV", True),
        ("sh -c 'kill -9 $$'; exit $?", "exit code 137 (SIGKILL)", True),
        ("exit 255", "(no output)\nexit code 255", True),
    ],
)
def test_how_a_command_ended_is_told(call, command, content, is_error):
    output = call("bash", command=command)

    assert output.content.endswith(content)
    assert output.is_error is is_error


@pytest.mark.parametrize(
    "command",
    [
        "sleep 60 & echo $! > pid; echo done",
        "setsid sh -c 'echo $$ > pid; exec sleep 60' & until [ -s pid ]; do :; done; echo done",
        "(while :; do echo x; sleep 1; done) & echo $! > pid; echo done",
        "(while :; do echo x; done) & echo $! > pid; echo done",
    ],
)
def test_a_background_child_does_not_hold_the_turn_open_and_lives_on(call, context, reap, command):
    output = call("bash", command=command)

    child = processes_in(context.cwd / "pid")[0]
    reap(child)
    assert "done" in output.content
    assert "still running in the background" in output.content
    assert not output.is_error
    assert is_running(child)


def test_a_server_in_the_background_survives_its_next_line_of_output(call, context, reap):
    call(
        "bash",
        command="(trap 'exit 9' PIPE; until [ -e go ]; do sleep 0.01; done; echo line; echo x > said;"
        " sleep 60) & echo $! > pid",
    )
    child = processes_in(context.cwd / "pid")[0]
    reap(child)

    (context.cwd / "go").touch()

    wait_until((context.cwd / "said").exists)
    assert is_running(child)


def test_a_server_that_logs_to_a_file_is_named_by_its_group(call, context):
    output = call("bash", command="sleep 60 > log 2>&1 & echo $! > pid; echo up")

    group = os.getpgid(processes_in(context.cwd / "pid")[0])
    assert f"kill -- -{group}" in output.content
    assert call("bash", command=f"kill -- -{group}").is_error is False
    wait_until(lambda: not is_running(processes_in(context.cwd / "pid")[0]))


def test_what_a_process_substitution_says_at_the_end_is_not_lost(call):
    assert call("bash", command="echo hi > >(cat)").content == "hi\n"


STUBBORN = (
    "(trap '' TERM; echo $BASHPID >> pids; sleep 300 & echo $! >> pids; wait; sleep 300) &"
    "echo $$ >> pids; "
    "timeout 300 sh -c 'echo $$ >> pids; exec sleep 300' & "
    "until [ $(wc -l < pids) = 4 ]; do :; done; echo before; touch ready; sleep 300"
)


def test_a_timeout_kills_the_grandchildren_too(call, context):
    """Also one that ignores SIGTERM, and one in a group of its own, as `timeout` makes it."""
    output = call("bash", command=STUBBORN, timeout=2)

    assert output.is_error
    assert output.content.startswith("before\ntimed out after 2 s")
    processes = processes_in(context.cwd / "pids")
    assert len(processes) == 4
    wait_until(lambda: not any(map(is_running, processes)))


def test_a_command_that_ends_well_when_its_time_is_over_has_failed_all_the_same(call):
    command = "trap 'echo bye; exit 0' TERM; sleep 60 & wait"
    output = call("bash", command=command, timeout=0.5)

    assert "timed out after 0.5 s" in output.content
    assert output.is_error


def test_a_timeout_returns_although_an_escaped_child_holds_the_pipe(call, context, reap):
    command = "setsid sh -c 'echo $$ > pid; exec sleep 60' & echo out; sleep 60"

    output = call("bash", command=command, timeout=1)

    reap(processes_in(context.cwd / "pid")[0])
    assert output.content.startswith("out\ntimed out after 1 s")


def test_cancellation_kills_the_group_and_is_raised(context):
    async def scenario():
        running = asyncio.create_task(Bash().run({"command": STUBBORN}, context))
        await asyncio.to_thread(wait_until, (context.cwd / "ready").exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running
        assert running.cancelled()

    asyncio.run(asyncio.wait_for(scenario(), BOUND))

    processes = processes_in(context.cwd / "pids")
    wait_until(lambda: not any(map(is_running, processes)))


def test_what_a_stopped_command_had_printed_is_not_lost(context):
    async def scenario():
        seen = asyncio.Event()

        def listen(text):  # bash writes line by line
            if "two" in text:
                seen.set()

        listening = replace(context, on_output=listen)
        command = "printf 'one\\ntwo'; sleep 600"
        running = asyncio.create_task(Bash().run({"command": command}, listening))
        await seen.wait()
        running.cancel()
        with pytest.raises(StoppedError) as stopped:
            await running
        return stopped.value.output

    output = asyncio.run(asyncio.wait_for(scenario(), BOUND))

    assert output.content == "one\ntwo\ninterrupted; the command and its children were killed"
    assert output.is_error


def test_a_second_cancellation_kills_without_grace(context):
    async def scenario():
        running = asyncio.create_task(Bash().run({"command": STUBBORN}, context))
        await asyncio.to_thread(wait_until, (context.cwd / "ready").exists)
        running.cancel()
        await asyncio.sleep(0.05)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(asyncio.wait_for(scenario(), BOUND))

    processes = processes_in(context.cwd / "pids")
    wait_until(lambda: not any(map(is_running, processes)))


def test_a_polite_program_may_clean_up_on_cancellation(context):
    async def scenario():
        command = "trap 'echo bye > bye; exit' TERM; touch ready; while :; do sleep 0.01; done"
        running = asyncio.create_task(Bash().run({"command": command}, context))
        await asyncio.to_thread(wait_until, (context.cwd / "ready").exists)
        running.cancel()
        with pytest.raises(asyncio.CancelledError):
            await running

    asyncio.run(asyncio.wait_for(scenario(), BOUND))

    assert (context.cwd / "bye").read_text() == "bye\n"


def test_reading_input_meets_its_end(call):
    assert call("bash", command='read x; echo "$? [$x]"').content == "1 []\n"


def test_there_is_no_terminal_to_ask_at(call):
    output = call("bash", command="python3 -c \"open('/dev/tty').read()\"")

    assert output.is_error
    assert "/dev/tty" in output.content


def test_git_never_waits_for_an_editor(call, monkeypatch):
    monkeypatch.setenv("GIT_EDITOR", "sleep 300")
    monkeypatch.setenv("HOME", "/nonexistent")

    output = call(
        "bash",
        command="git init -q . && git config user.name a && git config user.email a@b && "
        "echo x > f && git add f && git commit -q -m one && git commit --amend && git log",
    )

    assert not output.is_error
    assert "one" in output.content


def test_our_keys_are_not_in_a_childs_environment(call, monkeypatch):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN", "CIPHER_KEY"):
        monkeypatch.setenv(name, "secret-of-ours")
    monkeypatch.setenv("PROJECT_KEY", "theirs")

    output = call("bash", command="env")

    assert "secret-of-ours" not in output.content
    assert "PROJECT_KEY=theirs" in output.content
    assert "TERM=dumb" in output.content
    assert environment()["GIT_PAGER"] == "cat"


def test_bytes_that_are_not_utf8_become_replacement_characters(call):
    assert call("bash", command=r"printf 'a\377b\n'").content == "a\ufffdb\n"


def test_what_only_moves_the_cursor_or_colours_is_not_told(call):
    output = call("bash", command=r"printf 'a\0b\033[1m\342\200\250c\r\n'")

    assert output.content == "ab\u2028c\n"


def test_a_lone_surrogate_in_a_command_is_replaced(call):
    assert call("bash", command="echo '\ud83d'").content == "\ufffd\n"


def test_a_command_with_nul_is_an_error(call):
    assert call("bash", command="echo a\0b").is_error


def test_a_missing_working_directory_is_an_error(call, context):
    context.cwd.rmdir()

    output = call("bash", command="true")

    assert output.is_error
    assert str(context.cwd) in output.content


def test_a_command_too_long_for_the_system_is_an_error(call):
    output = call("bash", command="true " + "x" * 10_000_000)

    assert output.is_error
    assert "too long" in output.content


def test_output_arrives_while_the_command_runs(context):
    heard = []

    def hear(text):
        heard.append(text)
        (context.cwd / "heard").touch()

    command = "echo first; until [ -e heard ]; do sleep 0.01; done; printf '\\303'; printf '\\251'"
    running = Bash().run({"command": command}, replace(context, on_output=hear))
    output = asyncio.run(asyncio.wait_for(running, BOUND))

    assert output.content == "first\né"
    assert "".join(heard) == output.content


def test_several_commands_run_side_by_side(context):
    async def scenario():
        one = "touch a; until [ -e b ]; do sleep 0.01; done; echo one"
        two = "touch b; until [ -e a ]; do sleep 0.01; done; echo two"
        return await asyncio.gather(*(Bash().run({"command": c}, context) for c in (one, two)))

    outputs = asyncio.run(asyncio.wait_for(scenario(), BOUND))

    assert [output.content for output in outputs] == ["one\n", "two\n"]


def test_no_descriptor_is_left_open(call):
    before = len(list(Path("/dev/fd").iterdir()))

    call("bash", command="echo x")
    call("bash", command="sleep 60", timeout=0.1)
    call("bash", command="seq 1 5000")
    call("bash", command="nonsense\0")

    assert len(list(Path("/dev/fd").iterdir())) == before


def test_a_stopped_group_is_killed(call):
    output = call("bash", command="echo x; kill -STOP $$", timeout=1)

    assert output.content.startswith("x\ntimed out")


@pytest.mark.skipif(not Path("/bin/ps").exists(), reason="needs ps")
@pytest.mark.parametrize("platform", ["linux", "darwin"])
def test_processes_are_found_with_and_without_proc(monkeypatch, platform):
    if not sys.platform.startswith("linux"):
        platform = sys.platform
    monkeypatch.setattr(process.sys, "platform", platform)

    found = {number: (group, state[:1]) for number, group, state in process._processes()}

    group, state = found[os.getpid()]
    assert group == os.getpgrp()
    assert state in (b"R", b"S", b"D")


def test_names_are_utf8_in_every_locale(tmp_path):
    """In a process of its own: Python settles the encoding of names when it starts."""
    script = (
        "import asyncio, pathlib, sys\n"
        "from infrastructure.tools import TOOLS, ToolContext\n"
        "context = ToolContext(pathlib.Path(sys.argv[1]), pathlib.Path(sys.argv[1], 'o'), 't')\n"
        "bash, read, write, *_ = TOOLS\n"
        "for tool, arguments in [\n"
        "    (write, {'path': '\\xe9', 'content': '\\xe9'}),\n"
        "    (read, {'path': '\\xe9'}),\n"
        "    (bash, {'command': 'cat \\xe9'}),\n"
        "]:\n"
        "    assert '\\xe9' in asyncio.run(tool.run(arguments, context)).content\n"
    )
    plain = {"LC_ALL": "C", "PYTHONUTF8": "0", "PYTHONCOERCECLOCALE": "0"}

    subprocess.run(
        [sys.executable, "-c", script, str(tmp_path)],
        env=os.environ | plain,
        cwd=Path(process.__file__).parents[2],
        check=True,
        timeout=BOUND,
    )

    assert (tmp_path / "é").read_bytes() == "é".encode()


def test_a_signal_has_its_name(call):
    assert signal.Signals.SIGTERM.name in call("bash", command="kill $$").content
