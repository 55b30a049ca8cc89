"""Hooks: each event at least once, in order, under one id, whatever is killed and whatever fails."""

import json
import os
import shutil
import signal
from itertools import count, groupby
from pathlib import Path
from threading import Thread

import pytest

from app.application import Conversations
from app.hook_settings import Hook
from app.hooks import command
from app.hooks import runner as module
from app.hooks.command import HookCommand
from app.hooks.runner import HookRunner
from infrastructure.hook_positions import HookPositions
from infrastructure.jsonl import disk
from tests.app.programs import is_running, until
from tests.app.test_outputs import begin
from tests.levels import at_level


@pytest.fixture(autouse=True)
def _impatient(monkeypatch):
    monkeypatch.setattr(module, "PAUSES", (0.0, 0.0))


@pytest.fixture
def place(tmp_path, monkeypatch):
    monkeypatch.setenv("LEFTFOLD_HOME", str(tmp_path / "home"))
    return tmp_path


def opened(place, home="home"):
    return Conversations({"LEFTFOLD_STORE": str(place / "store")}, home=place / home)


def started(conversations, place):
    """A conversation that was begun here, open."""
    from domain.conversation import Conversation

    def start(id_, when):
        return Conversation.start(
            id_, timestamp=when, cwd=str(place), program="test", seals=conversations.seals
        )

    return conversations.start(start)


def renamed(open_conversation, *names):
    for name in names:
        open_conversation.record(lambda talk, name=name: talk.rename(name))


def hook(place, *, text='echo "$LEFTFOLD_EVENT_ID" >> "$OUT"', **more):
    return Hook(
        name=more.pop("name", "one"),
        events=more.pop("events", ("Renamed",)),
        command=f"OUT={place}/out; {text}",
        **more,
    )


def runner(conversations, place, wanted, report=lambda _: None):
    found = HookRunner(wanted, conversations, place / "hooks", place / "store", report)
    found.register()
    return found


def to_the_end(conversations, place, wanted, **more):
    ran = []
    found = runner(conversations, place, wanted, ran.append)
    found.finish()
    return found.work(), ran


def told(place):
    """What the hook was told: the ids, in order."""
    path = place / "out"
    return path.read_text().split() if path.exists() else []


def once(ids):
    return [id_ for id_, _ in groupby(ids)]


# -- killed at every step --------------------------------------------------------------------------


class Killer:
    """Kills this process at the step *at*, counted over what a runner does that can be seen."""

    STEPS = ((HookPositions, "advance"), (command, "run_shell"), (disk, "try_lock"),
             (HookPositions, "place"), (HookCommand, "write_down"))  # fmt: skip

    def __init__(self, at):
        self.left = at

    def __enter__(self):
        for owner, name in self.STEPS:
            setattr(owner, name, self.stepping(getattr(owner, name)))

    def __exit__(self, *_):
        os._exit(0)  # pragma: no cover

    def stepping(self, function):
        def step(*arguments, **more):
            self.pass_one()
            result = function(*arguments, **more)
            self.pass_one()
            return result

        return step

    def pass_one(self):
        self.left -= 1
        if self.left == 0:
            os.kill(os.getpid(), signal.SIGKILL)


def in_child(work, at):
    """Do *work* in a process of its own that is killed at a step; whether it came to its end."""
    pid = os.fork()
    if pid == 0:
        try:
            with Killer(at):
                work()
        finally:
            os._exit(1)
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0


def test_killed_at_every_step_no_event_is_skipped_and_a_repetition_has_the_same_id(place):
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        runner(conversations, place, hook(place))
        awaited = []
        for at in count(1, at_level(quick=3, whole=1)):
            names = [f"{at} {number}" for number in range(3)]
            first = new.conversation.version + 1
            renamed(new, *names)
            awaited += [f"{new.id}@{version}" for version in range(first, first + 3)]

            def work():
                with opened(place) as theirs:
                    to_the_end(theirs, place, hook(place))

            is_whole = in_child(work, at)
            state, _ = to_the_end(conversations, place, hook(place))
            assert state == "done"
            assert once(told(place)) == awaited
            if is_whole:
                break

    assert at > 10
    assert len(told(place)) > len(awaited), "nothing was ever repeated: nothing was tried"


