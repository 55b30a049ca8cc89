"""What a refusal says of limits that only the server knows, in anybody's words.

No server names its limits in one way. So a refusal is read for what it means: is it the request
that is too long, or the answer that was asked for? Which number is the limit, and which was asked?
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.text import nodes

if TYPE_CHECKING:
    from collections.abc import Iterator

_FLAGS = re.IGNORECASE | re.DOTALL
_NUMBER = (
    r"[`'\"\[(*=:]*(?<![\w.])(?<!by )"
    r"(\d{1,4}(?:\.\d{1,2})?\s?[km]|\d{1,3}(?:[,_\u00a0\u202f]\d{3}){1,3}|\d{1,12})"
    r"(?:\.0+)?(?![\w]|\.\d|[,_]\d)"
    r"(?!\s*(?:bytes|[kmg]i?b\b|pixels|px|pages|images|characters|chars|messages|seconds|minutes))"
)
_NEAR = r"(?:(?!exceed|count of|or equal to 1\b|at least)[^\d.;]){0,60}?"

_ANSWER = re.compile(
    r"max_?(?:(?:output|completion|new|generated)_?)?tokens|(?:output|completion|maximum) tokens",
    _FLAGS,
)
"""The length of the answer that was asked for, as parameter or in words."""

_REQUEST = re.compile(
    r"prompt|context(?![ _]?management)|input(?! should)|conversation|history|length of the"
    r"|messages? (?:is|are|length|to)|request (?:is |was )?too (?:long|large|big)"
    r"|request (?:has |contains )?exceed|tokens in (?:the )?request|token (?:limit|count)"
    r"|tokens (?:is|are) too|too many tokens|(?:model|total|sequence) length"
    r"|上下文|输入|提示词|对话|tokens? ?数",
    _FLAGS,
)
_TOO_MUCH = re.compile(
    r"too (?:long|large|big|many)|exceed|overflow|longer than|larger than|greater than|more than"
    r"|maximum|at most|over the|limit|does(?: not|n't) fit|reduce|out of (?:room|context)|<=|>"
    r"|should be \[|range|less than|beyond|window is"
    r"|max(?:imum)?[_ -]?(?:seq|model|total|context|input)"
    r"|超|过长|太长|上限",
    _FLAGS,
)
_OVERFLOW_CODES = re.compile(
    r"context_length_exceeded|context_window_exceeded|exceed_context_size|prompt_too_long"
    r"|context_limit_exceeded|input_too_long|string_above_max_context|tokens_limit_reached",
    _FLAGS,
)
_TOKENS = re.compile(
    r"token|context|prompt|input (?:is|was|length|size)|length|上下文|输入|提示词", _FLAGS
)
_COUNTED = re.compile(r"tokens?\b|context|prompt|window|上下文|窗口", _FLAGS)
_RATE = re.compile(
    r"rate[ _-]?limit|per (?:minute|hour|day|second)|\b[tr]p[md]\b|quota|balance|credit|billing",
    _FLAGS,
)
_NO_TOKENS = re.compile(
    r"image|document|pdf|pages|pixels|dimension|media|base64|tool_use|tool_result|schema"
    r"|tools\.\d|thinking|signature|cache_control",
    _FLAGS,
)
"""What is limited by other measures than the window."""

_LIMIT_WORDS = (
    r"max\w*|limit\w*|at most|up to|allowed|allows|less than or equal to|no more than"
    r"|context (?:length|size|window)|supports?|上限|最大|限制|窗口|超过|超出|大于"
)
_LIMITS = tuple(
    re.compile(pattern, _FLAGS)
    for pattern in (
        rf"n_ctx{_NEAR}{_NUMBER}",
        rf"\d[km]?\s*(?:tokens?\s*)?(?:/|(?:out )?of)\s*{_NUMBER}(?!\s*%)",
        rf"\[\s*\d+\s*,\s*{_NUMBER}",
        rf"(?:to|and)\s+{_NUMBER}\s*\((?:ex|in)clusive\)",
        rf"(?:>|<=|≤)\s*{_NUMBER}",
        rf"{_NUMBER}\s+(?:tokens\s+)?(?:max_model_len|n_ctx)",
        rf"\bonly {_NUMBER}",
        rf"(?:{_LIMIT_WORDS}){_NEAR}{_NUMBER}",
        rf"{_NUMBER}[- ]?(?:tokens?)?[\s(:]{{0,3}}(?:maximum|max\b|limit)",
        rf"(?:exceeds?|(?:longer|larger|greater(?! than or)|less) than|beyond){_NEAR}{_NUMBER}",
    )
)
"""Where the number of a limit stands, the surest places first."""

_ANY = re.compile(_NUMBER, _FLAGS)
_SUM = re.compile(r"(?<!\d)(\d{1,12})\s*\+\s*(\d{1,12})\s*>")

_WINDOW_KEYS = (
    "n_ctx", "context_window", "context_length", "max_context_length", "max_model_len",
    "max_input_tokens", "token_limit",
)  # fmt: skip
_ASKED_KEYS = ("n_prompt_tokens", "prompt_tokens", "requested_tokens", "input_tokens", "requested")
_SMALLEST_WINDOW = 256
_MOST_TEXTS, _LONGEST_TEXT = 200, 8_000
_NO_REFUSAL_OF_LENGTH = frozenset({401, 402, 403, 404, 408, 409})
_TOO_LARGE, _TOO_MANY_REQUESTS = 413, 429


class Limits(NamedTuple):
    """What a refusal names.

    *is_overflow*: the request is longer than the model's window. *context_window* is that window,
    *requested_tokens* what was sent, *max_tokens* the longest answer that may be asked for; each is
    None where no number is named.
    """

    is_overflow: bool = False
    context_window: int | None = None
    requested_tokens: int | None = None
    max_tokens: int | None = None


def limits(body: Any, *, status: int | None = None, asked_for: int | None = None) -> Limits:
    """Return what the *body* of a refusal means; *asked_for* is the request's ``max_tokens``."""
    said = "\n".join(dict.fromkeys(islice(_texts(body), _MOST_TEXTS)))[:_LONGEST_TEXT]
    if _is_about_answer(said):
        limit = _first(said, _LIMITS, lambda n: 0 < n < (asked_for or n + 1))
        if limit is not None:
            is_exclusive = re.search(rf"{limit}\s*\(exclusive\)", said) is not None
            return Limits(max_tokens=limit - is_exclusive)
    in_numbers = _limits_in_numbers(said, status)
    if not _is_overflow(said, status):
        return in_numbers
    if _RATE.search(said):  # a limit per minute that no waiting raises: it is no window
        return Limits(is_overflow=True)
    window = (
        _number_at(body, _WINDOW_KEYS)
        or _first(said, _LIMITS, lambda n: n >= _SMALLEST_WINDOW and n != asked_for)
        or _first(said, _LIMITS, lambda n: n >= _SMALLEST_WINDOW)
        or in_numbers.context_window
    )
    return Limits(
        is_overflow=True,
        context_window=window,
        requested_tokens=_requested(body, said, window or _SMALLEST_WINDOW),
    )


