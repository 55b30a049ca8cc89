"""The loop: prompts, commands, turns, and every way in which it ends."""

import asyncio
import io
import os
import re
import signal
from contextlib import asynccontextmanager

import pytest
from eventsourcing.persistence import OperationalError
from rich.console import Console

from app.application import Conversations
from app.bootstrap import AgentFactory
from app.repl.desk import Desk
from app.repl.loop import Repl
from app.repl.opening import greet
from app.repl.restored import _unfinished
from app.repl.screen import RichScreen
from app.settings import settings
from domain.events import MessageAppended, NoteAppended
from infrastructure.errors import WriteError
from tests.app.doubles import begin


class Prompts:
    """Prompts from a list; what is callable is called instead, and gives the prompt."""

    def __init__(self, *given, is_interactive=True):
        self.given, self.offered, self.is_interactive = list(given), [], is_interactive
        self.kept = []

    async def read(self, default=""):
        self.offered.append(default)
        if not self.given:
            return None
        prompt = self.given.pop(0)
        return await prompt() if callable(prompt) else prompt

    def keep(self, text):
        self.kept += [text] if text else []


class Echo:
    """An agent that appends the prompt and then does what it is told."""

    def __init__(self, open_conversation, screen, then):
        self.open_conversation, self.screen, self.then = open_conversation, screen, then

    async def run_turn(self, prompt, attachments=()):
        self.open_conversation.record(lambda conversation: conversation.append_prompt(prompt))
        try:
            await self.then(prompt)
        except asyncio.CancelledError:
            self.open_conversation.record(lambda conversation: conversation.end_turn("interrupted"))
            self.screen.turn_ended("interrupted", None)
            return "interrupted"
        self.open_conversation.record(lambda conversation: conversation.end_turn("done"))
        return "done"

    async def go_on(self):
        self.open_conversation.record(lambda conversation: conversation.deliver_prompts({}))
        self.open_conversation.record(lambda conversation: conversation.end_turn("done"))
        return "done"


class Bench(AgentFactory):
    """A factory whose agents are doubles."""

    def __init__(self, conversations, make_agent):
        super().__init__(settings(), conversations, model=None)
        object.__setattr__(self, "make_agent", make_agent)

    def begin_new(self):
        return self.conversations.start(begin())

    def agent(self, open_conversation, *, approver, screen, attach):
        return self.make_agent(open_conversation, screen)


async def nothing(prompt):
    pass


@pytest.fixture
def desk(tmp_path):
    """Runs a REPL over a list of prompts; returns exit code, what was printed, the prompts, the logs."""
    environment = {"LEFTFOLD_STORE": str(tmp_path / "store"), "LEFTFOLD_DURABILITY": "os"}

    def go(*given, then=nothing, make_agent=None, before=None, greets=False, **options):
        console = Console(file=io.StringIO(), width=100, force_terminal=False)
        prompts = Prompts(*given, is_interactive=options.pop("is_interactive", True))
        first = options.pop("first", "")
        with Conversations(environment) as conversations:
            if before:
                options["open_conversation"] = before(conversations)
            made = Desk(
                console=console,
                screen=RichScreen(console),
                prompts=prompts,
                factory=Bench(
                    conversations,
                    make_agent
                    or (lambda open_conversation, screen: Echo(open_conversation, screen, then)),
                ),
                make_approver=lambda _: None,
                **{
                    "open_conversation": conversations.start(begin()),
                    **options,
                },
            )
            if greets:
                greet(made)
            code = asyncio.run(Repl(made, first=first).run())
            ids = list(conversations.ids())
            events = [list(conversations.events_of(one)) for one in ids]
        return code, console.file.getvalue(), prompts, ids, events

    return go


def prompts_in(events):
    return [e.content.text for e in events if isinstance(e, MessageAppended)]


@pytest.mark.parametrize("word", ["q", "/quit", "exit", " /q ", None])
def test_leaving_at_once_records_nothing(desk, word):
    code, shown, _, ids, _ = desk(*filter(None, [word]))

    assert code == 0
    assert shown == ""
    assert ids == []


