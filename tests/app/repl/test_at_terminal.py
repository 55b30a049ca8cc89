"""What a person does at the terminal while things happen, with the real program."""

import pytest

from tests.app.doubles import STOPPED
from tests.app.programs import events, results, said
from tests.app.repl.terminal import (
    ALT_UP,
    CTRL_C,
    CTRL_D,
    DOWN,
    ENTER,
    ESC,
    PROMPT,
    UP,
    Person,
    ended_as,
    has,
)
from tests.server import Gate, ScriptedServer, call, refuse, reply

QUESTION = r"\[r\]eason "


def bash(command):
    return reply(call("bash", command=command))


# -- approval ----------------------------------------------------------------------------------


def test_a_question_survives_being_killed_and_is_asked_again(tmp_path):
    with ScriptedServer([bash("echo $((6*7000))"), reply("Well done.")]) as server:
        person = Person(tmp_path, server)
        person.says("go")
        person.waits(QUESTION)
        person.killed()
        person.starts("-c")
        person.waits("The last turn was waiting for your approval")
        person.shows(r"Allow bash\?\n  \$ echo \$\(\(6\*7000\)\)\n\[y\]es", r"\[r\]eason *$")
        person.presses("y")
        person.waits("42000", "Well done.")
        person.says("q")

        assert person.ended()[0] == 0
    assert said(events(person.log()), "user") == ["go"]
    assert list(results(events(person.log())).values()) == ["42000\n"]


def test_yes_always_and_this_command(tmp_path):
    steps = [bash(f"echo {word}") for word in ("one", "two", "two", "three", "four")]
    with ScriptedServer([*steps, reply("Well done.")]) as server:
        person = Person(tmp_path, server)
        person.says("go")
        for word, answer in (("one", "y"), ("two", "c"), ("three", "a")):
            person.waits(rf"Allow .*echo {word}", QUESTION)
            person.presses(answer)
        person.waits("Well done.")
        person.says("q")
        person.ended()

    assert list(results(events(person.log())).values()) == [
        "one\n", "two\n", "two\n", "three\n", "four\n",
    ]  # fmt: skip


def test_a_question_stands_alone_on_the_screen_with_nothing_unseen_in_it(tmp_path):
    """The second call of an answer is asked about while the first one's screen is still at work."""
    hidden = "echo a\u202eb\u200b;" + " " * 200 + "rm x"
    two = reply(call("bash", command="echo $((6*7000))"), call("bash", command=hidden))
    with ScriptedServer([two, reply("As you wish.")]) as server:
        person = Person(tmp_path, server, size=(30, 60))
        person.says("go")
        person.shows(r"\[r\]eason *$")
        person.presses("y")
        person.shows("42000")
        shown = person.shows(r"echo a.*\n\[y\]es / \[a\]lways / [^»]*\[r\]eason *$")
        person.resizes(30, 40)
        person.presses("n")
        person.presses("\r")
        person.waits("As you wish.")
        person.says("q")
        person.ended()

    assert r"  $ echo a\u202eb\u200b;⟨200 blanks⟩rm x" in shown
    decisions = [e["state"] for e in events(person.log()) if e["topic"] == "ApprovalDecided"]
    assert [state["decision"] for state in decisions] == ["yes", "no"]


@pytest.mark.parametrize("term", ["xterm-256color", "dumb"])
def test_what_is_no_answer_runs_nothing(tmp_path, term):
    """On a dumb terminal, prompt_toolkit's prompt took whatever was typed for a yes."""
    with ScriptedServer([bash(f"touch ran{n}") for n in range(4)]) as server:
        person = Person(tmp_path, server, TERM=term)
        person.says("go")
        for keys in ("n", "no\r"):
            person.waits(QUESTION)
            person.presses(keys)
        person.waits(QUESTION)
        person.presses("r")
        person.waits("Why not")
        person.presses("\r")
        person.waits(QUESTION)
        person.presses(ESC)
        person.waits("Interrupted")
        person.says("q")
        person.ended()

    log = events(person.log())
    assert [e["state"]["decision"] for e in log if e["topic"] == "ApprovalDecided"] == ["no"] * 3
    assert not has("ToolStarted")(log)


def test_no_with_a_reason_is_told_to_the_model(tmp_path):
    with ScriptedServer([bash("touch ran"), reply("As you wish.")]) as server:
        person = Person(tmp_path, server)
        person.says("go")
        person.waits(QUESTION)
        person.presses("r")
        person.waits("Why not")
        person.presses("too early\r")
        person.waits("As you wish.")
        person.says("q")
        person.ended()

    [result] = results(events(person.log())).values()
    assert result.endswith("The user says: too early")
    assert not (person.cwd / "ran").exists()


