"""What an answer costs is what the price list says, however it is reckoned."""

import pytest
from genai_prices import Usage, calc_price
from hypothesis import given, settings
from hypothesis import strategies as st

from infrastructure.model import prices
from tests.levels import examples

COUNTS = st.integers(0, 3_000_000)
MODELS = prices.models()


@settings(max_examples=examples(400))
@given(st.sampled_from(MODELS), COUNTS, COUNTS, COUNTS, COUNTS)
def test_an_answer_costs_what_the_library_says(model, sent, given_, read, written):
    usage = {
        "input_tokens": sent,
        "output_tokens": given_,
        "cache_read_input_tokens": read,
        "cache_creation_input_tokens": written,
    }
    counted = Usage(
        input_tokens=sent + read + written,
        cache_read_tokens=read,
        cache_write_tokens=written,
        output_tokens=given_,
    )
    expected = calc_price(counted, model_ref=model, provider_id="anthropic").total_price

    assert prices.cost(model, usage) == expected


def test_the_library_is_asked_a_few_times_for_each_model_not_for_each_answer(monkeypatch):
    asked, real = [], prices._cost
    monkeypatch.setattr(prices, "_cost", lambda *a: (asked.append(a), real(*a))[1])
    prices._rates.cache_clear()
    for count in range(100):
        assert prices.cost("claude-haiku-4-5", {"input_tokens": count}) is not None

    assert len(asked) == 8


def test_there_are_models_whose_price_depends_on_how_many_tokens_there_are():
    """Else nothing here tries them."""
    assert {prices._rates(model)[0] for model in MODELS} == set(prices._MANY)


@pytest.mark.parametrize("model", [None, "unheard-of"])
def test_what_nobody_knows_has_no_price(model):
    assert prices.cost(model, {"input_tokens": 5}) is None