def test_a_turn_is_recorded_and_can_be_resumed(desk):
    code, shown, _, [one], [events] = desk("", "  ", "do it", "q", "never read")

    assert code == 0
    assert prompts_in(events) == ["do it"]
    assert f"To resume: leftfold -r {one}\n" in shown


def test_a_resumed_conversation_is_shown(desk):
    def before(conversations):
        open_conversation = conversations.start(begin())
        open_conversation.record(lambda conversation: conversation.append_prompt("earlier"))
        return conversations.open(open_conversation.id)

    _, shown, _, _, _ = desk(before=before, greets=True)

    assert shown.startswith("› earlier\n\nleftfold 0.1.0 · test-model · ")
    assert "\nRestored 1 message (" in shown
    assert "/help shows the commands, q leaves\n\nTo resume: " in shown


def test_a_prompt_that_could_not_be_saved_is_offered_again(desk, tmp_path):
    class Full:
        async def run_turn(self, prompt, attachments=()):
            raise WriteError(tmp_path / "log", OSError(28, "No space left on device"))

    _, shown, prompts, ids, _ = desk("precious", "", make_agent=lambda *_: Full())

    assert "not saved: No space left on device" in shown
    assert prompts.offered == ["", "precious", ""]
    assert ids == []
    assert "To resume" not in shown


def test_a_prompt_that_was_saved_is_not_offered_again(desk):
    async def breaks(prompt):
        raise RuntimeError("\x1bboom")

    code, shown, prompts, _, _ = desk("hi", "q", then=breaks)

    assert code == 0
    assert "Unexpected error: RuntimeError: ␛boom" in shown
    assert "Traceback" not in shown
    assert prompts.offered == ["", ""]


def test_what_was_queued_when_all_was_said_is_the_next_turn_and_stays_in_the_log(desk):
    """It is never taken out of the log to be kept in memory: a crash would lose it."""
    queued = []

    def make_agent(open_conversation, screen):
        async def type_late(_prompt):
            open_conversation.record(lambda conversation: conversation.queue_prompt("late"))
            open_conversation.record(lambda conversation: conversation.queue_prompt("later"))

        class Late(Echo):
            async def go_on(self):
                queued.extend(open_conversation.conversation.queue.values())
                return await super().go_on()

        return Late(open_conversation, screen, type_late)

    _, _, prompts, _, [events] = desk("go", "q", make_agent=make_agent)

    assert queued == ["late", "later"]
    assert prompts_in(events) == ["go", "late", "later"]
    assert prompts.offered == ["", ""]


def test_the_output_of_a_command_is_shown_even_if_the_log_cannot_take_it(desk, monkeypatch):
    def before(conversations):
        open_conversation = conversations.start(begin())
        open_conversation.record(lambda conversation: conversation.append_prompt("earlier"))
        monkeypatch.setattr(conversations.recorder, "insert_events", full)
        return open_conversation

    def full(*_args, **_kwargs):
        raise OperationalError("the disk is full")

    _, shown, _, _, [events] = desk("!echo only-$((40 + 2))-once", "q", before=before)

    assert "only-42-once" in shown
    assert "the disk is full" in shown
    assert not any(isinstance(event, NoteAppended) for event in events)


def test_debugging_shows_the_traceback(desk, monkeypatch):
    monkeypatch.setenv("LEFTFOLD_DEBUG", "1")

    async def breaks(prompt):
        raise RuntimeError("boom")

    assert "Traceback" in desk("hi", then=breaks)[1]


def test_a_script_learns_that_something_failed(desk):
    async def breaks(prompt):
        raise RuntimeError("boom")

    assert desk("hi", then=breaks, is_interactive=False)[0] == 1
    assert desk("hi", is_interactive=False)[0] == 0


def send(number):
    os.kill(os.getpid(), number)


