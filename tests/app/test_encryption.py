"""With a key of the library's cipher: what stands where, and what a wrong key says."""

from uuid import UUID

import pytest
from eventsourcing.cipher import AESCipher

from tests.app.programs import Program
from tests.server import ScriptedServer, reply

KEY, OTHER = AESCipher.create_key(32), AESCipher.create_key(32)
TOPIC = "eventsourcing.cipher:AESCipher"
SAID = "a word that nobody else says"


@pytest.fixture
def program(tmp_path):
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        found = Program(tmp_path, server, CIPHER_TOPIC=TOPIC, CIPHER_KEY=KEY)
        assert found.run("-p", SAID).code == 0
        yield found


def test_nothing_that_was_said_stands_in_the_store_and_all_commands_read_it(program):
    assert SAID in program.run("show", program.log().stem).out
    assert SAID in program.run("list", "--all").out
    assert program.log().stem in program.run("search", "nobody else says").out
    assert program.run("-p", "again", "-c").out == "Two.\n"
    assert program.run("verify").code == 0
    for path in program.home.rglob("*"):
        if path.is_file():
            assert SAID.encode() not in path.read_bytes(), path


@pytest.mark.parametrize("wrong", [{"CIPHER_KEY": OTHER}, {"CIPHER_KEY": "", "CIPHER_TOPIC": ""}])
def test_a_wrong_key_is_one_line_and_changes_nothing(program, wrong):
    before, id_ = program.log().read_bytes(), UUID(program.log().stem)
    for arguments in (["show", id_], ["-r", id_, "-p", "more"], ["log", "--all", "--json"]):
        done = program.run(*arguments, environment=wrong)
        if arguments[0] == "log":  # it has events, which cannot be read
            assert all("unreadable" in line for line in done.objects)
        else:
            assert done.code == 1
            assert "CIPHER_KEY" in done.complaint

    assert program.log().read_bytes() == before


@pytest.mark.parametrize("key", ["x", ""])
def test_a_key_that_is_none_is_named(program, key):
    done = program.run("list", environment={"CIPHER_KEY": key})

    assert done.code != 0
    assert "CIPHER_KEY" in done.complaint
