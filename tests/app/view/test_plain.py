"""Nothing that a terminal would obey gets through."""

import subprocess
import sys

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.view.plain import fitted, one_line, plain

OBEYED = (
    {chr(code) for code in [*range(0x20), *range(0x7F, 0xA0)]} - {"\n", "\t"}
    | {chr(code) for code in [*range(0x202A, 0x202F), *range(0x2066, 0x206A), 0x2028, 0x2029]}
    | {chr(code) for code in range(0xD800, 0xE000)}
)


@given(st.text(st.characters() | st.sampled_from(sorted(OBEYED))))
def test_what_comes_out_holds_nothing_that_a_terminal_obeys(text):
    assert not OBEYED & set(plain(text))
    assert plain(plain(text)) == plain(text)


@given(st.text(st.characters(exclude_categories=["Cc", "Cf", "Cs", "Zl", "Zp"]) | st.just("\n")))
def test_ordinary_text_stays_as_it_is(text):
    assert plain(text) == text


def test_control_characters_become_visible():
    assert plain("\x1b[2J\x07\x7f\x9b1m\u202e\r") == "␛[2J␇␡\\x9b1m\\u202e␍"
    assert plain("windows\r\nlines\r\n") == "windows\nlines\n"


def test_one_line_is_one_line_of_a_given_width():
    assert one_line("a\n  b\x1b", 10) == "a b␛"
    assert one_line("x" * 20, 5) == "xxxx…"


def test_what_needs_no_terminal_imports_none():
    code = (
        "import sys, app.view.plain, app.approvers; "
        "sys.exit(bool({'rich', 'prompt_toolkit'} & set(sys.modules)))"
    )

    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0


@pytest.mark.parametrize(
    ("text", "width", "expected"),
    [
        ("abcdef", 6, "abcdef"),
        ("abcdef", 5, "abcd…"),
        ("你好吗", 6, "你好吗"),
        ("你好吗", 5, "你好…"),
        ("你好吗", 4, "你…"),
        ("你好a", 4, "你…"),
        ("e\u0301e\u0301", 2, "e\u0301e\u0301"),
    ],
)
def test_what_is_cut_fits_the_cells_of_the_screen(text, width, expected):
    assert fitted(text, width) == expected
