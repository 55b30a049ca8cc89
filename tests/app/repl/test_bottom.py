"""The bottom of the screen while the agent works, on an emulated terminal: what stands there, and the line, key by key."""

import asyncio
import io
from contextlib import asynccontextmanager

import pyte
import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.buffer import Buffer
from prompt_toolkit.completion import WordCompleter
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from rich.console import Console
from rich.text import Text

from app.repl.bottom import Bottom, Silence
from app.repl.pastes import Pastes
from app.repl.prompt import TerminalPrompts
from app.view.console import Terminal

LEFT, UP, ALT_UP, ESC, CTRL_C, TAB = "\x1b[D", "\x1b[A", "\x1b[1;3A", "\x1b", "\x03", "\t"
PASTE = "\x1b[200~{}\x1b[201~"


class Emulator(io.StringIO):
    """A terminal of 80 columns and 24 lines; keeps what stood on it after every single write."""

    def __init__(self):
        super().__init__()
        self.screen = pyte.HistoryScreen(80, 24, history=1000)
        self._stream = pyte.Stream(self.screen)
        self.seen = []

    def isatty(self):
        return True

    def write(self, text):
        self._stream.feed(text.replace("\n", "\r\n"))
        self.seen.append(self.shown())
        return len(text)

    def shown(self):
        return "\n".join(line.rstrip() for line in self.screen.display).rstrip()

    def scrolled(self):
        """All that has been printed, the oldest first."""
        gone = ("".join(row[x].data for x in range(80)).rstrip() for row in self.screen.history.top)
        return [line for line in (*gone, *self.shown().split("\n")) if line]


class Typist:
    """Remembers what it was told; "end" is the last word."""

    def __init__(self, *back):
        self.told, self.back, self.has_ended = [], list(back), asyncio.Event()

    def pressed_key(self):
        pass

    def entered(self, text):
        self.told.append(("entered", text))
        if text == "end":
            self.has_ended.set()

    def took_back(self):
        return self.back.pop() if self.back else None

    def stop(self):
        self.told.append("stop")

    def interrupt(self):
        self.told.append("interrupt")

    def complain(self, error):
        self.told.append(error)


class Desk:
    """A prompt and the bottom of the screen, at one keyboard and one emulated terminal."""

    def __init__(self, source, **options):
        self.source = source
        self.terminal = Emulator()
        self.console = Console(file=Terminal(self.terminal), force_terminal=True, width=80)
        self.prompts = TerminalPrompts(None, **options)
        self.bottom = Bottom(self.console, self.prompts.buffer, self.prompts.pastes, source=source)
        self.bottom.under_way = lambda room: self.parts[-room:]
        self.parts = []

    async def shows(self, *parts):
        while not all(part in self.terminal.shown() for part in parts):
            await asyncio.sleep(0.01)


@asynccontextmanager
async def desk(**options):
    with create_pipe_input() as source, create_app_session(source, DummyOutput()):
        yield Desk(source, **options)


def typed(*chunks, back=(), **options):
    """Return what the typist is told when *chunks* are typed, each when the one before was read."""

    async def read():
        async with desk(**options) as place:
            typist = Typist(*back)
            async with place.bottom.reading(typist):
                for chunk in chunks:
                    place.source.send_bytes(chunk if isinstance(chunk, bytes) else chunk.encode())
                    await asyncio.sleep(0.35 if chunk[-1:] == ESC else 0.02)
                place.source.send_text("\x01\x0bend\r")
                await asyncio.wait_for(typist.has_ended.wait(), 10)
            return [each for each in typist.told if each != ("entered", "end")]

    return asyncio.run(read())


@pytest.mark.parametrize(
    ("keys", "entered"),
    [
        ("hello 你好\r", "hello 你好"),
        ("helpo\x7f\x7flo\r", "hello"),
        ("one two\x17\r", "one"),
        ("gone\x15new\r", "new"),
        (b"a\xff\r", "a\ufffd"),
        ("a\x1b\rb\r", "a\nb"),
        (PASTE.format("one\r\ntwo") + "\r", "one\ntwo"),
        ("lft" + LEFT * 2 + "e\r", "left"),
        ("now\x01not \r", "not now"),
        ("kept gone\x1b[D\x1b[D\x1b[D\x1b[D\x0b\r", "kept"),
        ("你好" + LEFT + "们\r", "你们好"),
    ],
)
def test_the_line_is_edited_as_at_the_prompt(keys, entered):
    assert ("entered", entered) in typed(keys)


def test_the_line_has_history_and_completion():
    async def read():
        async with desk(completer=WordCompleter(["/think"], sentence=True)) as place:
            typist = Typist()
            async with place.bottom.reading(typist):
                place.source.send_text("earlier\r")
                place.source.send_text("/th")
                await place.shows("» /th", " /think")  # the menu
                place.source.send_text(TAB)
                await place.shows("» /think")
                place.source.send_text("\x15" + UP)
                await place.shows("» earlier")
                place.source.send_text(" one\rend\r")
                await asyncio.wait_for(typist.has_ended.wait(), 10)
            return [text for _, text in typist.told]

    assert asyncio.run(read()) == ["earlier", "earlier one", "end"]


def test_a_long_paste_is_one_character_and_entered_whole():
    many = "\n".join(f"line {n}" for n in range(500))

    assert typed(PASTE.format(many) + "\x7f" + "a" + PASTE.format(many) + "\r") == [
        ("entered", f"a{many}")
    ]


def test_blank_lines_are_nothing():
    assert typed("\r", "  \r") == []


def test_esc_stops_and_ctrl_c_interrupts():
    assert typed(ESC) == ["stop"]
    assert typed(ESC * 2, CTRL_C) == ["stop", "stop", "interrupt"]
    assert typed("half a line", ESC) == ["stop"]