def _is_about_answer(said: str) -> bool:
    """Whether it is the answer alone that may not be as long as was asked for."""
    if not _ANSWER.search(said) or _OVERFLOW_CODES.search(said):
        return False
    return not re.search(
        r"prompt|context (?:length|limit|size|window)|input(?:s\b| length| tokens?)|messages\b",
        said,
        _FLAGS,
    )


def _is_overflow(said: str, status: int | None) -> bool:
    if status in _NO_REFUSAL_OF_LENGTH:
        return False
    if status == _TOO_LARGE or _OVERFLOW_CODES.search(said):
        return True
    if status == _TOO_MANY_REQUESTS or _RATE.search(said) or _NO_TOKENS.search(said):
        return False
    return all(part.search(said) for part in (_REQUEST, _TOO_MUCH, _TOKENS))


def _limits_in_numbers(said: str, status: int | None) -> Limits:
    """Return the limits of a refusal that counts tokens, whatever else it says.

    Two numbers are what was sent and, less than that, what the model takes in.
    """
    is_other = status in _NO_REFUSAL_OF_LENGTH or status == _TOO_MANY_REQUESTS
    if is_other or any(part.search(said) for part in (_RATE, _NO_TOKENS, _ANSWER)):
        return Limits()
    named = {_number(found[1]) for found in _ANY.finditer(said)}
    *_, window, requested = 0, 0, *sorted(n for n in named if n >= _SMALLEST_WINDOW)
    if not window or not _COUNTED.search(said):
        return Limits()
    return Limits(is_overflow=True, context_window=window, requested_tokens=requested)


def _requested(body: Any, said: str, window: int) -> int | None:
    """Return how long the request was: the number that is above the *window*."""
    if parts := _SUM.search(said):
        return int(parts[1]) + int(parts[2])
    return _number_at(body, _ASKED_KEYS) or _first(said, (_ANY,), lambda n: n > window)


def _first(said: str, patterns: tuple[re.Pattern[str], ...], is_possible: Any) -> int | None:
    """Return the first number at one of these places that *is_possible*."""
    for pattern in patterns:
        for match in pattern.finditer(said):
            number = _number(match[1])
            if is_possible(number):
                return number
    return None


def _number(written: str) -> int:
    """Return the number that is *written* with separators, or short: ``200k``, ``1.5M``."""
    digits = re.sub(r"[,_\s]", "", written.lower())
    times = {"k": 1_000, "m": 1_000_000}.get(digits[-1], 1)
    return round(float(digits.rstrip("km")) * times) if times > 1 else int(digits)


def _texts(value: Any) -> Iterator[str]:
    """Yield every text of a JSON-like *value*, and its numbers with their keys."""
    for key, inner in nodes(value):
        if isinstance(inner, str):
            yield inner
        elif key and isinstance(inner, int):
            yield f"{key}: {inner}"


def _number_at(value: Any, keys: tuple[str, ...]) -> int | None:
    """Return the number under the first of *keys* that is there, however deep it stands."""
    named = dict(reversed(list(nodes(value))))
    numbers = (named.get(key) for key in keys)
    return next((n for n in numbers if isinstance(n, int) and n >= _SMALLEST_WINDOW), None)
