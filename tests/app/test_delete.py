"""Deleting is moving to the trash, and never happens by itself."""

import stat

import pytest

from infrastructure.errors import LeaseHeldError, LogMissingError
from infrastructure.jsonl import trash
from infrastructure.jsonl.locks import Lease
from tests.app.programs import Program
from tests.server import ScriptedServer, reply


@pytest.fixture
def program(tmp_path):
    with ScriptedServer([reply("One."), reply("Two."), reply("Three.")]) as server:
        yield Program(tmp_path, server)


def test_delete_moves_the_log_to_the_trash_and_says_where(program):
    program.run("-p", "hello")
    log, content = program.log(), program.log().read_bytes()
    done = program.run("delete", program.id(), "--yes")

    trash = program.store / ".trash"
    assert (done.code, done.out) == (0, f"{trash / log.name}\n")
    assert program.logs() == []
    assert (trash / log.name).read_bytes() == content
    assert stat.S_IMODE(trash.stat().st_mode) == 0o700
    assert program.run("list").out == ""
    assert program.run("-p", "next").code == 0


def test_what_is_moved_back_is_there_again(program):
    program.run("-p", "hello")
    log, name = program.log(), program.id()
    program.run("delete", name, "--yes")
    (program.store / ".trash" / log.name).rename(log)

    assert program.run("verify").code == 0
    assert "hello" in program.run("show", name).out


def test_delete_asks_and_nobody_there_means_no(program):
    program.run("-p", "hello")
    done = program.run("delete", program.id())

    assert done.code == 2
    assert "--yes" in done.complaint
    assert program.log().exists()


def test_what_somebody_has_open_is_not_deleted(program):
    program.run("-p", "hello")
    with Lease.acquire(program.store, program.id()):
        done = program.run("delete", program.id(), "--yes")

    assert done.code == 1
    assert program.log().exists()


def test_the_store_refuses_what_is_open_or_not_there(tmp_path):
    from uuid import uuid4

    from infrastructure.jsonl.store import Store

    store, conversation = Store(tmp_path), uuid4()
    with pytest.raises(LogMissingError):
        trash.put(store, conversation)
    with Lease.acquire(tmp_path, conversation), pytest.raises(LeaseHeldError):
        trash.put(store, conversation)
