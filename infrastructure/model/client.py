"""The model client: the anthropic SDK, streaming, with its errors made ours.

The SDK takes a second to import, so it is imported when the first client is made
(`preload` does it in the background). We take its raw stream events and fold them ourselves
(`domain.answer`), for the reasons in facts.md, section 1.
"""

from __future__ import annotations

import asyncio
import random
import re
import threading
from contextlib import suppress
from datetime import UTC, datetime
from math import isfinite
from typing import TYPE_CHECKING, Any

from domain.text import valid
from infrastructure.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anthropic import AsyncAnthropic

MAX_RETRIES = 3
"""How often a request is sent again that nobody has begun to answer."""

_LONGEST_PAUSE = 30.0
_LONGEST_PAUSE_ASKED_FOR = 120.0
_AGAIN = frozenset({408, 409, 429})
_SERVER_ERRORS = 500
_FIRST_ERROR = 400
_AGAIN_KINDS = frozenset({"overloaded_error", "rate_limit_error", "api_error"})
_BAD_REQUEST, _TOO_LARGE = 400, 413
_OVERFLOW = re.compile(
    r"prompt is too long|context (length|window|limit)|too many (input )?tokens"
    r"|maximum (context|input|prompt)|exceeds? .*(tokens|context)|input is too long",
    re.IGNORECASE,
)

_ADVICE = re.compile(r"\): [^()]*$")
"""The end of a message that says what to do: nothing, as long as the request is sent again."""


def preload() -> None:
    """Import what is slow in the background, so that the first request does not wait for it."""
    names = ("anthropic", "genai_prices")
    threading.Thread(target=lambda: [__import__(name) for name in names], daemon=True).start()


class AnthropicModel:
    """Answers requests by the Messages API of Anthropic, or of whoever speaks it at *base_url*.

    A function for *base_url* is called once, when there is something to send.
    """

    def __init__(
        self,
        *,
        base_url: str | Callable[[], str] | None = None,
        api_key: str | None = None,
        max_retries: int = MAX_RETRIES,
    ) -> None:
        # The SDK would retry in silence: nobody could see why nothing happens, nor stop it.
        self._options: dict[str, Any] = {"max_retries": 0}
        self._max_retries = max_retries
        self._base_url = base_url
        if api_key is not None:
            self._options["api_key"] = api_key
        self._client: AsyncAnthropic | None = None

    async def stream(self, request: dict[str, Any]) -> AsyncIterator[dict[str, Any]]:
        """Send *request*, byte for byte as it is, and yield the raw stream events of the answer.

        What fails for a moment only (no connection, overload, too many requests) is sent again
        while nothing of an answer has come. Before each pause there is an event of ours:
        ``{"type": "retry", "attempt": 1, "of": 3, "after": 2.0, "reason": "…"}``.

        Raises:
            ModelError: there is no answer, or it broke off.
        """
        # A second of start-up, in a thread: Ctrl+C must work meanwhile.
        modules = await asyncio.to_thread(_slow_imports)
        for attempt in range(1, self._max_retries + 2):
            has_begun = False
            try:
                async for event in self._answer(request, *modules):
                    has_begun = True
                    yield event
            except ModelError as problem:
                pause = None if has_begun else _pause(problem.__cause__, attempt)
                if pause is None or attempt > self._max_retries:
                    raise
                yield {
                    "type": "retry",
                    "attempt": attempt,
                    "of": self._max_retries,
                    "after": round(pause, 1),
                    "reason": _ADVICE.sub(")", str(problem)),
                }
            else:
                return
            await asyncio.sleep(pause)

    async def _answer(
        self, request: dict[str, Any], anthropic: Any, httpx2: Any
    ) -> AsyncIterator[dict[str, Any]]:
        """Send *request* once."""
        try:
            if self._client is None:
                base_url = self._base_url() if callable(self._base_url) else self._base_url
                self._client = anthropic.AsyncAnthropic(base_url=base_url, **self._options)
            async with await self._client.messages.create(**request) as events:
                async for event in events:
                    yield event.to_dict()
        except anthropic.AnthropicError as error:
            raise _model_error(error) from error
        except httpx2.HTTPError as error:
            # After the first byte the SDK lets the transport's own errors through (trap 3).
            message = f"the connection broke in the middle of the answer ({error})"
            raise ModelError(message, kind=type(error).__name__) from error
        except (TypeError, ValueError) as error:
            # No credentials (a TypeError), or a request that cannot be encoded (case Z5).
            raise ModelError(valid(str(error)), kind=type(error).__name__) from error

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


