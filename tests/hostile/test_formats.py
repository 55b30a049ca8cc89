"""Logs that are not ours to go on with: of a newer format, a newer event, or of something else."""

import json

import pytest
from click.testing import CliRunner
from eventsourcing.persistence import PersistenceError

from app.application import Conversations
from app.cli import leftfold
from app.damage import damage
from app.errors import AppError, NewerEventsError
from infrastructure.errors import NewerFormatError
from tests.app.programs import append_line
from tests.benchmarks import workload
from tests.builders import ID

STAMP = {"timestamp": "2026-01-02T03:04:05Z"}


@pytest.fixture
def app(home):
    with Conversations({"LEFTFOLD_STORE": str(home / "conversations")}) as application:
        yield application


@pytest.fixture
def log(home):
    folder = home / "conversations"
    return folder / f"{workload.fill(folder, 6)}.jsonl"


def given_header(log, header):
    _, _, rest = log.read_bytes().partition(b"\n")
    log.write_bytes(header + b"\n" + rest)


def try_everything(app, conversation_id):
    """Change a conversation in each way that there is; return what was complained of."""
    complaints = []
    for change in (
        lambda: app.open(conversation_id).record(lambda talk: talk.rename("Renamed")),
        lambda: app.open(conversation_id).record(lambda talk: talk.append_prompt("hello")),
        lambda: saved(app, app.get(conversation_id)),
        lambda: app.fork(conversation_id),
        lambda: app.keep_snapshot(app.get(conversation_id)),
    ):
        try:
            change()
        except (PersistenceError, AppError) as error:
            complaints.append(error)
    return complaints


def saved(app, talk):
    """Change and save it as programs do that keep no conversation at hand."""
    talk.append_note("mine", "noted", visible=False)
    app.save(talk)


@pytest.mark.parametrize(
    "name", ["leftfold/1.1", "leftfold/2", "leftfold/1-beta", "leftfold/01", "leftfold/1000"]
)
def test_nothing_is_added_to_a_log_of_a_format_that_is_not_known_here(app, log, name):
    given_header(log, json.dumps({"format": name, "id": log.stem}).encode())
    before = log.read_bytes()

    complaints = try_everything(app, log_id(log))

    assert all(isinstance(error, NewerFormatError) for error in complaints)
    assert len(complaints) == 5
    assert name in str(complaints[0])
    assert log.read_bytes() == before
    for command in ("verify", "list --all", "stats --all"):
        assert name in CliRunner().invoke(leftfold, command.split()).output
    assert CliRunner().invoke(leftfold, ["verify"]).exit_code == 1


@pytest.mark.parametrize(
    ("topic", "state"),
    [
        ("ApprovalDecided", {"tool_use_id": "a", "tool": "bash", "decision": "always"}),
        ("Renamed", {"name": "in other words"}),
        ("MessageAppended", {"parent": 2, "message": {"role": "user", "content": "hi"}}),
        ("Renamed", {"something": "else"}),
    ],
)
def test_nothing_is_added_where_a_newer_version_changed_what_an_event_says(app, log, topic, state):
    append_line(log, 100, topic, {**STAMP, **state, "class_version": 2})
    before = log.read_bytes()

    complaints = try_everything(app, log_id(log))

    assert [type(error) for error in complaints] == [NewerEventsError] * 4
    assert log.read_bytes() == before
    assert list(log.parent.glob("*.jsonl")) == [log]
    talk = app.get(log_id(log))
    assert (talk.name, len(talk.entries), talk.allowed) == (None, 6, [])
    assert "of version 2" in talk.unrecognised[-1].reason


def test_an_event_that_is_merely_unknown_is_no_damage_and_stops_nothing(app, log):
    last = app.get(log_id(log)).version
    append_line(log, last + 1, "Danced", {**STAMP, "how": "well"})

    assert damage(app, log_id(log)) == ()
    assert try_everything(app, log_id(log)) == []
    assert app.get(log_id(log)).name == "Renamed"


@pytest.mark.parametrize(
    "content",
    [
        b"",
        b"\n",
        json.dumps({"format": "leftfold/1", "id": str(ID)}).encode(),
        json.dumps({"format": "leftfold/1", "id": str(ID)}).encode() + b"\n\n",
        json.dumps({"format": "pi/3", "id": str(ID)}).encode() + b"\n",
        b'{"type":"session","version":3,"id":"x"}\n{"type":"message","id":"y"}\n',
        b"\0" * 4096,
        b"not JSON at all\n",
    ],
)
def test_a_log_without_an_event_is_never_ok(app, home, content):
    path = home / "conversations" / f"{ID}.jsonl"
    path.parent.mkdir(parents=True)
    path.write_bytes(content)

    complaints = try_everything(app, ID)
    verified = CliRunner().invoke(leftfold, ["verify"])

    assert len(complaints) == 5
    assert path.read_bytes() == content
    assert verified.exit_code == 1
    assert "ok" not in verified.output.split()
    assert "no event" in verified.output
    assert str(ID) in CliRunner().invoke(leftfold, ["list", "--all"]).output


def test_the_header_of_another_format_is_named(app, log):
    given_header(log, b'{"format":"pi/3","id":"x"}')

    assert "another format, 'pi/3'" in damage(app, log_id(log))[0].what
    assert CliRunner().invoke(leftfold, ["verify"]).exit_code == 1


def log_id(log):
    return type(ID)(log.stem)
