"""A list to choose from."""

import asyncio
import io
import re

import pytest
from prompt_toolkit.application import create_app_session
from prompt_toolkit.application.current import set_app
from prompt_toolkit.data_structures import Size
from prompt_toolkit.input import create_pipe_input
from prompt_toolkit.output import DummyOutput
from prompt_toolkit.output.vt100 import Vt100_Output

from app.repl.chooser import Choice, Chooser, Chosen

FRUIT = [Choice(n, text) for n, text in enumerate(["red apple", "green pear", "green apple"])]


def chosen(keys, **options):
    async def ask():
        with create_pipe_input() as source, create_app_session(source, DummyOutput()):
            chooser = Chooser("Fruit", FRUIT, actions={"c-r": "rename"}, hint="", **options)
            source.send_text(keys)
            return await asyncio.wait_for(chooser.ask(), 10)

    return asyncio.run(ask())


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        ("\r", Chosen("enter", 0)),
        ("\x1b[B\x1b[B\x1b[B\x1b[B\x1b[A\r", Chosen("enter", 1)),
        ("apple green\r", Chosen("enter", 2)),
        ("\x1b[F\r", Chosen("enter", 2)),
        ("\x1b[F\x1b[H\r", Chosen("enter", 0)),
        ("\x1b[6~\x1b[5~\r", Chosen("enter", 0)),
        ("pear\x12", Chosen("rename", 1)),
        ("zzz\r\x7f\x7f\x7f\x1b[B\r", Chosen("enter", 1)),
        ("\x03", None),
        ("\x1b", None),
    ],
)
def test_keys_move_filter_act_and_leave(keys, expected):
    assert chosen(keys) == expected


def test_it_begins_where_it_is_told():
    assert chosen("\r", at=1) == Chosen("enter", 1)
    assert chosen("\r", at=2, wanted="green") == Chosen("enter", 2)
    assert chosen("\r", preview=lambda value: f"about {value}") == Chosen("enter", 0)


class FoldingOfFruit:
    """Folding hides the green apple, which is then at the green pear."""

    def __init__(self):
        self.is_folded = False

    def rows(self):
        return FRUIT[:2] if self.is_folded else FRUIT

    def fold(self, value):
        self.is_folded = True
        return value

    def unfold(self, value):
        self.is_folded = False
        return value


LEFT, RIGHT, DOWN = "\x1b[D", "\x1b[C", "\x1b[B"


@pytest.mark.parametrize(
    ("keys", "expected"),
    [
        (f"{DOWN}{DOWN}{LEFT}\r", 1),
        (f"{LEFT}{DOWN}{DOWN}\r", 1),
        (f"{LEFT}{RIGHT}{DOWN}{DOWN}\r", 2),
        (f"{LEFT}green apple\r", 2),
        (f"{LEFT}green apple\x15\r", 1),
        (f"pple{LEFT}{LEFT}{LEFT}{LEFT}green a{DOWN}{DOWN}\r", 2),
    ],
)
def test_what_is_folded_away_is_found_by_who_searches(keys, expected):
    fruit = FoldingOfFruit()
    folds = {"left": fruit.fold, "right": fruit.unfold}

    assert chosen(keys, unfolded=fruit.rows, folds=folds) == Chosen("enter", expected)


def test_of_many_rows_those_around_the_cursor_are_seen():
    """The cursor moves through them, and they move only where it would leave them."""
    many = [Choice(n, f"row {n}") for n in range(5_000)]

    class Drawn(DummyOutput):
        def __init__(self):
            self.text = ""

        def write(self, data):
            self.text += data

    async def seen(*places):
        with create_pipe_input() as source, create_app_session(source, Drawn()) as session:
            chooser = Chooser("Many", many, actions={}, hint="")
            for place in places:
                chooser._place, session.output.text = place, ""
                with set_app(chooser._app):
                    chooser._app.renderer.reset()
                    chooser._app.renderer.render(chooser._app, chooser._app.layout)
                rows = re.findall(r"row (\d+)", session.output.text)
                yield int(rows[0]), int(rows[-1]), len(rows)

    async def all_seen():
        return [each async for each in seen(0, 34, 35, 20, 4_999, 0)]

    assert asyncio.run(all_seen()) == [
        (0, 34, 35),
        (0, 34, 35),
        (1, 35, 35),
        (1, 35, 35),
        (4_965, 4_999, 35),
        (0, 34, 35),
    ]


@pytest.mark.parametrize("first", ["_on_resize", "_redraw"], ids=["SIGWINCH", "a frame"])
def test_a_list_leaves_nothing_behind_where_the_window_becomes_narrower(first):
    """The title of 50 cells has become three lines: the list is taken off from the first.

    Whatever comes *first*: the signal, or a frame that is drawn before it.
    """
    size, written = Size(24, 80), io.StringIO()

    async def narrow():
        nonlocal size
        output = Vt100_Output(written, lambda: size, enable_cpr=False)
        with create_pipe_input() as source, create_app_session(source, output):
            chooser = Chooser("x" * 41, FRUIT, actions={}, hint="")
            asking = asyncio.ensure_future(chooser.ask())
            while "green apple" not in written.getvalue():
                await asyncio.sleep(0)
            size, before = Size(24, 20), len(written.getvalue())
            getattr(chooser._app, first)()
            source.send_text("\x1b")
            await asyncio.wait_for(asking, 10)
            return written.getvalue()[before:].partition("\x1b[J")[0]

    ups = re.findall(r"\x1b\[(\d*)A", asyncio.run(narrow()))
    assert sum(int(up or 1) for up in ups) == 1 + 2
