"""How what is under way looks: the pieces that a screen is made of."""

import pytest

from app.repl.under_way import Block, end_of, folded, took


@pytest.mark.parametrize(
    ("seconds", "told"),
    [(0.99, ""), (1, " 1s"), (59.9, " 59s"), (60, " 1m 00s"), (3_605, " 60m 05s")],
)
def test_how_long_it_took(seconds, told):
    assert took(seconds) == told


def test_the_end_of_a_long_code_block_is_still_code():
    shown = end_of("```py\n" + "x\n" * 500, 10).split("\n")

    assert shown[0] == "```py"
    assert len(shown) <= 21
    assert end_of("```py\nx\n", 10) == "```py\nx\n"


def test_a_thought_says_how_many_lines_it_had():
    assert "2 lines" in folded(Block(thinking=["one\n", "two\n"]), 0)
