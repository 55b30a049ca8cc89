"""Failures of a request, made ours: what failed, what to do, and when to ask again."""

from __future__ import annotations

import json
import random
import re
import ssl
from contextlib import suppress
from datetime import UTC, datetime
from http import HTTPStatus
from math import isfinite
from typing import TYPE_CHECKING, Any

from domain.text import valid, valid_json
from infrastructure.errors import ModelError
from infrastructure.model.limits import limits
from infrastructure.model.proxies import proxy_of

if TYPE_CHECKING:
    from collections.abc import Mapping

MAX_RETRIES = 3
"""How often a request is sent again that nobody has begun to answer."""

_LONGEST_PAUSE = 30.0
LONGEST_PAUSE_ASKED_FOR = 120.0
"""A server that asks for a longer pause is not waited for: a person decides."""

_LONGEST = 600
_LONGEST_PAGE = 8_000
_DEEPEST = 40
"""How deep an error body is read; the frames of the caller decide how deep one could go."""
_AGAIN = frozenset({408, 409, 425, 429})
_NEVER_AGAIN = frozenset({501, 505, 511})
_SERVER_ERRORS, _FIRST_REFUSAL, _FIRST_REDIRECT = 500, 400, 300
_KINDS_OF_STATUS = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
_WORDS = {
    400: ("the API refused the request", "go back with /tree, or choose another model"),
    401: ("the API refused the key", "check ANTHROPIC_API_KEY"),
    402: ("the API wants to be paid", "check the account that ANTHROPIC_API_KEY belongs to"),
    403: ("the API does not allow this", "check what the key may do, and ANTHROPIC_BASE_URL"),
    404: (
        "the API does not know this model or address",
        "check --model, MODEL_ID and ANTHROPIC_BASE_URL",
    ),
    407: (
        "the proxy wants a name and a password",
        "give them in the address of the proxy: http://NAME:PASSWORD@HOST:PORT",
    ),
    413: ("the request is too large for the API", "make room with /compact, or start with /new"),
    429: ("too many requests", "wait a little and try again"),
    431: ("the headers are too large for the API", "check ANTHROPIC_CUSTOM_HEADERS"),
    511: ("the network wants a login first", "open any page in a browser, then try again"),
    529: ("the API is overloaded", "try again in a moment"),
}
_BROKEN = ("the connection broke in the middle of the answer", "say so again, or `go on`")
_UNDECODABLE = (
    "the answer cannot be decoded: it is not what its content-encoding says",
    "check ANTHROPIC_BASE_URL, and a proxy on the way there",
)
_OF_CONTENT = frozenset({400, 415, 422})
"""Refusals of what a request says; the others are about who asks, or where."""
_NAME = re.compile(r"[A-Za-z][\w.:-]{0,63}")
_MARKUP = re.compile(r"<(script|style)\b.*?</\1\s*>|<[^>]*>", re.IGNORECASE | re.DOTALL)


def refusal(
    body: Any,
    *,
    status: int | None,
    headers: Mapping[str, str],
    asked_for: int | None = None,
) -> ModelError:
    """Return what an error response means: its parsed *body*, or its text, its status and headers.

    *status* is that of the error, also where it came in a stream that began well; *asked_for* is
    the request's ``max_tokens``.
    """
    body = valid_json(body, depth=_DEEPEST)  # nested deeply it would end the program
    kind = _kind(body)
    status = status if status and status >= _FIRST_REDIRECT else _KINDS_OF_STATUS.get(kind or "")
    what, advice = _words(status)
    label = ", ".join(part for part in (f"HTTP {status}" if status else "", kind or "") if part)
    named = limits(body, status=status, asked_for=asked_for)
    if location := words_of(str(headers.get("location") or "")):
        advice = f"nothing was sent to {location}; if that is right, change ANTHROPIC_BASE_URL"
    wait = retry_after(str(headers.get("retry-after") or ""))
    if wait and wait > _LONG_WAIT:
        advice = f"it asks to wait {wait:,.0f} seconds"
    return ModelError(
        f"{what} ({': '.join(part for part in (label, words_of(body)) if part)})",
        advice=advice,
        kind=kind or _kind_of(status),
        status=status,
        request_id=headers.get("request-id") or headers.get("x-request-id"),
        is_passing=not (named.is_overflow or named.max_tokens) and _is_passing(status),
        retry_after=wait,
        is_overflow=named.is_overflow,
        context_window=named.context_window,
        requested_tokens=named.requested_tokens,
        max_tokens=named.max_tokens,
    )


_LONG_WAIT = 60


def _words(status: int | None) -> tuple[str, str]:
    """Return what an error of *status* is, and what to do about it."""
    if status in _WORDS:
        return _WORDS[status]
    if status is None or status >= _SERVER_ERRORS:
        return "the API failed", "try again in a moment"
    if status >= _FIRST_REFUSAL:
        what, advice = _WORDS[HTTPStatus.BAD_REQUEST]
        return what, advice if status in _OF_CONTENT else "check ANTHROPIC_BASE_URL and the key"
    return "the API answered with a redirection", "check ANTHROPIC_BASE_URL"


