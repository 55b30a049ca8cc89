"""How tool calls look before and after they run."""

import pytest

from app.view.tools import output_lines


def shown(name, text, **more):
    return [line.text for line in output_lines(name, text, is_error=False, **more)]


def test_an_edit_shows_what_changed_and_where():
    diff = "--- a/x\n+++ b/x\n@@ -1,2 +1,2 @@\n one\n-two\n+2\n@@ -9 +10 @@\n-nine\n+9\n"

    assert shown("edit", diff) == [
        " 1  one", " 2 -two", " 2 +2", "    ⋮", " 9 -nine", "10 +9"
    ]  # fmt: skip


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
