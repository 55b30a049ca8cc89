"""What models cost and how much they can take in, from the `genai-prices` library.

The library takes half a second to import, so it is imported when the first question is asked.
"""

from __future__ import annotations

from functools import lru_cache
from typing import TYPE_CHECKING, Any, get_args

if TYPE_CHECKING:
    from decimal import Decimal

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
    from genai_prices import Usage, calc_price  # noqa: PLC0415

    if model is None or _find(model) is None:
        return None
    cached, written = (
        int(usage.get(kind) or 0)
        for kind in ("cache_read_input_tokens", "cache_creation_input_tokens")
    )
    counted = Usage(
        # The library's input is all of it; the API's is what was neither read nor written.
        input_tokens=int(usage.get("input_tokens") or 0) + cached + written,
        cache_read_tokens=cached,
        cache_write_tokens=written,
        output_tokens=int(usage.get("output_tokens") or 0),
    )
    return calc_price(counted, model_ref=model, provider_id="anthropic").total_price


@lru_cache
def _find(model: str) -> Any:
    from genai_prices.data_snapshot import get_snapshot  # noqa: PLC0415

    try:
        return get_snapshot().find_provider_model(model, None, "anthropic", None)[1]
    except LookupError:
        return None
