"""What models cost and how much they can take in, from the `genai-prices` library.

The library takes half a second to import, so it is imported when the first question is asked.
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from operator import mul
from typing import Any, get_args

from domain.projections.usage import TOKEN_KINDS

_MANY = (10_000_000, 100_000)
"""Tokens that may all cost the same; some models take more for each from 200,000 on."""

DEFAULT_WINDOW = 200_000
"""The window, in tokens, of a model that the library does not know."""


@lru_cache
def context_window(model: str) -> int:
    """Return how many tokens *model* can take in; 200,000 if nobody knows."""
    found = _find(model)
    return (found.context_window if found else None) or DEFAULT_WINDOW


def models() -> list[str]:
    """Return the models of Anthropic that the library knows."""
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    found = [provider for provider in get_snapshot().providers if provider.id == "anthropic"]
    return sorted(model.id for provider in found for model in provider.models)


def names() -> list[str]:
    """Return the models that anybody here knows: the library, or the SDK."""
    from anthropic.types import Model  # noqa: PLC0415 - a second

    return sorted({*models(), *get_args(get_args(Model)[0])})


def is_known(model: str) -> bool:
    """Whether anybody here knows *model*, a dated name of one included."""
    return _find(model) is not None or model in names()


def cost(model: str | None, usage: dict[str, Any]) -> Decimal | None:
    """Return what an answer with the API's *usage* cost, in US dollars; None if nobody knows."""
    if model is None or _find(model) is None:
        return None
    counts = [int(usage.get(kind) or 0) for kind in TOKEN_KINDS]
    most, rates = _rates(model)
    if min(counts) < 0 or sum(counts) > most:
        return _cost(model, *counts)
    return sum(map(mul, rates, counts), Decimal())


def _cost(model: str, sent: int, given: int, cached: int, written: int) -> Decimal:
    """Return what so many tokens of each of `TOKEN_KINDS` cost, as the library says."""
    from genai_prices import Usage, calc_price  # noqa: PLC0415

    counted = Usage(
        # The library's input is all of it; the API's is what was neither read nor written.
        input_tokens=sent + cached + written,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=given,
    )
    return calc_price(counted, model_ref=model, provider_id="anthropic").total_price


@lru_cache
def _rates(model: str) -> tuple[int, list[Decimal]]:
    """Return up to how many tokens each one costs the same, and what one of each kind costs.

    To ask the library takes 0.15 ms, and thousands of answers are priced together.
    """
    ones = [[int(kind == other) for other in TOKEN_KINDS] for kind in TOKEN_KINDS]
    rates = [_cost(model, *one) for one in ones]
    for many in _MANY:
        costs = [_cost(model, *(many * count for count in one)) for one in ones]
        if costs == [many * rate for rate in rates]:
            return many, rates
    return 0, rates


@lru_cache
def _find(model: str) -> Any:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    try:
        return get_snapshot().find_provider_model(model, None, "anthropic", None)[1]
    except LookupError:
        return None
