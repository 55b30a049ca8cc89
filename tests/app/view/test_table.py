"""A table of any values fits the screen, loses no row, and nothing in it commands the terminal."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from app.view.plain import cells, plain
from app.view.table import shown, table
from tests.levels import examples

WORDS = st.text(st.characters(codec="utf-8"), max_size=40) | st.sampled_from(
    ["数据库里的连接被拒绝了" * 9, "a b " * 30, "x" * 99, "\x1b[2J", "line\nline", "01a2384d-3ac3"]
)
CELLS = st.none() | st.integers(-(2**63), 2**63 - 1) | st.floats() | WORDS | st.binary(max_size=20)


@st.composite
def tables(draw):
    width = draw(st.integers(1, 8))
    names = draw(st.lists(WORDS, min_size=width, max_size=width))
    row = st.tuples(*[CELLS] * width)
    return names, draw(st.lists(row, min_size=1, max_size=5))


@settings(max_examples=examples(300))
@given(tables(), st.integers(20, 200))
def test_a_table_fits_or_is_a_list_of_all_cells(of, room):
    names, rows = of
    lines = list(table(names, rows, room))

    assert all(plain(line) == line and "\n" not in line for line in lines)
    is_table = len(lines) == len(rows) + 1 and all(cells(line) <= room for line in lines)
    assert is_table or len(lines) == len(rows) * (len(names) + 1) - 1


@settings(max_examples=examples(300))
@given(tables())
def test_in_a_pipe_nothing_is_cut(of):
    names, rows = of
    head, *lines = table(names, rows, None)

    assert len(lines) == len(rows)
    for line, row in zip(lines, rows, strict=True):
        for cell in row:
            assert " ".join(plain(shown(cell)).split()) in line
    assert all(" ".join(plain(name).split()) in head for name in names)


def test_columns_stand_below_one_another_and_ids_are_whole():
    rows = [("01a2384d-3ac3-7428-8f0c-b6d148e0a1aa", "数据库", 7), (None, "some words " * 5, 1234)]
    names = ("id", "title", "n")

    assert list(table(names, rows, 64)) == [
        "id                                    title                    n",
        "01a2384d-3ac3-7428-8f0c-b6d148e0a1aa  数据库                   7",
        "NULL                                  some words some wor…  1234",
    ]
    assert list(table(names, rows[:1], 50)) == list(table(names, rows[:1], None))
    assert list(table(names, rows, 40)) == [
        "id     01a2384d-3ac3-7428-8f0c-b6d148e0a1aa",
        "title  数据库",
        "n      7",
        "",
        "id     NULL",
        "title  some words some words some words some words some words",
        "n      1234",
    ]


@pytest.mark.parametrize(
    ("cell", "text"),
    [(None, "NULL"), (0.1 + 0.2, "0.3"), (1e999, "inf"), (2**63 - 1, "9223372036854775807"),
     (b"\x00\xff", "x'00ff'"), ("", "")],
)  # fmt: skip
def test_a_cell_says_what_it_is(cell, text):
    assert shown(cell) == text
