"""What `list`, `stats` and `search` have in common: which conversations they are about."""

import pytest

from app.application import Conversations
from domain.conversation import Conversation
from tests.app.in_process import run
from tests.builders import tool_use

OPUS, SONNET = "claude-opus-4-1", "claude-sonnet-4-5"


@pytest.fixture
def talks(home, tmp_path, monkeypatch):
    """Two conversations here, of two models, and one elsewhere that was put away."""
    (tmp_path / "here").mkdir()
    (tmp_path / "link").symlink_to(tmp_path / "here")
    monkeypatch.chdir(tmp_path / "here")
    found = {}
    with Conversations({"LEFTFOLD_STORE": str(home / "conversations")}) as conversations:
        for name, model, cwd in (
            ("cheap", SONNET, tmp_path / "here"),
            ("dear", OPUS, tmp_path / "link"),  # as another program may spell it
            ("away", SONNET, tmp_path),
        ):
            talk = conversations.start(
                lambda id_, at, cwd=cwd: Conversation.start(id_, timestamp=at, cwd=str(cwd))
            )
            talk.record(lambda talk, model=model: talk.change_model(model, max_tokens=9))
            talk.record(lambda talk, name=name: talk.append_prompt(f"a {name} question"))
            used = {"input_tokens": 100_000, "output_tokens": 10}
            call = tool_use("t1", "bash" if name == "dear" else "read", command=f"pytest {name}")
            talk.record(
                lambda talk, call=call, used=used: talk.append_answer(
                    [call], stop_reason="tool_use", usage=used
                )
            )
            talk.record(
                lambda talk, name=name: talk.append_tool_result("t1", "x", is_error=name == "dear")
            )
            found[name] = talk.id
        found["fork"] = conversations.fork(found["dear"])
        talk = conversations.open(found["fork"])
        talk.record(lambda talk: talk.rename("fork"))
        talk.record(lambda talk: talk.label(4, "first try"))
        conversations.open(found["away"]).record(lambda talk: talk.archive(archived=True))
    return found


def titles(command, *arguments):
    """The conversations that a command is about, by their names."""
    names = {"a cheap question": "cheap", "a dear question": "dear", "a away question": "away"}
    return {
        names.get(row["title"], row["title"]) for row in run(command, "--json", *arguments).objects
    }


@pytest.mark.parametrize(
    ("arguments", "found"),
    [
        ([], {"cheap", "dear", "fork"}),
        (["--all"], {"cheap", "dear", "fork"}),
        (["--all", "--archived"], {"cheap", "dear", "fork", "away"}),
        (["--dir", "../link/"], {"cheap", "dear", "fork"}),
        (["--dir", "..", "--archived"], {"away"}),
        (["--model", "OPUS"], {"dear", "fork"}),
        (["--model", "gpt"], set()),
        (["--cost", "1"], {"dear"}),
        (["--search", "Cheap"], {"cheap"}),
        (["--text", "PYTEST d"], {"dear", "fork"}),
        (["--tool", "bash"], {"dear", "fork"}),
        (["--tool", "bash", "--text", "x", "--kind", "tool_result", "--failed"], {"dear", "fork"}),
        (["--kind", "note"], set()),
        (["--since", "1h"], {"cheap", "dear", "fork"}),
        (["--until", "1h"], set()),
        (["--since", "2020-01-01", "--until", "2021-01-01T10:00"], set()),
    ],
)
def test_the_options_choose(talks, arguments, found):
    assert titles("list", *arguments) == found


def test_search_takes_the_same_options(talks):
    def ids(*arguments):
        return {row["id"] for row in run("search", "--json", "question", *arguments).objects}

    everything = {str(id_) for id_ in talks.values()}
    assert ids("--all") == everything
    assert ids("--dir", "..") == {str(talks["away"])}
    assert ids("--all", "--model", "opus", "--cost", "1") == {str(talks["dear"])}
    assert ids("--all", "--since", "1d") == everything
    assert ids("--all", "--until", "1d") == set()


def test_a_row_says_what_was_spent_and_where_it_is_from(talks):
    rows = {row["title"]: row for row in run("list", "--json").objects}
    dear, fork = rows["a dear question"], rows["fork"]

    assert dear["tokens"] == {"input_tokens": 100_000, "output_tokens": 10}
    assert dear["cost"] == pytest.approx(1.50075)
    assert (dear["messages"], dear["model"], dear["source_id"]) == (3, OPUS, None)
    assert (fork["tokens"], fork["cost"], fork["source_id"]) == ({}, None, str(talks["dear"]))
    assert fork["labels"] == ["first try"]
    lines = run("list", "--long").out.decode()
    assert f"3 messages · {OPUS} · 100,010 tokens · $1.5008" in lines
    assert f"a fork of {talks['dear']} · @first try" in lines
    assert "(archived) a away question" in run("list", "--all", "--archived").out.decode()


@pytest.mark.parametrize(
    ("arguments", "complaint"),
    [
        (["--since", "yesterday"], "'yesterday' is no time"),
        (["--until", "999999w"], "is no time"),
        (["--all", "--dir", "."], "exclude one another"),
        (["--text", ""], "nothing to look for"),
        (["--cost", "-1"], "-1"),
    ],
)
def test_what_makes_no_sense_is_said(talks, arguments, complaint):
    ended = run("list", *arguments)

    assert ended.code == 2
    assert complaint in ended.complaint