def test_a_command_that_outlives_its_runner_is_waited_for(place):
    """Else an event and its repetition would run at once, and the next one beside them."""
    os.mkfifo(place / "fifo")
    outliving = hook(
        place,
        text='echo start >> "$OUT"; [ -e "$OUT.second" ] || { touch "$OUT.second"; '
        'kill -9 $PPID; cat "${OUT%out}fifo"; }; echo end >> "$OUT"',
    )
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        runner(conversations, place, outliving)
        renamed(new, "one")

        def work():
            with opened(place) as theirs:
                to_the_end(theirs, place, outliving)

        assert not in_child(work, 10_000)
        lock = disk.open_append(place / "hooks" / "one.running")
        assert not disk.try_lock(lock)  # the command holds it, and the next runner waits for that
        (place / "fifo").write_text("go on\n")
        to_the_end(conversations, place, outliving)
        disk.close(lock)

    assert told(place) == ["start", "end", "start", "end"]


# -- what fails ------------------------------------------------------------------------------------


def test_a_hook_that_fails_is_tried_again_then_parked_and_goes_on_where_it_was(place):
    fails = hook(place, text='echo no way; [ -e "$OUT.ok" ] && echo "$LEFTFOLD_EVENT_ID" >> "$OUT"')
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        runner(conversations, place, fails)
        renamed(new, "one", "two")
        state, ran = to_the_end(conversations, place, fails)
        assert state == "parked"
        assert [(each.outcome, each.attempt) for each in ran] == [
            ("failed", 1),
            ("failed", 2),
            ("parked", 3),
        ]
        assert {each.event_id for each in ran} == {f"{new.id}@3"}
        assert "no way" in ran[-1].message
        assert "exit code 1" in ran[-1].message
        assert to_the_end(conversations, place, fails) == ("parked", [])

        (place / "out.ok").touch()
        runner(conversations, place, fails).positions.try_again("one")
        assert to_the_end(conversations, place, fails)[0] == "done"

    assert told(place) == [f"{new.id}@3", f"{new.id}@4"]


def test_one_hook_that_fails_holds_up_no_other(place):
    bad, good = hook(place, name="bad", text="false"), hook(place, name="good")
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        for each in (bad, good):
            runner(conversations, place, each)
        renamed(new, "one")
        assert to_the_end(conversations, place, bad)[0] == "parked"
        assert to_the_end(conversations, place, good)[0] == "done"

    assert told(place) == [f"{new.id}@3"]


def test_a_hook_that_hangs_is_killed_with_its_children(place, monkeypatch):
    monkeypatch.setattr(module, "PAUSES", ())
    hangs = hook(place, text='sleep 1000 & echo $! > "$OUT"; wait', timeout=0.2)
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        runner(conversations, place, hangs)
        renamed(new, "one")
        state, ran = to_the_end(conversations, place, hangs)

    assert state == "parked"
    assert "timed out after 0.2 s" in ran[-1].message
    (child,) = told(place)
    assert not is_running(int(child))


def test_what_a_hook_prints_is_kept_up_to_a_size(place):
    floods = hook(place, text="yes 'too much' | head -c 3000000")
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        found = runner(conversations, place, floods)
        renamed(new, *map(str, range(30)))
        assert to_the_end(conversations, place, floods)[0] == "done"

    kept = [path.stat().st_size for path in (place / "hooks").glob("one.log*")]
    assert found.command.log_path.stat().st_size > 0
    assert sum(kept) <= 2 * command.LOG_BYTES
    assert len(list((place / "hooks" / "outputs").iterdir())) == 1


# -- which events ----------------------------------------------------------------------------------