# -- typing while the agent works --------------------------------------------------------------


def test_what_is_typed_meanwhile_is_queued_and_delivered_after_the_tools(tmp_path):
    with ScriptedServer([bash("cat fifo"), reply("Noted.")]) as server:
        person = Person(tmp_path, server, "--yes")
        fifo = fifo_in(person)
        person.says("go")
        person.waits("cat fifo")
        person.presses("be quicj\x7fk 你好")
        person.shows("» be quick 你好")
        person.presses(ENTER)
        person.shows("queued: be quick 你好")
        person.logs_that(has("PromptQueued", text="be quick 你好"))
        fifo.write_text("out\n")
        person.waits("› be quick 你好", "Noted.")
        person.says("q")
        person.ended()

    assert said(events(person.log()), "user") == ["go", "be quick 你好"]


@pytest.mark.parametrize("keys", [ALT_UP, UP])
def test_what_was_queued_can_be_taken_back_and_changed(tmp_path, keys):
    with ScriptedServer([bash("cat fifo"), reply("Noted.")]) as server:
        person = Person(tmp_path, server, "--yes")
        fifo = fifo_in(person)
        person.says("go")
        person.waits("cat fifo")
        person.presses("one" + ENTER)
        person.shows("queued: one")
        person.presses(keys)
        person.shows("» one")
        person.presses(" more" + ENTER)
        person.shows("queued: one more")
        fifo.write_text("out\n")
        person.waits("Noted.")
        person.says("q")
        person.ended()

    assert said(events(person.log()), "user") == ["go", "one more"]


def test_a_file_that_a_queued_prompt_mentions_goes_with_it(tmp_path):
    with ScriptedServer([bash("cat fifo"), reply("Read.")]) as server:
        person = Person(tmp_path, server, "--yes")
        (person.cwd / "notes.txt").write_text("as it was\n")
        fifo = fifo_in(person)
        person.says("go")
        person.waits("cat fifo")
        person.presses("look at @notes.txt and @none.txt" + ENTER)
        person.logs_that(has("PromptQueued"))
        (person.cwd / "notes.txt").write_text("as the tools left it\n")
        fifo.write_text("out\n")
        person.waits("› look at @notes.txt", "attached notes.txt", "Read.")
        person.says("q")
        person.ended()
        [_, steered] = server.requests

    *_, prompt, attached = steered.json["messages"][-1]["content"]
    assert prompt["text"] == "look at @notes.txt and @none.txt"
    assert "as the tools left it" in attached["text"]


def test_a_file_that_was_queued_before_a_crash_goes_with_the_next_prompt(tmp_path):
    with ScriptedServer([bash("cat fifo"), reply("Both.")]) as server:
        person = Person(tmp_path, server, "--yes")
        (person.cwd / "notes.txt").write_text("the content\n")
        fifo_in(person)
        person.says("go")
        person.waits("cat fifo")
        person.presses("read @notes.txt" + ENTER)
        person.logs_that(has("PromptQueued"))
        person.killed()
        person.starts("-c")
        person.says("hello")
        person.waits("Both.")
        person.says("q")
        person.ended()
        [*_, last] = server.requests

    assert "the content" in str(last.json["messages"])


def test_a_stopped_turn_gives_back_what_was_queued_and_typed(tmp_path):
    with ScriptedServer([bash("cat fifo"), reply("Both.")]) as server:
        person = Person(tmp_path, server, "--yes")
        fifo_in(person)
        person.says("go")
        person.waits("cat fifo")
        person.presses("first" + ENTER)
        person.shows("queued: first")
        person.presses("second")
        person.shows("» second")
        person.presses(ESC)
        shown = person.shows("Interrupted", rf"{PROMPT} first\n +…\n +… second$")
        assert "queued" not in shown
        person.presses(ENTER)
        person.waits("Both.")
        person.says("q")
        person.ended()

    assert said(events(person.log()), "user") == ["go", "first\n\nsecond"]


def test_what_was_queued_survives_being_killed(tmp_path):
    with ScriptedServer([bash("cat fifo"), reply("Both.")]) as server:
        person = Person(tmp_path, server, "--yes")
        fifo_in(person)
        person.says("go")
        person.waits("cat fifo")
        person.presses("and this" + ENTER)
        person.logs_that(has("PromptQueued", text="and this"))
        person.killed()
        person.starts("-c")
        person.waits("Still queued.*: and this")
        person.says("hello")
        person.waits("Both.")
        person.says("q")
        person.ended()

    assert said(events(person.log()), "user") == ["go", "and this", "hello"]


