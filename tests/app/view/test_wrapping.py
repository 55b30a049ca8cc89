"""Where lines may be broken, and what code looks like: no character is lost or changed."""

import pytest
from rich.text import Text

from app.view.highlighting import highlighted
from app.view.wrapping import wrapped


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("aa bb cc", ["aa bb", "cc"]),
        ("aa bb    ", ["aa bb    "]),
        ("aa bbb c", ["aa", "bbb c"]),
        ("中文字", ["中文", "字"]),
        ("中。。。", ["中。。。"]),
        ("中a（文", ["中a", "（文"]),
    ],
)
def test_a_line_takes_as_much_as_fits(text, lines):
    assert [line.plain for line in wrapped(Text(text), 5)] == lines


CODE = 'x = "a"  # why\nif 1: pass\n'


def test_each_kind_of_word_has_its_style():
    text = highlighted(CODE, "python")
    styles = {text.plain[span.start : span.end]: span.style for span in text.spans}

    for word, style in (("if", "keyword"), ("a", "string"), ("1", "number"), ("# why", "comment")):
        assert styles[word] == f"code.{style}"


@pytest.mark.parametrize("code", ["\n\n" + CODE, CODE + "\n ", "\tx = 1\t ", "x = 1"])
def test_coloured_code_keeps_its_blanks(code):
    text = highlighted(code, "python")

    assert text.plain == code
    assert text.spans


@pytest.mark.parametrize("code", ["\ufeffx = 1", CODE * 1_000])
def test_what_cannot_be_coloured_or_would_take_long_is_shown_as_it_is(code):
    text = highlighted(code, "python")

    assert (text.plain, text.spans) == (code, [])
