"""A transcript on the terminal."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from app.approvers import approval
from app.view.transcript import show_transcript
from domain.calls import NOBODY
from domain.messages import ToolUseBlock
from domain.projections.transcript import Item
from tests import builders as b

CALLED = ToolUseBlock(b.tool_use("t1", command="rm x"))
TIME = datetime(2026, 1, 1, tzinfo=UTC)
CALL = {"type": "tool_use", "id": "t1", "name": "bash", "input": {"command": "ls\n-la"}}
RESULT = {"type": "tool_result", "tool_use_id": "t1", "is_error": True}
ITEMS = (
    Item("user", 2, TIME, "list\nthem \x1b[2J", {}, "start"),
    Item("thinking", 3, TIME, "a\nb", {}),
    Item("assistant", 3, TIME, "**Sure**", {}),
    Item("tool_use", 3, TIME, "bash", CALL),
    Item("tool_result", 5, TIME, "no such file", RESULT),
    Item("gap", 6, TIME, "2 lost", {"first": 6, "last": 7, "unreadable": False}),
    Item("gap", 8, TIME, "1 odd", {"first": 8, "last": 8, "unreadable": True}),
    Item("note", 8, TIME, "hello", {"kind": "memo", "visible": True}),
    Item("summary", 9, TIME, "So far.", {}),
    Item("other", 10, TIME, "(image)", {}),
)


def shown(items=ITEMS, *, fancy=False, **options):
    console = Console(file=io.StringIO(), width=60, force_terminal=fancy, color_system=None)
    show_transcript(console, items, **options)
    return console.file.getvalue()


@pytest.mark.parametrize("fancy", [True, False])
def test_everything_has_its_place(fancy):
    assert shown(fancy=fancy).replace("**", "") == (
        "[start]\n› list\n  them ␛[2J\n\n∴ thought · 2 lines\n\nSure\n\n● $ ls -la\n"
        "no such file\n\n⚠ events lost here: 2 (6-7)\n\n"
        "⚠ 1 event that this version cannot read (8)\n\n✎ memo\nhello\n\n"
        "▽ summary of what came before\nSo far.\n\n· (image)\n"
    )


def test_how_many_came_earlier():
    assert shown(ITEMS[-2:], earlier=7) == (
        "… 7 earlier, not shown\n\n▽ summary of what came before\nSo far.\n\n· (image)\n"
    )


def test_nothing_is_nothing():
    assert shown(()) == ""


def test_a_call_without_a_result_says_so():
    assert shown(ITEMS[3:4]) == "● $ ls -la\n  no result: it was stopped, or never began\n"


def call(name, version, call_id="t1"):
    data = {"type": "tool_use", "id": call_id, "name": "bash", "input": {"command": name}}
    return Item("tool_use", version, TIME, "bash", data)


def result(text, version, call_id="t1"):
    data = {"type": "tool_result", "tool_use_id": call_id}
    return Item("tool_result", version, TIME, text, data)


def test_each_result_stands_below_its_call_in_whatever_order_they_came():
    items = [
        call("one", 3), call("two", 3, "t2"), call("three", 3, "t3"),
        result("out 3", 4, "t3"), result("out 1", 5), result("out 2", 6, "t2"),
    ]  # fmt: skip

    assert shown(items) == "● $ one\nout 1\n\n● $ two\nout 2\n\n● $ three\nout 3\n"


def test_an_id_that_is_used_again_belongs_to_the_newer_call():
    items = [call("one", 3), call("again", 5), result("out", 6), result("stray", 7)]

    assert shown(items) == (
        "● $ one\n  no result: it was stopped, or never began\n\n● $ again\nout\n\n"
        "● a result whose call is not here\nstray\n"
    )


def test_two_calls_of_one_id_get_their_results_in_order():
    items = [call("one", 3), call("two", 3), result("first", 4), result("second", 5)]

    assert shown(items) == "● $ one\nfirst\n\n● $ two\nsecond\n"


@pytest.mark.parametrize(
    ("told", "expected"),
    [
        (approval("no", CALLED).reason, "refused, not run"),
        (
            approval("no", CALLED, reason="not\nnow \x1b[2J").reason,
            "refused, not run: not now ␛[2J",
        ),
        (NOBODY, "refused, not run: nobody was there to ask"),
    ],
)
def test_a_refused_call_is_shown_as_such(told, expected):
    data = {"type": "tool_result", "tool_use_id": "t1", "is_error": True}
    items = [call("rm x", 3), Item("tool_result", 4, TIME, told, data)]

    assert shown(items) == f"● $ rm x\n  {expected}\n"


def test_an_output_that_only_says_so_is_an_output():
    assert shown([call("echo", 3), result(NOBODY, 4)]).endswith(f"\n{NOBODY}\n")
