"""What becomes of a text: every line that goes or comes is there, with its number."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.view import differences
from app.view.differences import numbered, rows_of

LINES = st.lists(st.sampled_from("abc"), max_size=12).map(
    lambda lines: "".join(f"{line}\n" for line in lines)
)


def changes(before, after):
    """Return the lines that go and those that come, with their numbers."""
    rows = rows_of(before, after)
    return [
        [(int(row.number), row.text) for row in rows if row.sign == sign] for sign in ("-", "+")
    ]


@given(LINES, LINES)
@pytest.mark.parametrize("most", [differences.MOST_COMPARED, 0], ids=["compared", "too large"])
def test_what_goes_and_comes_makes_the_one_text_of_the_other(most, before, after):
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(differences, "MOST_COMPARED", most)
        goes, comes = changes(before, after)
    lines, wanted = before.splitlines(), after.splitlines()

    assert all(lines[number - 1] == text for number, text in goes)
    assert all(wanted[number - 1] == text for number, text in comes)
    gone, come = {number for number, _ in goes}, {number for number, _ in comes}
    assert [text for number, text in enumerate(lines, 1) if number not in gone] == [
        text for number, text in enumerate(wanted, 1) if number not in come
    ]


def test_blank_lines_that_go_are_not_counted_with_those_that_come():
    rows = rows_of("\n\n\n", " \n \n \n")

    assert [(row.sign, row.text) for row in rows] == [("-", "")] * 3 + [("+", "·")] * 3


def test_that_no_line_feed_ends_a_file_is_no_line_of_it():
    rows = numbered(["@@ -8,2 +9,2 @@", " a\n", "-b\n", "\\ No newline\n", "+c\n", " d\n"])

    assert [(row.number.strip(), row.sign) for row in rows] == [
        ("9", " "), ("9", "-"), ("", " "), ("10", "+"), ("11", " ")
    ]  # fmt: skip