def _slow_imports() -> tuple[Any, Any]:
    import anthropic  # noqa: PLC0415
    import httpx2  # noqa: PLC0415

    return anthropic, httpx2


def _pause(error: BaseException | None, attempt: int) -> float | None:
    """Return how many seconds to wait after *error*, the SDK's; None if waiting will not help.

    As long as the server asks for, else 1, 2, 4 … seconds, a little less by chance: those who
    were refused together do not come back together.
    """
    import anthropic  # noqa: PLC0415

    status = getattr(error, "status_code", 0)
    is_passing = isinstance(error, anthropic.APIConnectionError) or (
        isinstance(error, anthropic.APIStatusError)
        and (
            status in _AGAIN
            or status >= _SERVER_ERRORS
            # An error may also come as the first event of a stream.
            or (status < _FIRST_ERROR and getattr(error, "type", None) in _AGAIN_KINDS)
        )
    )
    if not is_passing:
        return None
    headers = getattr(getattr(error, "response", None), "headers", {})
    asked_for = _seconds(str(headers.get("retry-after") or ""))
    if asked_for is not None:
        return asked_for if asked_for <= _LONGEST_PAUSE_ASKED_FOR else None
    return min(2.0 ** (attempt - 1), _LONGEST_PAUSE) * random.uniform(0.75, 1.0)  # noqa: S311


def _seconds(retry_after: str) -> float | None:
    """Return what a ``retry-after`` header means: it gives seconds, or a date."""
    with suppress(ValueError):
        seconds = float(retry_after)
        return max(seconds, 0.0) if isfinite(seconds) else None
    from email.utils import parsedate_to_datetime  # noqa: PLC0415 - not on the way to the prompt

    with suppress(ValueError, TypeError):
        when = parsedate_to_datetime(retry_after)
        return max((when - datetime.now(UTC)).total_seconds(), 0.0)
    return None


def _model_error(error: Any) -> ModelError:
    """Return what *error*, any of the SDK's, means for a person."""
    kind = str(getattr(error, "type", None) or type(error).__name__)
    status = getattr(error, "status_code", None)
    said = valid(str(getattr(error, "api_message", None) or getattr(error, "message", error)))
    hints = {
        400: f"the API refused the request ({said})",
        401: f"the API refused the key ({said}): check ANTHROPIC_API_KEY",
        403: f"the API does not allow this ({said})",
        404: f"the API does not know this model or address ({said}): check --model, MODEL_ID "
        "and ANTHROPIC_BASE_URL",
        429: f"too many requests ({said}): wait a little and try again",
        529: f"the API is overloaded ({said}): try again in a moment",
    }
    if status is None:
        cause = error.__cause__ or error
        said = f"no connection to the API ({valid(str(cause)) or said}): check the network, and "
        said += "ANTHROPIC_BASE_URL if it is set"
    return ModelError(
        hints.get(status or 0, said),
        kind=kind,
        status=status,
        request_id=getattr(error, "request_id", None),
        is_overflow=status == _TOO_LARGE or (status == _BAD_REQUEST and _is_overflow(said)),
    )


def _is_overflow(said: str) -> bool:
    """Whether a refusal means that the request is longer than the window, in anybody's words."""
    return _OVERFLOW.search(said) is not None
