"""When a request that nobody has begun to answer is sent again, and after which pause."""

from __future__ import annotations

import random
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from infrastructure.errors import ModelError

MAX_RETRIES = 3
"""How often a request is sent again that nobody has begun to answer."""

_LONGEST_PAUSE = 30.0
LONGEST_PAUSE_ASKED_FOR = 120.0
"""A server that asks for a longer pause is not waited for: a person decides."""


def pause_after(problem: ModelError, attempt: int) -> float | None:
    """Return how many seconds to wait after *problem*; None if waiting will not help.

    As long as the server asks for, else 1, 2, 4 … seconds, a little less by chance: those who
    were refused together do not come back together.
    """
    if not problem.is_passing:
        return None
    if problem.retry_after is not None:
        asked_for = problem.retry_after
        return asked_for if asked_for <= LONGEST_PAUSE_ASKED_FOR else None
    return min(2.0 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.75, 1.0)  # noqa: S311


def retry_after(header: str) -> float | None:
    """Return what a ``retry-after`` header means: it gives seconds, or a date."""
    with suppress(ValueError):
        seconds = float(header)
        return max(seconds, 0.0) if isfinite(seconds) else None
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - not on the way to the prompt

    with suppress(ValueError, TypeError, OverflowError):
        when = parsedate_to_datetime(header)
        return max((when - datetime.now(UTC)).total_seconds(), 0.0)
    return None