def _is_passing(status: int | None) -> bool:
    """Whether waiting helps; of a kind of error that means so, the status is known."""
    if status is None or status in _NEVER_AGAIN:
        return False
    return status in _AGAIN or status >= _SERVER_ERRORS


def _kind(body: Any) -> str | None:
    """Return the API's name for an error, if *body* has one that is a name."""
    if not isinstance(body, dict):
        return None
    error = body.get("error", body)
    kind = error.get("type") if isinstance(error, dict) else None
    if not isinstance(kind, str) or not _NAME.fullmatch(kind):
        return None
    return kind if error is not body or kind.endswith("_error") else None


def _kind_of(status: int | None) -> str:
    return next((kind for kind, of in _KINDS_OF_STATUS.items() if of == status), "api_error")


def words_of(body: Any) -> str:
    """Return what *body*, parsed or not, says to a person: one line, without markup."""
    if isinstance(body, str):
        text = _MARKUP.sub(" ", body[:_LONGEST_PAGE]) if body.lstrip()[:1] == "<" else body
    else:
        text = _message(body) or ("" if body is None else json.dumps(body, ensure_ascii=False))
    text = " ".join(valid(text).split())
    return text if len(text) <= _LONGEST else f"{text[: _LONGEST - 1]}…"


def _message(body: Any) -> str:
    """Return the message of an error *body*, wherever servers put it."""
    match body:
        case str(text):
            return text
        case [first, *_]:
            return _message(first)
        case {"loc": [*loc], "msg": str(text)}:  # what FastAPI says: the place stands beside
            return f"{'.'.join(map(str, loc))}: {text}"
        case dict():
            keys = ("error", "message", "msg", "detail", "details", "error_description", "errors")
            return next(filter(None, (_message(body.get(key)) for key in keys)), "")
        case _:
            return ""


def sdk_failure(error: Any, anthropic: Any, httpx2: Any, *, asked_for: int) -> ModelError:
    """Return what *error*, any that the SDK or its transport raised, means for a person."""
    if isinstance(error, anthropic.APIStatusError):
        return refusal(
            error.body,
            status=error.status_code,
            headers=error.response.headers,
            asked_for=asked_for,
        )
    cause = error.__cause__ if isinstance(error, anthropic.APIConnectionError) else error
    kind = type(cause or error).__name__
    text = words_of(str(cause or "") or str(error)) or kind
    if isinstance(cause, httpx2.LocalProtocolError | UnicodeEncodeError):
        return ModelError(
            f"the request cannot be sent ({text})",
            advice="check ANTHROPIC_CUSTOM_HEADERS and ANTHROPIC_API_KEY",
            kind=kind,
        )
    if certificate := _certificate_problem(cause):
        return ModelError(
            f"the API's certificate is not trusted ({certificate})",
            advice="SSL_CERT_FILE or SSL_CERT_DIR may name the authority that signed it",
            kind="certificate_error",
        )
    if isinstance(error, anthropic.APIConnectionError):
        return _no_connection(error, cause, text, httpx2)
    if isinstance(error, httpx2.HTTPError):
        # After the first byte the SDK lets the transport's own errors through (trap 3).
        what, advice = _BROKEN
        if isinstance(error, httpx2.DecodingError):
            what, advice = _UNDECODABLE
        return ModelError(f"{what} ({text})", advice=advice, kind=kind, is_passing=True)
    # No credentials (a TypeError), or an error that cannot be decoded.
    return ModelError(f"the request failed ({text})", kind=kind)


def _no_connection(error: Any, cause: Any, text: str, httpx2: Any) -> ModelError:
    """Return what to say where the API was not reached, or the proxy on the way to it."""
    address = str(error.request.url.copy_with(path="/", query=None)).rstrip("/")
    proxy = proxy_of(address)
    through = f" through the proxy {proxy.said} of {proxy.variable}" if proxy else ""
    is_other = isinstance(cause, httpx2.RemoteProtocolError)
    what = "no answer in HTTP from" if is_other else "no connection to"
    check = f"{proxy.variable} (NO_PROXY may name hosts that need none)" if proxy else "the network"
    return ModelError(
        f"{what} the API at {address}{through} ({text})",
        advice=f"check {check}, and ANTHROPIC_BASE_URL if it is set",
        kind=type(error).__name__,
        is_passing=not isinstance(cause, httpx2.UnsupportedProtocol | httpx2.InvalidURL),
    )


def _certificate_problem(error: BaseException | None) -> str | None:
    """Return why the server's certificate is not trusted, if that is what *error* came from."""
    while error is not None:
        if isinstance(error, ssl.SSLCertVerificationError):
            return error.verify_message
        error = error.__cause__ or error.__context__
    return None


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