def test_a_hook_gets_the_event_and_its_call_on_its_standard_input(place):
    wanted = hook(place, events=("MessageAppended",), tools=("bash",), text='cat >> "$OUT"')
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        runner(conversations, place, wanted)
        new.record(lambda talk: talk.append_prompt("go"))
        block = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls"}}
        other = block | {"id": "t2", "name": "read"}
        new.record(
            lambda talk: talk.append_answer([block, other], stop_reason="tool_use", model="m")
        )
        new.record(lambda talk: talk.append_tool_result("t2", "not this"))
        new.record(lambda talk: talk.append_tool_result("t1", "a.txt"))
        assert to_the_end(conversations, place, wanted)[0] == "done"

    (line,) = (place / "out").read_text().splitlines()
    found = json.loads(line)
    assert found["call"] == {"id": "t1", "name": "bash", "input": {"command": "ls"}}
    assert found["state"]["message"]["content"][0]["content"] == "a.txt"
    assert (found["hook"], found["attempt"]) == ("one", 1)
    assert found["event_id"] == f"{new.id}@{found['version']}"


def test_a_new_hook_begins_at_the_end_and_since_goes_over_the_past(place):
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "past", "and past")
        found = runner(conversations, place, hook(place))
        renamed(new, "new")
        assert found.behind() == 1
        to_the_end(conversations, place, hook(place))
        assert told(place) == [f"{new.id}@4"]
        assert found.begin_at(1)
        to_the_end(conversations, place, hook(place))
        assert told(place)[1:] == [f"{new.id}@{version}" for version in (2, 3, 4)]
        assert found.begin_at(10**9)
        renamed(new, "after that")
        to_the_end(conversations, place, hook(place))
        assert told(place)[4:] == [f"{new.id}@5"]


def test_an_order_that_is_built_again_repeats_nothing_and_skips_nothing(place):
    with opened(place) as conversations:
        one, two = started(conversations, place), started(conversations, place)
        renamed(two, "past")
        renamed(one, "past")
        runner(conversations, place, hook(place))
        renamed(two, "a")
        to_the_end(conversations, place, hook(place))
        renamed(one, "b")
        shutil.rmtree(place / "store" / ".index")
        renamed(two, "c")
        to_the_end(conversations, place, hook(place))

    assert sorted(told(place)) == sorted([f"{two.id}@3", f"{one.id}@3", f"{two.id}@4"])


def test_what_a_fork_copies_is_not_told_again(place):
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        runner(conversations, place, hook(place))
        copy = conversations.open(conversations.fork(new.id))
        renamed(copy, "in the copy")
        to_the_end(conversations, place, hook(place))

    assert told(place) == [f"{copy.id}@4"]


@pytest.mark.parametrize("foreign", [True, False])
def test_a_conversation_from_elsewhere_runs_nothing_unless_that_is_wanted(place, foreign):
    with opened(place) as conversations:
        begin(place / "store", "something before")
        wanted = hook(place, foreign=foreign, text='echo "$PWD" >> "$OUT"')
        runner(conversations, place, wanted)
        with opened(place, home="another") as elsewhere:
            theirs = started(elsewhere, place)
            renamed(theirs, "theirs")
        to_the_end(conversations, place, wanted)

    assert told(place) == [str(Path.home())] * foreign  # its directory is not believed


def test_only_one_runs_a_hook_at_a_time(place, monkeypatch):
    with opened(place) as conversations:
        new = started(conversations, place)
        renamed(new, "before")
        found = runner(conversations, place, hook(place))
        renamed(new, "one")
        with found._turn() as is_ours:
            assert is_ours
            assert found.is_running()
            assert not found.begin_at(1)
            second = runner(conversations, place, hook(place))
            second.finish()
            looks = []
            monkeypatch.setattr(module, "_BETWEEN_LOOKS", 0.001)
            monkeypatch.setattr(second, "behind", lambda: looks.append(1) or 1)
            working = Thread(target=second.work)
            working.start()
            until(lambda: len(looks) > 3)
            assert told(place) == []
        working.join()

    assert told(place) == [f"{new.id}@3"]
