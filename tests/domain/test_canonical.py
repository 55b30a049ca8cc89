"""Canonical JSON."""

import json
import random

import pytest
from hypothesis import given

from domain.canonical import canonical
from tests.strategies import json_values


def shuffled(value):
    if isinstance(value, dict):
        items = [(key, shuffled(item)) for key, item in value.items()]
        random.Random(1).shuffle(items)
        return dict(items[::-1])
    return [shuffled(item) for item in value] if isinstance(value, list) else value


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (
            {"b": [1, 2.5, None], "a": {"d": True, "c": "x y"}},
            b'{"a":{"c":"x y","d":true},"b":[1,2.5,null]}',
        ),
        ({"é": 1, "z": 2, "𝄞": 3, "\uffff": 4}, '{"z":2,"é":1,"\uffff":4,"𝄞":3}'.encode()),
        ("a\u2028\x85\n\0", '"a\u2028\x85\\n\\u0000"'.encode()),
        ([1, 1.0, 10**20, -0.0], b"[1,1.0,100000000000000000000,-0.0]"),
    ],
)
def test_keys_are_sorted_by_code_point_and_nothing_is_escaped_or_padded(value, expected):
    assert canonical(value) == expected


@given(json_values)
def test_the_order_of_keys_makes_no_difference(value):
    assert canonical(shuffled(value)) == canonical(value)


@given(json_values)
def test_canonical_json_reads_back_as_the_value_and_is_its_own_canonical_form(value):
    back = json.loads(canonical(value))

    assert back == value
    assert canonical(back) == canonical(value)


def test_text_that_no_json_can_carry_is_refused():
    with pytest.raises(UnicodeEncodeError):
        canonical(["\ud83d"])
