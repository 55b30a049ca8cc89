"""What the screen shows of a turn."""

import io
import re
from types import SimpleNamespace

import pytest
from rich.console import Console

from app.repl.screen import RichScreen
from app.repl.type_ahead import Waiting
from domain.events import TurnError
from domain.messages import ToolUseBlock
from infrastructure.model.offline_server import message_events
from tests import builders as b

CONTROL = "\x1b"


class Clock:
    def __init__(self):
        self.now = 0.0

    def __call__(self):
        return self.now


class Below:
    """In the place of the bottom of the screen: remembers what is to be seen there."""

    def show(self, under_way):
        self.under_way = under_way

    def draw(self):
        pass


class Screen(RichScreen):
    """A screen on a string."""

    def __init__(self, *, fancy, height=20, **options):
        self.file = io.StringIO()
        self.time = Clock()
        self.below = Below()
        console = Console(
            file=self.file,
            force_terminal=fancy,
            width=60,
            height=height,
            **{"color_system": None, **options},
        )
        super().__init__(console, self.below, clock=self.time)

    def text(self):
        """Return what stays on the screen, and what is under way."""
        return re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", self.file.getvalue() + self.moving()).strip(
            "\n"
        )

    def moving(self, room=20):
        """Return what is under way."""
        with self._console.capture() as captured:
            for part in self.below.under_way(room):
                self._console.print(part)
        return captured.get()


def answer(screen, *blocks, stop_reason="end_turn"):
    message = {"content": blocks, "usage": {}, "stop_reason": stop_reason, "stop_sequence": None}
    for _, event in message_events(message):
        screen.streamed(event)
    screen.answered()


def text(value):
    return {"type": "text", "text": value}


def call(number=1, name="bash", **arguments):
    return ToolUseBlock(b.tool_use(f"toolu_{number}", name, **arguments))


def output(content, *, is_error=False):
    return SimpleNamespace(content=content, is_error=is_error)


@pytest.fixture(params=[True, False], ids=["fancy", "plain"])
def screen(request):
    return Screen(fancy=request.param)


LONG = "\n\n".join(f"Paragraph number {n} of them." for n in range(60))


def test_an_answer_is_shown_whole_and_once(screen):
    screen.turn_started()
    answer(screen, text(LONG))
    screen.turn_ended("done", None)

    assert screen.text().split("\n\n") == LONG.split("\n\n")


def test_a_block_that_is_taller_than_the_screen_is_shown_whole_and_once():
    screen = Screen(fancy=True, height=10)
    code = "\n".join(f"line_{n:03}" for n in range(100))
    answer(screen, text(f"```\n{code}\n```"))

    assert screen.text().split() == code.split()


@pytest.mark.parametrize(
    ("room", "shown"),
    [
        (4, ["waiting", "queued: one", "queued: two", "  … 2 more"]),
        (3, ["waiting", "queued: one", "  … 3 more"]),
        (2, ["waiting", "  … 4 more"]),
        (1, ["waiting"]),
        (6, ["waiting", "queued: one", "queued: two", "queued: three", "queued: four", "  (Alt+Up"]),
    ],
)  # fmt: skip
def test_what_waits_never_hides_that_the_model_is_waited_for(room, shown):
    screen = Screen(fancy=True)
    screen.turn_started()
    screen.asking("answer")
    screen.show_waiting([Waiting(text, 7) for text in ("one", "two", "three", "four")])
    lines = screen.moving(room).rstrip("\n").split("\n")

    assert all(part in line for line, part in zip(lines, shown, strict=True)), lines


def test_without_a_terminal_there_are_no_escape_codes():
    screen = Screen(fancy=False)
    screen.turn_started()
    screen.tool_started(call(), "$ ls")
    screen.tool_ended(call(), output("\x1b[31mred\x1b[0m", is_error=True))
    answer(screen, {"type": "thinking", "thinking": "hm", "signature": "s"}, text("**bold**"))
    screen.turn_ended("failed", TurnError("x", "boom"))

    assert CONTROL not in screen.file.getvalue()
    assert "**bold**" in screen.text()