def test_ctrl_c_stops_the_turn_and_not_the_repl(desk):
    async def long(prompt):
        if prompt == "long":
            send(signal.SIGINT)
            await asyncio.sleep(60)

    code, shown, _, _, [events] = desk("long", "short", "q", then=long)

    assert code == 0
    assert "Interrupted." in shown
    assert prompts_in(events) == ["long", "short"]
    assert [e.outcome for e in events if e.TOPIC == "TurnEnded"] == ["interrupted", "done"]


def test_ctrl_c_twice_leaves_and_the_turn_ends_properly(desk):
    async def slow_to_stop(prompt):
        send(signal.SIGINT)
        try:
            await asyncio.sleep(60)
        finally:
            send(signal.SIGINT)
            await asyncio.sleep(0.2)

    code, shown, _, _, [events] = desk("long", "never", then=slow_to_stop)

    assert code == 130
    assert [e.outcome for e in events if e.TOPIC == "TurnEnded"] == ["interrupted"]
    assert "To resume" in shown


@pytest.mark.parametrize(("number", "expected"), [(signal.SIGTERM, 143), (signal.SIGHUP, 129)])
def test_being_told_to_end_ends_with_everything_recorded(desk, number, expected):
    async def long(prompt):
        send(number)
        await asyncio.sleep(60)

    code, _, _, _, [events] = desk("long", "never", then=long)

    assert code == expected
    assert events[-1].outcome == "interrupted"


def test_what_was_typed_and_not_sent_when_the_terminal_closed_is_kept(desk):
    class Line:
        text = ""
        typist = None

        @asynccontextmanager
        async def reading(self, typist):
            self.typist = typist
            yield

        def take(self):
            text, self.text = self.text, ""
            return text

    line = Line()

    async def hang_up(_prompt):
        line.typist.entered("/model x")
        line.text = "half a prom"
        send(signal.SIGHUP)
        await asyncio.sleep(60)

    _, _, prompts, _, _ = desk("go", then=hang_up, line=line)

    assert prompts.kept == ["/model x", "half a prom"]


def test_being_told_to_end_at_the_prompt_ends(desk):
    async def waiting():
        send(signal.SIGTERM)
        await asyncio.sleep(60)

    assert desk(waiting)[0] == 143


# -- commands ----------------------------------------------------------------------------------


def test_help_names_every_command(desk):
    from app.repl.slash import TABLE

    shown = desk("/help")[1]

    assert all(f"/{command.name}" in shown and command.help in shown for command in TABLE)


@pytest.mark.parametrize(
    ("typed", "answer"),
    [
        ("/hlp", "There is no command /hlp. Did you mean /help?"),
        ("/xyzzy", "There is no command /xyzzy. /help shows all commands."),
        ("!", "!COMMAND runs a command"),
        ("/thinking", "Thinking is off (choices: off, low"),
        ("/thinking loud", "'loud' is not a thinking level"),
        ("/model", "The model is test-model."),
        ("/name", "The conversation has no name."),
        ("/log", "Nothing is recorded yet."),
        ("/fork", "Nothing is recorded yet."),
        ("/context", "0 on the path"),
        ("/context json", '"model": "test-model"'),
        ("/context what", "/context takes nothing or json"),
        ("/show", "Nothing is recorded yet."),
        ("/resume", "/resume needs an ID here"),
    ],
)
def test_commands_answer_and_record_nothing_of_themselves(desk, typed, answer):
    code, shown, _, ids, _ = desk(typed)

    assert answer in shown
    assert code == 0
    assert ids == []


def test_paths_are_for_the_model(desk):
    _, _, _, _, [events] = desk("/usr/bin is full", "/a/b")

    assert prompts_in(events) == ["/usr/bin is full", "/a/b"]


def test_facts_are_changed_by_commands(desk):
    _, shown, _, _, [events] = desk("/model other", "/thinking high", "/name My \x1b talk", "/log")

    topics = [event.TOPIC for event in events]
    assert topics[-3:] == ["ModelChanged", "ThinkingLevelChanged", "Renamed"]
    assert "The model is other." in shown
    assert "\x1b" not in shown


def test_new_starts_another_conversation(desk):
    _, shown, _, ids, events = desk("one", "/new", "two")

    assert [prompts_in(one) for one in events] == [["two"], ["one"]]
    assert f"The earlier one is {ids[1]}" in shown
    assert f"-r {ids[0]}" in shown


