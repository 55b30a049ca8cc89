"""The program over a real PostgreSQL: each command, and what PostgreSQL alone can do wrong."""

import json
import os
from concurrent.futures import ThreadPoolExecutor
from uuid import UUID, uuid4

import pytest

from app import moving
from app.application import Conversations
from app.leases import lease
from domain.conversation import Conversation
from infrastructure.errors import LeaseHeldError
from tests import databases
from tests.app.in_process import run


def begin(conversation_id, timestamp):
    return Conversation.start(conversation_id, timestamp=timestamp, cwd="/work")


@pytest.fixture
def environment(postgres):
    return databases.postgres_environment(postgres, databases.new_schema(postgres))


@pytest.fixture
def over_postgres(environment, monkeypatch, tmp_path):
    """This process's own environment, as a person sets it; the directory is an empty one."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    work = tmp_path / "work"
    work.mkdir()
    monkeypatch.chdir(work)


def turn(*arguments):
    ended = run("--offline", *arguments, "--output", "json")
    assert ended.code == 0, ended.err
    [result] = ended.objects
    return result


def test_every_command_works(over_postgres):
    first = turn("-p", "run: echo one", "--yes", "--name", "a shop")
    id_ = str(first["id"])
    again = turn("-r", id_[-8:], "-p", "what did I ask you?")
    assert again["id"] == id_

    [row] = run("list", "--json").objects
    assert (row["id"], row["title"]) == (id_, "a shop")
    assert "echo one" in run("show", id_).out.decode()
    logged = run("log", id_, "--json").objects
    assert [event["version"] for event in logged] == [*range(1, len(logged) + 1)]
    assert logged[0]["topic"] == "Started"
    verified, *_ = run("verify", "--json").objects
    assert verified["ok"]
    assert verified["requests_proven"] >= 3
    asked = json.loads(run("context", id_, "--json").out)["messages"]
    assert len(asked) == 7  # with a place for the next prompt
    assert "echo one" in run("tree", id_).out.decode()
    assert run("stats", id_, "--json").objects[0]["id"] == id_
    assert run("search", "echo", "one", "--json").objects

    [fork] = run("fork", id_, "--json").objects
    assert run("rename", fork["id"], "the other").code == 0
    assert run("label", f"{fork['id']}@-1", "here").code == 0
    assert run("archive", fork["id"]).code == 0
    [left] = run("list", "--json").objects
    assert left["id"] == id_
    assert turn("-r", fork["id"], "-p", "hello")["id"] == fork["id"]
    assert run("verify").code == 0

    refused = run("delete", id_, "--yes")
    assert refused.code == 1
    assert "no trash" in refused.complaint


def test_an_event_may_be_larger_than_what_a_socket_takes(environment):
    """The library's own save waits for ever."""
    huge = "ten bytes\n" * 400_000
    with Conversations(environment) as conversations:
        opened = conversations.start(begin)
        opened.record(lambda talk: talk.append_prompt(huge))
        read = conversations.get(opened.id)

    assert read.messages()[0].content.text == huge


def test_a_crash_of_the_server_costs_nothing_that_was_recorded(tmp_path):
    cluster = databases.or_skip(databases.Cluster)
    try:
        environment = databases.postgres_environment(cluster.folder, "public")
        with Conversations(environment) as conversations:
            opened = conversations.start(begin)
            for number in range(20):
                opened.record(lambda talk, text=f"prompt {number}": talk.append_prompt(text))
                if number in (5, 12):
                    cluster.restart()
            read = conversations.get(opened.id)
    finally:
        cluster.close()

    assert [message.content.text for message in read.messages()] == [
        f"prompt {n}" for n in range(20)
    ]


def test_a_server_that_is_not_there_is_said_in_a_line_or_two(over_postgres, monkeypatch):
    monkeypatch.setenv("POSTGRES_HOST", "/nowhere")
    assert "3.00 sec" in run("list").complaint
    monkeypatch.delenv("POSTGRES_DBNAME")
    assert "POSTGRES_DBNAME" in run("list").complaint


def test_one_program_holds_a_conversation_until_it_ends(over_postgres, environment):
    id_ = turn("-p", "hello")["id"]
    with Conversations(environment) as holder:
        lease(holder, UUID(id_))
        told = run("--offline", "-r", id_, "-p", "hi")
        assert told.code == 1
        assert f"conversation {id_} is open in another program" in told.complaint
        assert f"pid {os.getpid()}" in told.complaint
        assert f"--fork {id_}" in told.complaint

    assert turn("-r", id_, "-p", "hi")["id"] == id_


def test_nothing_is_copied_over_what_is_open_in_a_database(environment, home):
    here = Conversations({"LEFTFOLD_STORE": str(home / "conversations")})
    with here, Conversations(environment) as holder, Conversations(environment) as there:
        mine = here.start(begin)
        mine.record(lambda conversation: conversation.append_prompt("hello"))
        held = lease(holder, mine.id)
        with pytest.raises(LeaseHeldError):
            moving.copy(here, there, mine.id, fork=False)
        assert list(there.ids()) == []

        held.release()
        assert moving.copy(here, there, mine.id, fork=False).outcome == "copied"


def test_a_lease_dies_with_its_session(postgres, environment):
    id_ = uuid4()
    with Conversations(environment) as one, Conversations(environment) as other:
        lease(one, id_)
        with pytest.raises(LeaseHeldError):
            lease(other, id_)
        with databases.connected(postgres) as connection:
            ended = connection.execute(
                "SELECT pg_terminate_backend(pid, 10000) FROM pg_locks"
                " WHERE locktype = 'advisory' AND pid <> pg_backend_pid() AND pid IN"
                " (SELECT pid FROM pg_stat_activity WHERE application_name LIKE %s)",
                (f"leftfold {os.getpid()} %",),
            ).fetchall()
        assert ended == [(True,)]
        lease(other, id_)


def test_programs_may_start_at_once(environment):
    """The library makes its function anew at each start, which PostgreSQL refuses two at once."""
    with Conversations(environment):
        pass

    def start(_):
        with Conversations(environment) as conversations:
            return list(conversations.ids())

    with ThreadPoolExecutor(8) as threads:
        assert list(threads.map(start, range(40))) == [[]] * 40
