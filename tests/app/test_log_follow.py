"""`log --follow` shows each event once, whenever it is recorded."""

import itertools
import json
import termios

import pexpect
import pytest

from app.application import Conversations
from app.commands.log import _from_here, events_as_they_come
from tests.app.in_process import run
from tests.app.programs import PATIENCE, Program
from tests.app.test_outputs import begin


@pytest.mark.parametrize("moment", ["before the first", "between", "after the last"])
def test_what_is_recorded_while_the_log_is_being_read_is_followed(tmp_path, monkeypatch, moment):
    """The gap between reading what is there and being told of what comes loses nothing."""
    store = tmp_path / "store"
    conversation_id = begin(store, "hello")
    with (
        Conversations({"LEFTFOLD_STORE": str(store)}) as ours,
        Conversations({"LEFTFOLD_STORE": str(store)}) as others,
    ):
        at_hand = others.open(conversation_id)
        known = at_hand.conversation.version
        read = ours.events_of

        def append():
            at_hand.record(lambda talk: talk.rename("meanwhile"))

        def reading(*arguments, **more):
            events = list(read(*arguments, **more))
            if moment == "before the first":
                append()
            yield events[0]
            if moment == "between":
                append()
            yield from events[1:]
            if moment == "after the last":
                append()

        monkeypatch.setattr(ours, "events_of", reading)
        following = _from_here(ours)
        coming = events_as_they_come(ours, conversation_id, 1, following)
        found = list(itertools.islice(coming, known))
        assert [event.originator_version for event in found] == list(range(1, known + 1))
        assert next(coming).name == "meanwhile"
        at_hand.record(lambda talk: talk.rename("and later"))
        last = next(coming)
        assert (last.originator_version, last.name) == (known + 2, "and later")
        coming.close()


def test_all_events_stream_with_their_positions_until_nobody_reads(tmp_path):
    """A closed pipe is noticed at once, also while nothing happens."""
    program = Program(tmp_path)
    begin(program.store, "hello")
    second = begin(program.store, "and hello")
    with (
        Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations,
        program.started("log", "--all", "--follow", "--json", "--since", "-2") as follow,
    ):
        end = conversations.recorder.max_notification_id()
        lines = [json.loads(follow.stdout.readline()) for _ in "12"]
        conversations.open(second).record(lambda talk: talk.rename("meanwhile"))
        lines.append(json.loads(follow.stdout.readline()))
        follow.stdout.close()
        code = follow.wait(timeout=PATIENCE)
        complaints = follow.stderr.read()

    assert [line["position"] for line in lines] == [end - 1, end, end + 1]
    assert {line["id"] for line in lines} == {str(second)}
    assert lines[2]["state"]["name"] == "meanwhile"
    assert (code, complaints) == (0, b"")


@pytest.mark.parametrize("which", ["one", "all"])
def test_q_ends_it_at_a_terminal_which_is_as_it_was(tmp_path, which):
    program = Program(tmp_path)
    id_ = begin(program.store, "hello")
    child = program.at_terminal("log", "--follow", str(id_) if which == "one" else "--all")
    child.expect("q ends this")
    child.expect("hello")
    assert not termios.tcgetattr(child.fileno())[3] & termios.ECHO
    child.send("xq")
    child.expect(pexpect.EOF)
    after = termios.tcgetattr(child.fileno())[3]
    child.close()

    assert child.exitstatus == 0
    assert after & termios.ECHO
    assert after & termios.ICANON


@pytest.mark.parametrize(
    "arguments", [(), ("1234", "--all"), ("--all", "--since", "0")], ids=["none", "both", "nought"]
)
def test_what_is_to_be_shown_has_to_be_said(tmp_path, arguments):
    done = run("--store", tmp_path / "none", "log", *arguments)

    assert done.code == 2
    assert "--all" in done.err or "--since" in done.err


def test_a_negative_since_counts_from_the_end(tmp_path):
    store = tmp_path / "store"
    id_ = begin(store, "hello")
    whole = run("--store", store, "log", id_, "--json").objects

    assert run("--store", store, "log", id_, "--json", "--since", "-2").objects == whole[-2:]
    assert run("--store", store, "log", id_, "--json", "--since", "-999").objects == whole
    ordered = run("--store", store, "log", "--all", "--json", "--since", "-2").objects
    places = [{"position": line.pop("position"), "id": line.pop("id")} for line in ordered]
    assert ordered == whole[-2:]
    assert places == [
        {"position": number, "id": str(id_)} for number in (len(whole) - 1, len(whole))
    ]