def test_fork_goes_on_in_a_copy(desk):
    _, _, _, ids, events = desk("one", "/fork", "two", "/fork abc", "/fork 999")

    assert [prompts_in(one) for one in events] == [["one", "two"], ["one"]]
    assert len(ids) == 2


def test_the_first_prompt_of_the_command_line_is_done_as_if_it_had_been_typed(desk):
    _, shown, prompts, _, [events] = desk("q", first="do this")
    assert prompts_in(events) == ["do this"]
    assert "› do this" in shown
    assert prompts.offered == [""]

    code, _, prompts, _, _ = desk("never read", first="/quit")
    assert (code, prompts.offered) == (0, [])


def test_clear_begins_a_new_conversation_as_new_does(desk):
    _, _, _, ids, _ = desk("one", "/clear", "two", "q")

    assert len(ids) == 2


@pytest.mark.parametrize(
    ("name", "warning"),
    [
        ("claude-sonet-4-5", "Nobody here knows .* Did you mean 'claude-sonnet-4-5'"),
        ("llama-7b-q4", "Nobody here knows a model of this name; it is asked all the same"),
        ("claude-sonnet-4-5-20250929", None),
        ("claude-sonnet-5", None),
    ],
)
def test_a_model_that_nobody_knows_is_taken_with_a_warning(desk, name, warning):
    _, shown, _, _, _ = desk("hi", f"/model {name}", "q")

    assert f"The model is {name}." in shown
    assert bool(re.search("Nobody here knows", shown)) == (warning is not None)
    assert warning is None or re.search(warning, shown)


def test_a_file_that_is_not_there_is_said_when_the_prompt_is_sent(desk):
    _, shown, _, _, [events] = desk("see @nowhere.txt, and @here/too", "q")

    assert "no such file, sent as text: @nowhere.txt," in shown
    assert "@here/too" in shown
    assert prompts_in(events) == ["see @nowhere.txt, and @here/too"]


def test_where_one_is_after_going_there_is_shown(desk):
    _, shown, _, _, _ = desk("first question", "second question", "/fork 4", "/tree 4", "q")

    assert shown.count("You are here, at entry 4:\n› first question") == 1
    assert "You are at the beginning" in shown
    assert "hangs from" not in shown


def test_one_blank_line_stands_below_the_place_that_one_has_gone_to(desk):
    _, shown, _, _, _ = desk("first question", "second question", "/tree 6", "q")

    assert "› first question\n\nTo resume" in shown


def test_what_the_log_knows_of_a_turn_that_a_crash_ended_is_said():
    def at(*steps):
        with Conversations({"PERSISTENCE_MODULE": "eventsourcing.popo"}) as conversations:
            open_conversation = conversations.start(begin())
            for step in (lambda conversation: conversation.append_prompt("go"), *steps):
                open_conversation.record(step)
            return list(_unfinished(open_conversation.conversation))

    use = {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "make"}}

    def ask(conversation):
        conversation.append_answer(
            [use], stop_reason="tool_use", answers=conversation.leaf, model="m", usage={}
        )

    def ask_both(conversation):
        calls = [use, {**use, "id": "toolu_2"}]
        conversation.append_answer(
            calls, stop_reason="tool_use", answers=conversation.leaf, model="m", usage={}
        )

    def half(conversation):
        text = [{"type": "text", "text": "Ha"}]
        conversation.append_answer(
            text, stop_reason="interrupted", answers=conversation.leaf, model="m", usage={}
        )

    assert at() == ["The last turn was cut off before its answer"]
    assert at(ask) == []
    assert at(ask, lambda conversation: conversation.start_tool("toolu_1")) == [
        "bash was started when the program ended: its outcome is unknown"
    ]
    assert (
        at(ask_both, lambda conversation: conversation.append_tool_result("toolu_1", "done")) == []
    )
    assert at(half) == ["The last answer was cut off"]
    assert at(lambda conversation: conversation.end_turn("failed")) == []
