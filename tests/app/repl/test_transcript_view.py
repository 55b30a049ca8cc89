"""A transcript on the terminal."""

import io
from datetime import UTC, datetime

import pytest
from rich.console import Console

from app.repl.transcript_view import show_transcript
from domain.projections.transcript import Item

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
        "  no such file\n\n⚠ events lost here: 2 (6-7)\n\n"
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
