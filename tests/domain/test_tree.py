"""The tree, as bare structure."""

from hypothesis import given
from hypothesis import strategies as st

from domain import tree


@st.composite
def trees(draw):
    parents = {}
    for version in draw(st.lists(st.integers(1, 60), unique=True, max_size=20).map(sorted)):
        parents[version] = draw(st.sampled_from([None, *parents]))
    return parents


def any_of(parents):
    return st.sampled_from([None, *parents])


def path(parents, leaf):
    return () if leaf is None else (*path(parents, parents[leaf]), leaf)


def test_children_are_listed_oldest_first_and_roots_under_none():
    assert tree.children({1: None, 3: 1, 4: 1, 9: None}) == {None: [1, 9], 1: [3, 4]}


@given(trees())
def test_every_entry_is_the_child_of_exactly_one(parents):
    children = tree.children(parents)

    assert sorted(child for family in children.values() for child in family) == list(parents)


@given(trees(), st.data())
def test_the_common_ancestor_is_the_newest_entry_on_both_paths(parents, data):
    one, other = data.draw(any_of(parents)), data.draw(any_of(parents))
    shared = set(path(parents, one)) & set(path(parents, other))

    assert tree.common_ancestor(parents, one, other) == max(shared, default=None)