def test_no_color_means_no_colours_and_all_the_rest():
    screen = Screen(fancy=True, no_color=True, color_system="truecolor")
    screen.turn_started()
    answer(screen, text("**bold**"))
    screen.tool_started(call(), "$ ls")
    screen.tool_ended(call(), output("out"))
    screen.turn_ended("failed", TurnError("overloaded", "overloaded", "req_1"))

    codes = re.findall(r"\x1b\[([0-9;]*)m", screen.file.getvalue())
    assert {"0", "1", "2"} <= set(codes) <= {"0", "1", "2", "1;2", "2;3"}
    assert "bold" in screen.text()


def test_control_characters_of_models_and_tools_are_made_visible(screen):
    answer(screen, text("\x1b]0;title\x07 evil"))
    screen.tool_started(call(), "$ \x1b[2Jls")
    screen.tool_printed(call(), "\x1b[2J")
    screen.tool_ended(call(), output("\x1b[2Jout"))

    assert "\x1b]0" not in screen.file.getvalue()
    assert "\x1b[2J" not in screen.file.getvalue()
    assert "␛[2Jls" in screen.text()
    assert "␛[2Jout" in screen.text()


def test_thinking_folds_into_one_line(screen):
    screen.streamed(
        {"type": "content_block_start", "content_block": {"type": "thinking", "thinking": ""}}
    )
    delta = {"type": "thinking_delta", "thinking": "one\ntwo"}
    screen.streamed({"type": "content_block_delta", "delta": delta})
    screen.time.now = 75.0
    screen.streamed({"type": "content_block_stop", "index": 0})
    screen.answered()

    assert screen.text() == "∴ thought for 1m 15s · 2 lines"


def test_a_tool_is_one_line_and_its_output_shortened(screen):
    screen.turn_started()
    screen.tool_started(call(), "$ seq 100")
    screen.tool_ended(call(), output("\n".join(map(str, range(100)))))
    screen.turn_ended("done", None)

    lines = screen.text().split("\n")
    assert lines[0] == "● $ seq 100"
    assert lines[1:6] == [f"{n}" for n in range(5)]
    assert lines[6] == "… +91 lines"
    assert lines[7:] == [f"{n}" for n in range(96, 100)]


def test_parallel_tools_keep_line_and_output_together(screen):
    for number in (1, 2, 3):
        screen.tool_started(call(number), f"$ echo {number}")
    for number in (2, 1, 3):
        screen.tool_ended(call(number), output(f"out {number}"))
    screen.answered()

    shown = screen.text()
    for number in (1, 2, 3):
        assert f"● $ echo {number}\nout {number}" in shown


def test_a_running_tool_shows_how_long_and_its_last_line():
    screen = Screen(fancy=True)
    screen.tool_started(call(), "$ make")
    screen.time.now = 65.0
    screen.tool_printed(call(), "compiling a\ncompiling b\n")

    assert "$ make 1m 05s" in screen.text()
    assert "compiling b" in screen.text()
    assert "compiling a" not in screen.text()


def test_an_answer_that_has_stalled_moves_and_says_how_to_stop_it():
    screen = Screen(fancy=True)
    screen.streamed({"type": "content_block_start", "content_block": {"type": "text", "text": ""}})
    screen.streamed(delta("Half of"))
    screen.time.now = 0.9
    assert screen.text() == "Half of"

    screen.time.now = 3.0
    assert screen.text().startswith("Half of\n")
    assert screen.text().endswith(" 3s  Esc stops")

    screen.streamed(delta(" it."))
    assert screen.text() == "Half of it."


def delta(text):
    return {"type": "content_block_delta", "delta": {"type": "text_delta", "text": text}}


def test_what_was_printed_is_under_way_no_more_at_the_same_moment():
    screen = Screen(fancy=True)
    screen.streamed({"type": "content_block_start", "content_block": text("")})
    for said in ("Look", " here:", "\n\n```\n", "one\n"):
        screen.streamed(
            {"type": "content_block_delta", "delta": {"type": "text_delta", "text": said}}
        )

        assert screen.text().count("Look") <= 1