def test_a_command_that_is_typed_meanwhile_is_obeyed_after_the_turn(tmp_path):
    with ScriptedServer([bash("cat fifo"), reply("Done.")]) as server:
        person = Person(tmp_path, server, "--yes")
        fifo = fifo_in(person)
        person.says("go")
        person.waits("cat fifo")
        person.presses("/name Anna" + ENTER + "q" + ENTER)
        person.waits("then: q")
        fifo.write_text("out\n")
        person.waits("Done.", "is named 'Anna'")

        assert person.ended()[0] == 0
    assert has("Renamed", name="Anna")(events(person.log()))


# -- stopping ----------------------------------------------------------------------------------


@pytest.mark.parametrize("key", [ESC, CTRL_C])
def test_a_stream_stops_at_once(tmp_path, key):
    with Gate() as gate, ScriptedServer([reply("Half of it.", gate=gate, gate_after=4)]) as server:
        person = Person(tmp_path, server)
        person.says("go")
        gate.wait()
        person.waits("Esc stops")
        person.presses(key)
        person.waits("Interrupted")
        person.logs_that(ended_as("interrupted"))
        person.says("q")

        assert person.ended()[0] == 0


@pytest.mark.parametrize("key", [ESC, CTRL_C])
def test_waiting_for_a_retry_is_shown_and_stops_at_once(tmp_path, key):
    with ScriptedServer([refuse(529, "overloaded", retry_after=100)]) as server:
        person = Person(tmp_path, server)
        person.says("go")
        person.waits("Retrying in 100 s, try 1 of 3", "overloaded")
        person.presses(key)
        person.waits("Interrupted")
        person.logs_that(ended_as("interrupted"))
        person.says("q")

        assert person.ended()[0] == 0


def test_a_tool_stops_at_once(tmp_path):
    """What it had printed is shown, and told to the model: it may have done half of its work."""
    script = [bash("echo half $((6 * 7)); sleep 100; touch survived"), reply("I see.")]
    with ScriptedServer(script) as server:
        person = Person(tmp_path, server, "--yes")
        person.says("go")
        person.waits("half 42")
        person.presses(ESC)
        person.waits("half 42", "interrupted; the command", "Interrupted")
        person.logs_that(ended_as("interrupted"))
        person.says("and now?")
        person.waits("I see.")
        person.says("q")

        assert person.ended()[0] == 0
    [told, _] = server.requests[1].json["messages"][-1]["content"]
    assert told["content"] == "half 42\n" + STOPPED
    assert not (person.cwd / "survived").exists()


def test_compaction_stops_at_once_and_changes_nothing(tmp_path):
    with (
        Gate() as gate,
        ScriptedServer(
            [reply("One."), reply("Two."), reply("## Goal", gate=gate, gate_after=2)]
        ) as server,
    ):
        person = Person(tmp_path, server, LEFTFOLD_CONTEXT_WINDOW="8000")
        person.pastes("word " * 1700)
        person.waits("One.")
        person.pastes("word " * 1700)
        person.waits("Two.")
        person.says("/compact")
        gate.wait()
        person.presses(ESC)
        person.waits("Interrupted")
        person.says("q")

        assert person.ended()[0] == 0
    assert not has("Compacted")(events(person.log()))


def test_ctrl_c_twice_leaves_and_the_turn_is_ended(tmp_path):
    trap = "trap '' TERM; echo $((6*7000)); while :; do sleep 1; done"
    with ScriptedServer([bash(trap)]) as server:
        person = Person(tmp_path, server, "--yes")
        person.says("go")
        person.waits("  42000")
        person.presses(CTRL_C)
        person.presses(CTRL_C)

        assert person.ended()[0] == 130
    assert ended_as("interrupted")(events(person.log()))


# -- commands ----------------------------------------------------------------------------------


def test_a_command_of_ones_own_is_shown_and_told_to_the_model(tmp_path):
    with ScriptedServer([reply("I see.")]) as server:
        person = Person(tmp_path, server)
        person.says("!echo $((6*7000))")
        person.waits("42000")
        person.says("!!echo $((6*7001))")
        person.waits("42006", "the model is not told")
        person.says("what was that?")
        person.waits("I see.")
        person.says("q")
        person.ended()
        [request] = [each.json for each in server.requests]

    sent = str(request["messages"])
    assert "42000" in sent
    assert "42006" not in sent
    notes = [e["state"] for e in events(person.log()) if e["topic"] == "NoteAppended"]
    assert [(note["kind"], note["visible"]) for note in notes] == [
        ("shell", True),
        ("shell", False),
    ]


