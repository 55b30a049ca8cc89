"""How tool calls look before and after they run."""

import io

import pytest
from rich.console import Console

from app.repl.tool_view import output_lines, show_change


def change(name, **arguments):
    console = Console(file=io.StringIO(), width=60)
    show_change(console, name, arguments)
    return console.file.getvalue()


def shown(name, text, **more):
    return [line.text for line in output_lines(name, text, is_error=False, **more)]


def test_edits_are_told_apart():
    edits = [{"old_text": "a", "new_text": "b"}, {"old_text": "c\nd", "new_text": "c\ne"}]

    assert change("edit", edits=edits) == "  -a\n  +b\n  ⋮\n   c\n  -d\n  +e\n"


def test_a_file_that_ends_in_a_line_feed_has_no_empty_line_after_it():
    assert change("write", path="a", content="one\n\ntwo\n") == "  +one\n  +\n  +two\n"


def test_an_edit_shows_what_changed_and_not_where():
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +9 @@\n-nine\n+9\n"

    assert shown("edit", diff) == [" one", "-two", "+2", "⋮", "-nine", "+9"]


@pytest.mark.parametrize(("name", "most"), [("read", 5), ("bash", 10)])
def test_of_a_long_output_the_ends_are_shown(name, most):
    lines = shown(name, "\n".join(map(str, range(30))))

    assert len(lines) == most
    assert (lines[0], lines[-1]) == ("0", "29")


def test_an_endless_line_is_cut_in_cells():
    assert shown("bash", "汉" * 300) == ["汉" * 199 + "…"]


@pytest.mark.parametrize(
    ("printed", "expected"),
    [
        ("\x1b[1;31mred\x1b[0m\x1b[K done", ["red done"]),
        ("\r10%\r20%\r\n\rone\r\ntwo\r", ["20%", "one", "two"]),
        ("a\x1b[2Jb\x07", ["a␛[2Jb␇"]),
    ],
)
def test_colours_and_what_was_written_over_are_left_out(printed, expected):
    assert shown("bash", printed) == expected
