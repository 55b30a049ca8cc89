"""Text and JSON made valid."""

import json

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.text import MAX_NESTING, TOO_DEEP, decoded, valid, valid_json
from tests.strategies import json_text

any_text = st.text(st.characters(exclude_categories=()), max_size=8)


def nested(depth, inside=()):
    value = list(inside)
    for _ in range(depth - 1):
        value = [value]
    return value


@pytest.mark.parametrize(
    ("given_text", "expected"),
    [
        ("a\ud83d", "a\ufffd"),
        ("\udcff", "\ufffd"),
        ("\ud83d\ude00", "😀"),
        ("\ude00\ud83d", "\ufffd\ufffd"),
        ("", ""),
    ],
)
def test_lone_surrogates_become_replacement_characters_and_pairs_one_character(
    given_text, expected
):
    assert valid(given_text) == expected


@given(any_text)
def test_valid_text_can_be_encoded_and_stays_as_it_is(text):
    once = valid(text)

    once.encode()
    assert valid(once) == once


@given(st.text())
def test_text_without_surrogates_is_not_touched(text):
    assert valid(text) == text


def test_json_is_copied_with_all_its_text_and_keys_valid():
    value = {"\ud83d": ["a\udcff", ("b", 1, None, True, 1.5)], 3: {}}

    assert valid_json(value) == {"\ufffd": ["a\ufffd", ["b", 1, None, True, 1.5]], "3": {}}
    assert "\ud83d" in value


@pytest.mark.parametrize("number", [float("nan"), float("inf"), -float("inf")])
def test_numbers_that_json_does_not_have_are_null(number):  # Z7
    assert valid_json([number, 10**20]) == [None, 10**20]


def test_what_nests_too_deeply_is_replaced_and_what_does_not_is_kept():  # Z6
    assert valid_json(nested(300)) == nested(300)
    assert valid_json(nested(MAX_NESTING + 2)) == nested(MAX_NESTING, [TOO_DEEP])


def test_even_the_deepest_json_that_can_be_parsed_is_taken():
    deep = json.loads("[" * 900 + "]" * 900)

    assert msgspec.json.decode(msgspec.json.encode(valid_json(deep)))


@pytest.mark.parametrize(
    ("raw", "value"),
    [
        (b'{"a": 1}', {"a": 1}),
        (rb'"\ud83d"', "\ufffd"),  # E3, Z4
        (rb'"\ud83d\ude00"', "😀"),
        (b"NaN", None),
        (b"[1e999]", [None]),
        (b'"\xff"', "\ufffd"),
        (b'"a\nb"', "a\nb"),
        (b"123456789012345678901", 123456789012345678901),
        (b"", None), (b"{", None), (b"\0\0", None), (b"[" * 10**5, None),
    ],
)  # fmt: skip
def test_json_is_read_whatever_an_old_log_holds(raw, value):
    assert decoded(raw) == value


@given(st.recursive(any_text | st.floats() | st.integers(), st.lists))
def test_what_the_standard_library_writes_is_read_as_its_valid_copy(value):
    assert decoded(json_text(value)) == valid_json(value)
