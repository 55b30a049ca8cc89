"""An edit whose text differs only in what nobody sees is matched, or told how it differs."""

import json
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.tools.matching import NoMatchError, match


def edited(text, old, new):
    found = match(text, old, new)
    return text[: found.start] + found.new + text[found.end :]


@pytest.mark.parametrize(
    ("text", "old", "new", "after", "named"),
    [
        ("say “hi” now\n", 'say "hi" now', 'say "hi" later', "say “hi” later\n", "U+201C"),
        ("it’s one – two\n", "it's one - two", "it's one - 2", "it’s one – 2\n", "U+2013"),
        ("a\u00a0b c\n", "a b c", "a b d", "a\u00a0b d\n", "U+00A0"),
        ("全角\u3000空\n", "全角 空", "全角 白", "全角\u3000白\n", "U+3000"),
        ("cafe\u0301 one\n", "café one", "café two", "cafe\u0301 two\n", "U+0065 U+0301"),
        ("café one\n", "cafe\u0301 one", "cafe\u0301 two", "café two\n", "'é'"),
        ("one  \ntwo\t\nthree\n", "one\ntwo\nthree", "one\ntwo\n3", "one  \ntwo\t\n3\n", "blanks"),
        ("one\ntwo\n", "one  \ntwo", "one  \n2", "one\n2\n", "blanks"),
        ("one\ntwo\n", "one\t\ntwo", "one\t\n2", "one\n2\n", "blanks"),
        ("“éx”\n", '"e\u0301x"', '"ex"', "“ex”\n", "U+201C"),
    ],
)
def test_what_nobody_sees_is_matched_and_stays(text, old, new, after, named):
    found = match(text, old, new)

    assert text[: found.start] + found.new + text[found.end :] == after
    assert named in found.remark


def test_the_line_is_named():
    assert (
        "line 3 has '’' (U+2019) where you wrote \"'\" (U+0027)"
        in match("one\ntwo\nit’s\n", "two\nit's", "x").remark
    )


@pytest.mark.parametrize(
    ("text", "old", "message"),
    [
        ("“a”\n“a”\n", '"a"', "like 2 places (at lines 1, 2)"),
        ("cafe\u0301\n", "cafe ", "not found"),
        ("a\n    b = 1\n", "    b = 2", "not found"),
        ("def f():\n\treturn 1\n", "def f():\n    return 1", r"line 2 of the file is '\treturn 1'"),
        ("x\n", "   ", "not found"),
        ("a\u00a0b\n", " ", "not found"),
        ("x\n", "  \n", "not found"),
        ("“cafe\u0301”\n", '"cafe', "not found"),
        ("é“x\n", '\u0301"x', "not found"),
        ("“ﬁ”x²\n", '"fi"x2', "not found"),
    ],
)
def test_what_differs_otherwise_is_told(text, old, message):
    with pytest.raises(NoMatchError) as error:
        match(text, old, "new")
    assert message in str(error.value)


@pytest.mark.parametrize(
    ("plain", "likenesses"),
    [
        ("'", "‘’‚‛′"),
        ('"', "“”„‟″"),
        ("-", "‐‑‒–—―−"),
        (" ", "\u00a0\u1680\u2000\u2004\u2009\u200a\u202f\u205f\u3000"),
    ],
)
def test_these_look_alike(plain, likenesses):
    for one in likenesses:
        assert edited(f"a{one}b c", f"a{plain}b c", f"a{plain}b d") == f"a{one}b d"


def test_an_exact_match_comes_first():
    assert edited('“a” "a"', '"a"', "b") == "“a” b"


@given(st.text('aé’"“ -–\u00a0\nß한e\u0301', max_size=40), st.text("xyé“", max_size=4))
def test_a_text_is_found_in_every_normal_form(text, new):
    for form in ("NFC", "NFD"):
        wanted = unicodedata.normalize(form, text)
        if not wanted.strip():
            continue
        try:
            after = edited(f"x{text}x", f"x{wanted}x", f"x{wanted}x{new}")
        except NoMatchError:
            continue  # found in two places
        assert after == f"x{text}x{new}"


@pytest.mark.parametrize(
    "arguments",
    [
        {"edits": json.dumps([{"old_text": "one", "new_text": "two"}])},
        {"edits": json.dumps({"old_text": "one", "new_text": "two"})},
        {"edits": {"old_text": "one", "new_text": "two"}},
        {"old_text": "one", "new_text": "two"},
    ],
)
def test_edits_in_another_form_are_understood(call, context, arguments):
    (context.cwd / "a.txt").write_text("one\n")

    assert not call("edit", path="a.txt", **arguments).is_error
    assert (context.cwd / "a.txt").read_text() == "two\n"


@pytest.mark.parametrize(
    "arguments",
    [
        {"path": "a.txt", "edits": "one -> two"},
        {"path": "a.txt", "edits": '[{"old_text": "o'},
        {"path": "a.txt", "edits": "[" * 100_000},
        {"path": "a.txt", "edits": ["one"]},
        {"file_path": "a.txt", "edits": [{"old_text": "one", "new_text": "two"}]},
        {"path": "a.txt", "edits": [{"old_string": "one", "new_string": "two"}]},
        {"path": "a.txt", "old_text": "one"},
    ],
)
def test_others_are_refused_with_the_shape_shown(call, context, arguments):
    (context.cwd / "a.txt").write_text("one\n")

    output = call("edit", **arguments)

    assert output.is_error
    shape = '{"path": "…", "edits": [{"old_text": "…", "new_text": "…"}]}'
    assert f"edit takes: {shape}" in output.content
    assert len(output.content) < 2_000
