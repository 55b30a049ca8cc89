"""Damage is said by each command that opens a log, in the same words, and with the next step."""

import pytest
from click.testing import CliRunner

from app.application import Conversations
from app.cli import leftfold
from app.damage import damage, quickly_read
from app.damage import sentence as sentence_of
from app.outputs import Finding
from infrastructure.mapper import LOCKED
from tests import builders as b
from tests.app.doubles import begin as in_work
from tests.app.programs import Program
from tests.app.test_bad_input import begin

COMMANDS = (["show"], ["log"], ["tree"], ["context"], ["stats"])


def sentence(conversation_id, first, more=""):
    return (
        f"leftfold: conversation {conversation_id} is damaged: {first}{more}; `leftfold verify "
        f"{conversation_id}` says where, `leftfold recover {conversation_id}` saves what can be "
        "saved\n"
    )


def in_line(number, change):
    """Return what changes line *number* of a log by *change*."""

    def hurt(data):
        lines = data.split(b"\n")
        lines[number - 1] = change(lines[number - 1])
        return b"\n".join(lines)

    return hurt


DAMAGES = {
    "a word changed by hand": (
        in_line(5, lambda line: line.replace(b"hello", b"hallo")),
        "line 5: the checksum disagrees: this line was changed after it was written",
    ),
    "no header": (in_line(1, lambda _: b"?"), "line 1: damaged header"),
    "half a line": (in_line(5, lambda line: line[:30]), "line 5: "),
    "a header of another format": (
        in_line(1, lambda _: b'{"format":"other/1","id":"x"}'), "line 1: the header of another format, 'other/1'",
    ),
    "a lost line": (lambda data: data.replace(data.split(b"\n")[4] + b"\n", b""), "line 5: its parent 4 is"),
    "a torn tail": (lambda data: data + b'{"v":7,"to', "line 7: torn tail"),
}  # fmt: skip


@pytest.fixture
def program(tmp_path):
    return Program(tmp_path)


@pytest.mark.parametrize("kind", DAMAGES)
def test_what_verify_reports_is_said_by_every_command(program, kind):
    hurt, first = DAMAGES[kind]
    other, damaged = begin(program, "fine"), begin(program, "hello", "again")
    log = program.store / f"{damaged}.jsonl"
    log.write_bytes(hurt(log.read_bytes()))

    def run(*arguments):
        return CliRunner().invoke(leftfold, ["--store", str(program.store), *map(str, arguments)])

    assert run("verify", damaged).exit_code == 1
    said = run("show", damaged).stderr
    assert said.startswith(sentence(damaged, first).partition(first)[0] + first)
    assert said == sentence(damaged, said.partition("damaged: ")[2].partition("; `")[0])
    for command in COMMANDS:
        assert run(*command, damaged).stderr == said, command
    everything = (run("list", "--all"), run("stats", "--all"))
    assert [done.stderr for done in everything] == [said, said]
    assert all(str(other) in done.stdout for done in everything)


def test_a_list_looks_at_no_more_logs_than_it_has_time_for(home):
    """Each counts 128 KiB at least, and 8 MiB are looked at in all; a large one is passed over."""
    with Conversations({"LEFTFOLD_DURABILITY": "os"}) as application:
        ids = []
        for _ in range(70):
            at_hand = application.start(in_work())
            at_hand.record(lambda talk: talk.append_prompt("hello"))
            ids.append(at_hand.id)
        with (application.store.path / f"{ids[1]}.jsonl").open("ab") as log:
            log.write(b"\n" * (9 << 20))

        assert quickly_read(application, ids) == {ids[0], *ids[2:65]}


def test_a_turn_says_it_on_stderr_and_goes_on(program):
    damaged = begin(program, "hello")
    log = program.store / f"{damaged}.jsonl"
    log.write_bytes(log.read_bytes().replace(b"hello", b"hallo"))

    done = program.run("--offline", "-c", "-p", "what did I ask you?")
    assert (done.code, "hallo" in done.out) == (0, True)
    assert f"leftfold: conversation {damaged} is damaged: line 5: the checks" in done.err


def test_a_log_that_is_whole_says_nothing_nor_does_one_of_which_an_event_is_merely_unknown(program):
    begin(program, "hello")
    log = program.log()
    with log.open("a") as file:
        file.write('{"v":5,"topic":"FromTheFuture","state":{"timestamp":"2026-12-02T00:00:00Z"}}\n')

    assert [program.run(name).err for name in ("list", "stats")] == ["", ""]
    assert program.run("show", program.id()).err == ""


def test_one_log_that_cannot_be_read_does_not_cost_the_others_their_answer(program):
    ids = [begin(program, f"number {number}") for number in range(3)]
    (program.store / f"{ids[0]}.jsonl").write_bytes(b"\0" * 4096)
    newer = program.store / f"{ids[1]}.jsonl"
    newer.write_bytes(newer.read_bytes().replace(b"leftfold/1", b"leftfold/9"))

    for name in ("list", "stats"):
        done = program.run(name)
        assert (done.code, str(ids[2]) in done.out) == (0, True)
        assert f"conversation {ids[0]} is damaged: no event of it can be read" in done.err
        assert "leftfold/9" in done.err


# -- the sentence ----------------------------------------------------------------------------------


def test_a_sentence_names_the_first_place_and_how_many_more_there_are():
    somewhere = Finding(None, None, 3, "of no place", "damage")
    first = Finding(7, 900, 4, "b\x1b[2Jd\n" + "x" * 999, "damage")
    said = sentence_of(b.ID, [somewhere, first, Finding(1_234, 9, 9, "more", "damage")])

    assert f"conversation {b.ID} is damaged: line 7: b␛[2Jd xx" in said
    assert "xxx… (and 2 more); `leftfold verify" in said
    assert "\n" not in said
    assert len(said) < 500
    assert "is damaged: of no place; `" in sentence_of(b.ID, [somewhere])
    assert sentence_of(b.ID, []) is None


def test_what_is_locked_is_not_called_damaged_unless_something_else_is():
    locked = [Finding(n, n, n, LOCKED, "event") for n in (2, 3)]

    assert "CIPHER_KEY" in sentence_of(b.ID, locked)
    assert "damaged" not in sentence_of(b.ID, locked)
    assert "damaged: line 2: " in sentence_of(
        b.ID, [*locked, Finding(4, 4, None, "half a line", "damage")]
    )


def test_a_log_that_takes_too_long_is_not_looked_at(program):
    conversation_id = begin(program, "hello")
    log = program.store / f"{conversation_id}.jsonl"
    log.write_bytes(log.read_bytes().replace(b"hello", b"hallo"))
    size = log.stat().st_size

    with Conversations({"LEFTFOLD_STORE": str(program.store)}) as conversations:
        [found] = damage(conversations, conversation_id, most_bytes=size)
        assert (found.kind, found.line) == ("checksum", 5)
        assert damage(conversations, conversation_id) == (found,)
        assert damage(conversations, conversation_id, most_bytes=size - 1) == ()
