"""A write never destroys what the person wrote since (case R12), whoever is asked or not."""

import asyncio

import pytest

from app.ports import Approval
from tests.app.doubles import Desk, Judge
from tests.server import ScriptedServer, call, reply

pytestmark = pytest.mark.parametrize("conversations", ["infrastructure.jsonl"], indirect=True)

READ = call("read", path="notes.txt")
WRITE = call("write", path="notes.txt", content="mine\n")
EDIT = call("edit", path="notes.txt", edits=[{"old_text": "one", "new_text": "ONE"}])


@pytest.fixture
def notes(tmp_path):
    path = tmp_path / "notes.txt"
    path.write_text("one\n")
    return path


def say(desk, *prompts):
    asyncio.run(desk.say(*prompts))
    return [
        result["content"]
        for message in desk.talk.messages()
        for result in message.content.tool_results
    ]


def append(path, text="theirs\n"):
    with path.open("a") as file:
        file.write(text)


class Asked(Judge):
    """A person who says yes; while the question stands, *meanwhile* happens."""

    def __init__(self, meanwhile=lambda: None):
        super().__init__()
        self.meanwhile = meanwhile

    async def decide(self, proposal):
        self.asked.append(proposal.summary)
        self.meanwhile()
        return Approval("yes")


@pytest.mark.parametrize("approver", [Judge, Asked], ids=["--yes", "asked"])
def test_what_was_written_after_the_read_is_not_lost(conversations, notes, approver):
    with ScriptedServer([reply(READ), reply("Read.")]) as server:
        first = Desk(conversations, server, notes.parent)
        say(first, "read it")
    append(notes)
    with ScriptedServer([reply(WRITE), reply("Hm.")]) as server:
        desk = Desk(conversations, server, notes.parent, at_hand=first.at_hand, approver=approver())
        output = say(desk, "write it")[-1]

    assert notes.read_text() == "one\ntheirs\n"
    assert "has changed since it was read" in output
    assert desk.approver.asked == [] or approver is Judge


@pytest.mark.parametrize("change", [WRITE, EDIT], ids=["write", "edit"])
def test_what_was_written_while_the_question_stood_is_not_lost(conversations, notes, change):
    with ScriptedServer([reply(READ), reply(change), reply("Hm.")]) as server:
        desk = Desk(conversations, server, notes.parent, approver=Asked(lambda: append(notes)))
        output = say(desk, "change it")[-1]

    assert notes.read_text() == "one\ntheirs\n"
    assert "has changed since" in output


def test_a_file_that_came_while_the_question_stood_is_not_lost(conversations, notes):
    notes.unlink()
    with ScriptedServer([reply(WRITE), reply("Hm.")]) as server:
        desk = Desk(conversations, server, notes.parent, approver=Asked(lambda: append(notes)))
        output = say(desk, "write it")[-1]

    assert notes.read_text() == "theirs\n"
    assert "has changed since" in output


def test_a_link_that_was_turned_while_the_question_stood_leads_nowhere_else(conversations, notes):
    other = notes.with_name("other.txt")
    other.write_text("one\n")
    link = notes.with_name("link")
    link.symlink_to(notes)

    def turn():
        link.unlink()
        link.symlink_to(other)

    change = call("write", path="link", content="mine\n")
    with ScriptedServer([reply(change), reply("Hm.")]) as server:
        desk = Desk(conversations, server, notes.parent, approver=Asked(turn))
        output = say(desk, "write it")[-1]

    assert (notes.read_text(), other.read_text()) == ("one\n", "one\n")
    assert "has changed since" in output


def test_a_file_that_was_never_read_is_replaced_only_if_a_person_was_shown_it(conversations, notes):
    with ScriptedServer([reply(WRITE), reply("Hm.")]) as server:
        desk = Desk(conversations, server, notes.parent)
        output = say(desk, "write it")[-1]
    assert notes.read_text() == "one\n"
    assert "Read it first" in output

    with ScriptedServer([reply(WRITE), reply("Done.")]) as server:
        say(Desk(conversations, server, notes.parent, approver=Asked()), "write it")
    assert notes.read_text() == "mine\n"


def test_always_shows_nobody_anything(conversations, notes):
    first = call("write", path="new.txt", content="")
    with ScriptedServer([reply(first), reply(WRITE), reply("Hm.")]) as server:
        judge = Judge(Approval("always"))
        output = say(Desk(conversations, server, notes.parent, approver=judge), "write")[-1]

    assert notes.read_text() == "one\n"
    assert "Read it first" in output