def test_an_arrow_is_no_esc():
    assert typed(UP, "\x1b[B") == []


def test_esc_and_ctrl_c_end_a_search_before_they_stop():
    assert typed("apples\r", "\x12", "app", ESC) == [("entered", "apples")]
    assert typed("apples\r", "\x12", "app", CTRL_C) == [("entered", "apples")]


@pytest.mark.parametrize("key", [ALT_UP, UP])
def test_what_was_queued_last_is_taken_back(key):
    assert typed(key, "!\r", back=["one", "two"]) == [("entered", "two!")]


def test_what_is_taken_back_stands_before_what_was_typed_since():
    assert typed("since" + ALT_UP + "\r", back=["one"]) == [("entered", "one\nsince")]


def test_keys_belong_to_others_while_it_is_paused():
    async def read():
        async with desk() as place:
            typist = Typist()
            async with place.bottom.reading(typist):
                place.source.send_text("kept")
                await place.shows("» kept")
                async with place.bottom.paused():
                    assert place.terminal.shown() == ""
                    place.source.send_text("y")
                    await asyncio.sleep(0.02)
                    assert [press.key for press in place.source.read_keys()] == ["y"]
                await place.shows("» kept")
                place.source.send_text("\x15end\r")
                await asyncio.wait_for(typist.has_ended.wait(), 10)
            return typist.told

    assert asyncio.run(read()) == [("entered", "end")]


def test_the_prompt_goes_on_with_the_line_where_the_cursor_stands():
    async def read():
        async with desk() as place:
            async with place.bottom.reading(Typist()):
                place.source.send_text("my lne" + LEFT * 2)
                await place.shows("» my lne")
            reading = asyncio.ensure_future(place.prompts.read())
            await asyncio.sleep(0.5)
            place.source.send_text("i\r")
            return await asyncio.wait_for(reading, 10), place.bottom.text

    assert asyncio.run(read()) == ("my line", "")


def test_what_is_printed_goes_above_whole_and_once_and_nothing_flickers():
    """After every single write what is under way is on the screen."""

    async def work():
        async with desk() as place:
            async with place.bottom.reading(Typist()):
                place.parts = [Text("spinner")]
                place.source.send_text("typed")
                await place.shows("spinner\n» typed")
                place.terminal.seen.clear()
                for number in range(200):
                    place.console.print(Text(f"line {number}"))
                    if number % 20 == 0:
                        await asyncio.sleep(0.01)
                await place.shows("line 199\nspinner\n» typed")
                seen = [*place.terminal.seen]
            return seen, place.terminal.scrolled()

    seen, left = asyncio.run(work())

    assert [shown for shown in seen if not shown.endswith("spinner\n» typed")] == []
    assert left == [f"line {number}" for number in range(200)]


def test_what_is_printed_last_is_there_when_it_ends_and_nothing_else():
    async def work():
        async with desk() as place:
            async with place.bottom.reading(Typist()):
                place.parts = [Text("spinner")]
                await place.shows("spinner")
                place.console.print("the last line")
            return place.terminal.shown()

    assert asyncio.run(work()) == "the last line"


def test_work_that_ends_at_once_leaves_nothing():
    async def work():
        async with desk() as place:
            async with place.bottom.reading(Typist()):
                place.console.print("done")
            return place.terminal.shown()

    assert asyncio.run(work()) == "done"


@pytest.mark.parametrize("typed", ["", "a line", PASTE.format("a\nb\nc\nd")])
def test_what_is_under_way_is_cut_at_its_top_to_what_the_screen_has_room_for(typed):
    async def work():
        async with desk() as place:
            place.parts = [Text(f"row {number}") for number in range(100)]
            async with place.bottom.reading(Typist()):
                place.source.send_text(typed)
                await place.shows(
                    "row 99", "»" if not typed else typed[-1:] if "~" not in typed else "d"
                )
                return place.terminal.shown().split("\n")

    shown = asyncio.run(work())

    rows = [line for line in shown if line.startswith("row")]
    assert rows[-1] == "row 99"
    assert len(shown) in (23, 24)


def test_where_nothing_can_be_typed_what_is_under_way_moves_all_the_same():
    """Prompts come from a pipe, and somebody looks at a terminal."""

    async def work():
        with create_app_session(Silence(), DummyOutput()):
            terminal = Emulator()
            console = Console(file=Terminal(terminal), force_terminal=True, width=80)
            bottom = Bottom(console, Buffer(), Pastes(), source=Silence())
            seen = iter(range(1000))
            bottom.under_way = lambda _room: [Text(f"frame {next(seen)}")]
            async with bottom.reading(Typist()):
                while "frame 3" not in terminal.shown():
                    await asyncio.sleep(0.01)
            return terminal.seen

    assert not any("»" in shown for shown in asyncio.run(work()))


def test_what_cannot_be_drawn_is_told_once_and_the_work_goes_on():
    async def work():
        async with desk() as place:
            typist, broken = Typist(), ValueError("cannot be drawn")

            def under_way(_room):
                raise broken

            async with place.bottom.reading(typist):
                place.bottom.under_way = under_way
                while not typist.told:
                    await asyncio.sleep(0.01)
                place.console.print("the work goes on")
            return typist.told == [broken], place.terminal.shown()

    assert asyncio.run(work()) == (True, "the work goes on")


def test_a_terminal_that_has_gone_ends_it_in_silence():
    async def work():
        async with desk() as place:
            async with place.bottom.reading(Typist()):
                await asyncio.sleep(0)
                place.source.close()
                await asyncio.sleep(0.05)
                place.console.print("said")
            return place.terminal.shown()

    assert asyncio.run(work()) == "said"
