"""The tree, folded."""

import pytest

from app.repl.navigator import Folds
from domain.projections.outline import outline
from tests.builders import assistant, conversation, moved, started, user


@pytest.fixture
def folds():
    """Two ways on from 3: 4 and 5; and 7 to 9, where the leaf is. 1 and 6 are no entries."""
    tree = conversation(
        started(),
        user("root"),
        assistant("fork"),
        user("left"),
        assistant("left end"),
        moved(3),
        user("right"),
        assistant("right on"),
        user("right end"),
    )
    return Folds(list(outline(tree)), set())


def shown(folds):
    return [row.value for row in folds.rows()]


def test_nothing_is_folded_at_first(folds):
    assert shown(folds) == [2, 3, 4, 5, 7, 8, 9]


def test_what_hangs_from_a_folded_entry_is_counted_not_shown(folds):
    assert folds.fold(4) == 4
    assert shown(folds) == [2, 3, 4, 7, 8, 9]
    assert "⋯ 1 folded ⋯ left" in folds.rows()[2].text

    assert folds.fold(3) == 3
    assert shown(folds) == [2, 3]
    assert "⋯ 5 folded ⋯ fork" in folds.rows()[1].text


def test_folding_what_is_folded_goes_to_where_the_branch_begins_then_out_of_it(folds):
    assert folds.fold(9) == 7
    assert folds.fold(7) == 7
    assert folds.fold(7) == 3
    assert folds.fold(3) == 3
    assert folds.fold(3) == 2
    assert folds.fold(2) == 2
    assert folds.fold(2) == 2


def test_unfolding_shows_what_was_seen_before(folds):
    folds.fold(4)
    folds.fold(3)

    assert folds.unfold(3) == 3
    assert shown(folds) == [2, 3, 4, 7, 8, 9]
    assert folds.unfold(9) == 9
