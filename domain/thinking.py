"""Thinking levels, as the request's parameters for one model.

Newer models think adaptively and take an effort. Older ones, and servers of other makers that
speak the Messages API, know only a budget of tokens.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from domain.messages import JsonObject

BUDGETS = {"low": 2_048, "medium": 8_192, "high": 16_384, "xhigh": 24_576, "max": 31_744}
"""Tokens to think with, by level, where a model knows only budgets."""

THINKING_LEVELS = ("off", *BUDGETS)

_LEAST_BUDGET = 1_024
_LEFT_FOR_THE_ANSWER = 1_024
_ADAPTIVE = re.compile(
    r"claude-((opus|sonnet)-4-[6-9]|(opus|sonnet|haiku|fable|mythos)-([5-9]|\d\d|preview))"
)


def is_adaptive(model: str) -> bool:
    """Whether *model* thinks adaptively (Claude 4.6 and newer)."""
    return _ADAPTIVE.match(model) is not None or model == "offline"


def thinking_parameters(model: str, level: str | None, max_tokens: int) -> JsonObject:
    """Return the parameters of a request that let *model* think as hard as *level* says.

    Nothing for ``off``, and nothing where the budget would leave no room for an answer.
    """
    if level not in BUDGETS:
        return {}
    if is_adaptive(model):
        return {"thinking": {"type": "adaptive"}, "output_config": {"effort": level}}
    budget = min(BUDGETS[level], max_tokens - _LEFT_FOR_THE_ANSWER)
    if budget < _LEAST_BUDGET:
        return {}
    return {"thinking": {"type": "enabled", "budget_tokens": budget}}
