"""``leftfold search``: the line, the object, the options, and words that mean nothing special."""

import pytest

from app.application import Conversations
from domain.conversation import Conversation
from tests.app.in_process import run
from tests.builders import text, tool_use


@pytest.fixture
def talk(home, tmp_path, monkeypatch):
    """A conversation here in which a tool failed, and another one elsewhere."""
    monkeypatch.chdir(tmp_path)
    with Conversations({"LEFTFOLD_STORE": str(home / "conversations")}) as conversations:
        begin(conversations, "/elsewhere", "why does pytest fail?")
        talk = begin(conversations, str(tmp_path), 'Does "pytest" work, NOT* tox?')
        calls = [text("Let me see."), tool_use("t1", "bash", command="pytest -x")]
        talk.record(lambda talk: talk.append_answer(calls, stop_reason="tool_use"))
        output = "=== FAILURES ===\nE  Café \x1b[2J is closed in pytest\n" + "x" * 9_000
        talk.record(lambda talk: talk.append_tool_result("t1", output, is_error=True))
    return talk


def begin(conversations, cwd, prompt):
    talk = conversations.start(lambda id_, at: Conversation.start(id_, timestamp=at, cwd=cwd))
    talk.record(lambda talk: talk.append_prompt(prompt))
    return talk


def found(*arguments):
    return [row["version"] for row in run("search", "--json", *arguments).objects]


def test_a_hit_is_a_line_that_names_the_entry_and_shows_what_is_around_it(talk):
    ended = run("search", "cafe")

    [line] = ended.out.decode().splitlines()
    reference, day, _, kind, tool, *_ = line.split()
    assert reference == f"{talk.id}@4"
    assert (kind, tool) == ("tool_result", "bash")
    assert line.endswith("E Café ␛[2J is closed in pytest")
    assert day in run("list").out.decode()
    assert "Café" in run("show", reference).out.decode()


def test_as_json_it_says_what_the_text_is_of(talk):
    [row] = run("search", "cafe", "--json").objects

    assert row.pop("timestamp").endswith("Z")
    assert row == {
        "id": str(talk.id),
        "version": 4,
        "kind": "tool_result",
        "tool": "bash",
        "failed": True,
        "text": "E Café \x1b[2J is closed in pytest",
    }


def test_the_options_choose_among_the_hits(talk):
    assert found("pytest") == [4, 3, 2]
    assert len(found("pytest", "--all")) == 4
    assert found("pytest", "--limit", "2") == [4, 3]
    assert found("pytest", "--kind", "user") == [2]
    assert found("pytest", "--tool", "bash") == [4, 3]
    assert found("pytest", "--failed") == [4]
    assert found("pytest", "--tool", "read") == []
    assert found("pytest", "closed") == [4]


@pytest.mark.parametrize(
    ("wanted", "versions"),
    [('"pytest"', [2]), ("NOT*", [2]), ("NOT", [2]), ("-x", [3]), ("text:pytest", []), ("^", [])],
)
def test_what_sqlite_would_take_for_an_operator_is_text(talk, wanted, versions):
    assert found("--", wanted) == versions


def test_that_there_is_more_or_nothing_is_said(talk):
    more = run("search", "pytest", "--limit", "1")
    assert (more.code, len(more.out.splitlines())) == (0, 1)
    assert "--limit" in more.complaint
    nothing = run("search", "quinces")
    assert (nothing.code, nothing.out) == (0, b"")
    assert "--all" in nothing.complaint


@pytest.mark.parametrize("wanted", ["", " \n", "\0"])
def test_nothing_cannot_be_looked_for(talk, wanted):
    ended = run("search", wanted)

    assert (ended.code, ended.out) == (2, b"")
    assert "nothing to look for" in ended.complaint


def test_where_there_is_no_store_nothing_is_found_and_none_is_made(home):
    ended = run("search", "--all", "anything")

    assert (ended.code, ended.out) == (0, b"")
    assert not (home / "conversations").exists()