def test_a_file_that_is_mentioned_goes_with_the_prompt(tmp_path):
    with ScriptedServer([reply("Read."), reply("Still there.")]) as server:
        person = Person(tmp_path, server)
        (person.cwd / "notes.txt").write_text("the content\n")
        person.says("look at @notes.txt, please")
        person.waits("attached notes.txt", "Read.")
        (person.cwd / "notes.txt").unlink()
        person.says("and now?")
        person.waits("Still there.")
        person.says("q")
        person.ended()
        sent = [str(each.json["messages"]) for each in server.requests]

    assert all("the content" in each for each in sent)


def test_the_navigator_goes_to_an_earlier_prompt(tmp_path):
    with ScriptedServer([reply("One."), reply("Two."), reply("Three.")]) as server:
        person = Person(tmp_path, server)
        person.says("first question")
        person.waits("One.")
        person.says("second question")
        person.waits("Two.")
        person.waits(PROMPT)
        person.presses(ESC + ESC)
        person.waits("The tree", "Esc leaves")
        person.presses("second" + ENTER)
        person.waits("You are (here|at the beginning)", PROMPT, "second question")
        person.presses(" anew" + ENTER)
        person.waits("Three.")
        person.says("q")
        person.ended()
        sent = server.requests[-1].json["messages"]

    asked = [block["text"] for each in sent for block in each["content"] if each["role"] == "user"]
    assert asked == ["first question", "second question anew"]


def test_the_picker_renames_deletes_to_the_trash_and_resumes(tmp_path):
    with ScriptedServer([reply("One."), reply("Two."), reply("Three.")]) as server:
        person = Person(tmp_path, server)
        for prompt, answer in (("about apples", "One"), ("about pears", "Two")):
            person.says(prompt)
            person.waits(answer)
            person.says("/new")
        person.says("/resume")
        person.waits("Resume: conversations of", "about pears", "about apples", "Esc leaves")
        person.presses("apples\x04")
        person.waits(r"to the trash\?")
        person.presses("y\r")
        person.waits("moved to", "Esc leaves")
        person.presses("\x15\x12")
        person.waits("New name")
        person.presses("Pears 梨\r")
        person.waits("Pears 梨", "Esc leaves")
        person.presses(ENTER)
        person.waits("› about pears", PROMPT)
        person.presses("go on\r")
        person.waits("Three.")
        person.says("q")
        person.ended()

    [trashed] = (person.store / ".trash").iterdir()
    assert "about apples" in trashed.read_text()
    assert said(events(person.log()), "user") == ["about pears", "go on"]


def test_resume_without_an_id_shows_the_picker_and_esc_leaves(tmp_path):
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        person = Person(tmp_path, server)
        person.says("about apples")
        person.waits("One.")
        person.says("q")
        person.ended()
        person.starts("-r")
        person.waits("Resume:", "about apples", "Esc leaves")
        person.presses(ESC)
        assert person.ended()[0] == 0
        person.starts("-r")
        person.waits("Resume:", "Esc leaves")
        person.presses(DOWN + ENTER)
        person.waits("Restored 2 messages", PROMPT)
        person.presses(CTRL_D)

        assert person.ended()[0] == 0


def test_the_picker_finds_in_all_that_was_said_and_opens_at_the_entry(tmp_path):
    answers = [reply("The stock is kept in warehouse.csv 仓库."), reply("Two."), reply("Three.")]
    with ScriptedServer(answers) as server:
        person = Person(tmp_path, server)
        person.says("where is the stock?")
        person.waits("warehouse")
        person.says("and the prices?")
        person.waits("Two.")
        person.says("/new")
        person.says("about pears")
        person.waits("Three.")
        person.says("/resume")
        person.waits("about pears", "Esc leaves")
        person.presses("仓库")
        person.waits(r"@\d+: The stock is kept in warehouse.csv 仓库")
        person.presses(ENTER)
        person.waits("Found, at entry", "kept in warehouse", "/tree")
        person.says("q")
        person.ended()
        entry = next(
            line["v"] for line in events(person.logs()[0]) if "warehouse" in str(line.get("state"))
        )
        person.starts("-r", f"{person.logs()[0].stem}@{entry}")
        person.waits(f"Found, at entry {entry}")
        person.says("q")
        person.ended()

    assert all(line.get("topic") != "LeafMoved" for log in person.logs() for line in events(log))


