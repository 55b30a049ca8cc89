"""Text in which nothing is unseen, whatever its size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.view.visible import MOST_BLANKS, visible, visible_lines


@given(st.text())
def test_every_line_is_printable_whatever_is_in_it(text):
    for line in visible_lines(text):
        assert line.isprintable()


@given(st.text(alphabet=st.characters(codec="ascii", exclude_categories=["Cc"]), min_size=1))
def test_printable_text_loses_nothing_but_its_runs_of_blanks(text):
    if " " * (MOST_BLANKS + 1) not in text and text[-1] != " ":
        assert visible(text) == text


@pytest.mark.timeout(60)  # the square of this would be days
@pytest.mark.parametrize("blank", [" ", "\t", " \t"])
def test_millions_of_blanks_are_counted_in_one_pass(blank):
    count = 5_000_000

    assert visible(blank * count + "rm") == f"⟨{count * len(blank):,} blanks⟩rm"
    assert visible("rm" + blank * count) == f"rm⟨{count * len(blank):,} blanks⟩"


@pytest.mark.parametrize("count", [32, 33])
def test_more_than_a_few_blanks_are_counted(count):
    shown = " " * 32 if count == 32 else "⟨33 blanks⟩"

    assert visible(f"a{' ' * count}rm") == f"a{shown}rm"


@pytest.mark.parametrize("count", [3, 4])
def test_more_than_a_few_blank_lines_are_counted(count):
    shown = [""] * 3 if count == 3 else ["⟨4 blank lines⟩"]

    assert visible_lines("a" + "\n" * (count + 1) + "rm") == ["a", *shown, "rm"]


def test_lines_of_other_blanks_are_not_blank():
    assert visible_lines("\n".join(["\u2003"] * 9)) == ["\\u2003"] * 9


@pytest.mark.parametrize(
    "character",
    "\u034f\u115f\u1160\u17b4\u17b5\u180b\u180e\u2800\u3164\ufe00\ufe0f\uffa0\U0001d159\U000e0100"
    "\u00a0\u00ad\u200b\u200f\u202e\u2060\u2066\ufeff\U000e0061\ue000\u0378",
)
def test_what_leaves_no_mark_on_the_screen_is_shown_as_its_code(character):
    code = ord(character)

    assert visible(f"a{character}b") == (
        f"a\\u{code:04x}b" if code <= 0xFFFF else f"a\\U{code:08x}b"
    )


@pytest.mark.parametrize("mark", "\u0300\u036f\u0489\u20d0\u20f0")
def test_a_mark_that_stands_on_no_letter_is_shown_as_its_code(mark):
    assert visible(f"rm /{mark}x") == f"rm /\\u{ord(mark):04x}x"


def test_letters_keep_their_accents():
    assert visible("cafe\u0301 o\u0323\u0302") == "cafe\u0301 o\u0323\u0302"