@pytest.mark.parametrize("meddles", [False, True])
def test_what_was_read_is_known_after_a_resume(conversations, notes, meddles):
    with ScriptedServer([reply(READ), reply("Read.")]) as server:
        first = Desk(conversations, server, notes.parent)
        say(first, "read it")
    if meddles:
        append(notes)
    with ScriptedServer([reply(WRITE), reply("Hm.")]) as server:
        at_hand = conversations.open(first.talk.id)
        output = say(Desk(conversations, server, notes.parent, at_hand=at_hand), "write it")[-1]

    assert notes.read_text() == ("one\ntheirs\n" if meddles else "mine\n")
    assert ("has changed since it was read" in output) == meddles


def test_what_another_conversation_wrote_is_not_lost(conversations, notes):
    with ScriptedServer([reply(READ), reply("Read.")]) as server:
        first = Desk(conversations, server, notes.parent)
        say(first, "read it")
    with ScriptedServer([reply(READ, EDIT), reply("Done.")]) as server:
        say(Desk(conversations, server, notes.parent), "edit it")
    with ScriptedServer([reply(WRITE), reply("Hm.")]) as server:
        output = say(Desk(conversations, server, notes.parent, at_hand=first.at_hand), "write")[-1]

    assert notes.read_text() == "ONE\n"
    assert "has changed since it was read" in output


def test_what_a_command_changed_is_read_again(conversations, notes):
    sort = call("bash", command="echo more >> notes.txt")
    script = [reply(READ, sort, WRITE, READ, WRITE), reply("Done.")]
    with ScriptedServer(script) as server:
        outputs = say(Desk(conversations, server, notes.parent), "go")

    assert "has changed since it was read" in outputs[2]
    assert outputs[3:] == ["one\nmore\n", "Wrote 1 line (5 bytes) to notes.txt"]
    assert notes.read_text() == "mine\n"


def test_an_edit_beside_what_the_person_wrote_does_not_make_it_known(conversations, notes):
    with ScriptedServer([reply(READ), reply("Read.")]) as server:
        first = Desk(conversations, server, notes.parent)
        say(first, "read it")
    append(notes)
    with ScriptedServer([reply(EDIT, WRITE), reply("Hm.")]) as server:
        say(Desk(conversations, server, notes.parent, at_hand=first.at_hand), "go")

    assert notes.read_text() == "ONE\ntheirs\n"


def test_what_the_model_wrote_it_knows(conversations, notes):
    again = call("write", path="notes.txt", content="again\n")
    with ScriptedServer([reply(READ, EDIT, WRITE, again), reply("Done.")]) as server:
        outputs = say(Desk(conversations, server, notes.parent), "go")

    assert notes.read_text() == "again\n"
    assert all(output.startswith("Wrote") for output in outputs[2:])


def test_nobody_is_asked_about_a_call_that_cannot_work(conversations, notes):
    wrong = [
        call("edit", path="notes.txt", edits=[{"old_text": "two", "new_text": "x"}]),
        call("edit", path="missing.txt", edits=[{"old_text": "two", "new_text": "x"}]),
        call("write", path="notes.txt"),
        call("write", path="", content="x"),
        call("bash", command="ls\0"),
        call("bash"),
        call("nothing", path="x"),
    ]
    with ScriptedServer([reply(*wrong), reply("Hm.")]) as server:
        desk = Desk(conversations, server, notes.parent, approver=Asked())
        outputs = say(desk, "go")

    assert desk.approver.asked == []
    assert len(outputs) == len(wrong)
    assert "not found" in outputs[0]
    assert "does not exist" in outputs[1]


def test_calls_that_act_run_alone_and_in_the_order_of_the_answer(conversations, tmp_path):
    script = [
        reply(
            call("bash", command="sleep 0.1; echo built > out.txt"),
            call("bash", command="cat out.txt"),
            call("write", path="a.txt", content="old\n"),
            call("edit", path="a.txt", edits=[{"old_text": "old", "new_text": "new"}]),
            call("read", path="a.txt"),
        ),
        reply("Done."),
    ]
    with ScriptedServer(script) as server:
        outputs = say(Desk(conversations, server, tmp_path), "go")

    assert outputs[1] == "built\n"
    assert outputs[4] == "new\n"