def test_a_long_line_of_an_output_is_left_to_the_terminal(screen):
    """So it is copied as the one line that it is (case R17)."""
    screen.tool_started(call(), "$ ls")
    screen.tool_ended(call(), output("word " * 30 + "end", is_error=True))

    assert "word " * 30 + "end\n" in screen.file.getvalue().replace("\x1b[0m", "")


def test_a_tool_that_took_long_says_how_long():
    screen = Screen(fancy=True)
    screen.tool_started(call(1), "$ make")
    screen.tool_started(call(2), "$ ls")
    screen.tool_ended(call(2), output("quick"))
    screen.time.now = 65.0
    screen.tool_ended(call(1), output("slow"))

    assert "● $ ls\n" in screen.text()
    assert "● $ make 1m 05s\n" in screen.text()


def test_what_was_under_way_when_the_turn_was_interrupted_is_kept(screen):
    screen.streamed({"type": "content_block_start", "content_block": text("")})
    screen.streamed(
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "half an"}}
    )
    screen.turn_ended("interrupted", None)

    assert screen.text() == "half an\n\nInterrupted."


def test_a_failed_turn_says_why_and_names_the_request(screen):
    screen.turn_ended("failed", TurnError("overloaded_error", "the API\nis busy", "req_1"))

    assert screen.text() == "the API is busy\nrequest id req_1"


@pytest.mark.parametrize(
    ("reason", "line"),
    [
        ("max_tokens", "length limit"),
        ("refusal", "declined"),
        ("model_context_window_exceeded", "context window"),
    ],
)
def test_an_answer_that_stopped_early_says_so(screen, reason, line):
    answer(screen, text("so far"), stop_reason=reason)

    assert line in screen.text().split("\n\n")[1]


def test_unknown_blocks_and_events_are_no_trouble(screen):
    screen.streamed({"type": "something_new"})
    answer(screen, {"type": "server_tool_use", "name": "web_search"}, text("x"))

    assert screen.text() == "· web_search\n\nx"


def test_images_are_named(screen):
    screen.tool_started(call(name="read"), "read a.png")
    screen.tool_ended(
        call(name="read"), output([{"type": "image"}, {"type": "text", "text": "a.png"}])
    )

    assert "[image]\na.png" in screen.text()


@pytest.mark.parametrize(
    ("purpose", "said"),
    [("answer", "waiting for the first token 3s"), ("summary", "summarising 3s")],
)
@pytest.mark.parametrize(
    "before",
    [
        lambda screen: screen.answered(),
        lambda screen: screen.compacted(100),
        lambda screen: screen.tool_ended(call(), output("no", is_error=True)),
        lambda screen: screen.turn_ended("done", None),
        lambda screen: screen.rest(),
    ],
)
def test_a_request_that_is_under_way_is_seen_whatever_came_before(before, purpose, said):
    screen = Screen(fancy=True)
    before(screen)
    screen.asking(purpose)
    screen.time.now += 3
    screen.show_waiting([Waiting("a prompt", 7), Waiting("/compact")])

    shown = screen.text()
    assert said in shown
    assert "Esc stops" in shown
    assert "queued: a prompt" in shown
    assert "then: /compact" in shown


def test_the_pause_before_a_retry_and_the_wait_after_it_are_told_apart():
    screen = Screen(fancy=True)
    screen.asking("answer")
    screen.streamed({"type": "retry", "attempt": 1, "of": 3, "after": 2, "reason": "overloaded"})
    screen.time.now += 1.5
    assert "retrying soon" in screen.text()
    screen.time.now += 1
    assert "waiting for the first token" in screen.text()


def test_what_was_delivered_is_shown_when_the_request_goes_out():
    screen = Screen(fancy=True)
    screen.on_request = lambda: screen.prompted("a queued prompt")
    screen.asking("answer")

    assert "a queued prompt" in screen.text()
