"""Text in which nothing is unseen, whatever its size."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.repl.visible import MOST_BLANKS, visible, visible_lines


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