def test_following_the_log_shows_what_another_program_did_and_ends_at_a_key(tmp_path):
    with ScriptedServer([reply("One.")]) as server:
        person = Person(tmp_path, server)
        person.says("hello")
        person.waits("One.")
        person.says("/log follow")
        person.waits("TurnEnded")
        person.run("rename", str(person.id()), "Anna")
        person.waits("Renamed")
        person.presses("q")
        person.says("q")

        assert person.ended()[0] == 0


def test_results_whose_call_was_lost_are_told_of_at_the_start(tmp_path):
    with ScriptedServer([bash("echo $((6*7000))"), reply("Done."), reply("Again.")]) as server:
        person = Person(tmp_path, server, "--yes")
        person.says("go")
        person.waits("Done.")
        person.says("q")
        person.ended()
        lines = person.log().read_bytes().splitlines(keepends=True)
        person.log().write_bytes(b"".join(line for line in lines if b'"tool_use",' not in line))
        person.starts("-c")
        person.waits("is damaged: line .* recover", "without their call.* not get: 1")
        person.says("and now?")
        person.waits("Again.")
        person.says("q")

        assert person.ended()[0] == 0
    assert "42000" not in str(server.requests[-1].json["messages"])


# -- terminals ---------------------------------------------------------------------------------


def test_a_window_that_changes_its_size_in_a_turn_loses_nothing(tmp_path):
    lines = "\n".join(f"- item number {n}" for n in range(30))
    with Gate() as gate, ScriptedServer([reply(lines, gate=gate, gate_after=20)]) as server:
        person = Person(tmp_path, server, size=(20, 80))
        person.says("go")
        gate.wait()
        person.child.setwinsize(10, 30)
        gate.release()
        person.waits("item number 29")
        person.says("q")

        assert person.ended()[0] == 0


def test_a_narrow_window_shows_everything_in_its_place(tmp_path):
    long = "a fairly long answer that goes on and on and ends here"
    with ScriptedServer([bash("echo one"), reply(long)]) as server:
        person = Person(tmp_path, server, size=(24, 40))
        person.presses("go" + ENTER)
        person.shows(r"Allow bash\?\n  \$ echo one\n\[y\]es / \[a\]lways", r"\[r\]eason *$")
        person.presses("y")
        person.shows("a fairly long answer that goes on and on\nand ends here", rf"{PROMPT}$")
        person.presses("/help" + ENTER)
        person.shows(r"\n/context \[json\]\n  Show what the model gets", rf"{PROMPT}$")
        person.presses("/tree" + ENTER)
        person.shows(r"Enter goes there · ← → fold\nCtrl\+S with a summary", r"Esc leaves$")
        person.resizes(8, 40)
        person.shows(r"▸ .*fairly", r"← → fold\nCtrl\+S with a summary", r"Esc leaves$")
        person.resizes(24, 40)
        person.shows(r"user +go\n", r"Esc leaves$")
        person.presses(ESC)
        person.shows(rf"{PROMPT}$")
        person.presses("q" + ENTER)

        assert person.ended()[0] == 0


def test_the_end_of_the_input_leaves(tmp_path):
    with ScriptedServer([]) as server:
        person = Person(tmp_path, server)
        person.waits(PROMPT)
        person.presses(CTRL_D)

        assert person.ended()[0] == 0


@pytest.mark.parametrize("environment", [{"TERM": "dumb"}, {"LC_ALL": "C"}])
def test_poor_terminals_choose_by_number_or_at_least_survive(tmp_path, environment):
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        person = Person(tmp_path, server, **environment)
        person.says("about äpfel 苹果")
        person.waits("One.")
        person.says("/tree")
        person.waits("äpfel" if "LC_ALL" not in environment else "about")
        if "LC_ALL" in environment:
            person.waits("Esc leaves")
            person.presses(ESC)
        person.says("q")

        assert person.ended()[0] == 0


def test_without_a_terminal_lines_are_prompts(tmp_path):
    with ScriptedServer([reply("One."), reply("Two.")]) as server:
        person = Person(tmp_path, server)
        person.killed()
        done = person.run(stdin="first\n/tree\nsecond\n")

    assert done.code == 0
    assert "One." in done.out
    assert "Two." in done.out
    assert "\x1b" not in done.out


def fifo_in(person):
    """Make a pipe with a name: ``cat`` waits in it until the test writes."""
    import os

    path = person.cwd / "fifo"
    os.mkfifo(path)
    return path
