"""The events of an answer, read from an HTTP response: whatever a server sends in place of them.

We read the server-sent events ourselves, as plain JSON. The SDK would drop events without a name,
stop at bytes that are not UTF-8, and say of a JSON body or an HTML page that it ended early.
"""

from __future__ import annotations

import asyncio
import codecs
import json
from contextlib import suppress
from math import isfinite
from typing import TYPE_CHECKING, Any, TypeVar

from infrastructure.errors import ModelError
from infrastructure.model.failures import refusal, words_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Iterator

    from domain.messages import JsonObject

    T = TypeVar("T")

_AFTER_STOP_REASON, _AFTER_END = 10.0, 1.0
"""Seconds that an answer that is complete may take to end its response."""

_LARGEST_EVENT = 64 * 1024 * 1024
_LONGEST_OTHER_BODY = 32 * 1024 * 1024
_LONGEST_BEGINNING = 200
_EMPTY: tuple[Any, ...] = ("", None, [], {})


class Patience:
    """How long nothing may come. Each thing that carries something renews it."""

    def __init__(self, seconds: float) -> None:
        self._seconds = seconds
        self._deadline = asyncio.get_running_loop().time() + seconds
        self.has_content = False

    def renew(self, seconds: float | None = None) -> None:
        """Wait from now on for *seconds*, or as long as at first."""
        self._deadline = asyncio.get_running_loop().time() + (seconds or self._seconds)

    async def wait_for(self, something: Awaitable[T]) -> T:
        """Return what *something* gives.

        Raises:
            ModelError: it has not come in time.
        """
        try:
            async with asyncio.timeout_at(self._deadline) as limit:
                return await something
        except TimeoutError as error:
            if not limit.expired():
                raise
            began = "of the rest of the answer" if self.has_content else "of an answer"
            raise ModelError(
                f"nothing {began} came from the API for {self._seconds:g} seconds",
                advice="try again; the setting idle_limit makes it wait longer",
                kind="idle_timeout",
                is_passing=True,
            ) from error


def carries_content(event: JsonObject) -> bool:
    """Whether *event* brings something of an answer; an envelope and signs of life do not."""
    match event:
        case {"type": "content_block_delta", "delta": dict(part)}:
            is_whole = False
        case {"type": "content_block_start", "content_block": dict(part)}:
            is_whole = part.get("type") not in ("text", "thinking")
        case _:
            return _stop_reason(event) is not None
    return is_whole or any(value not in _EMPTY for key, value in part.items() if key != "type")


async def events_of(
    response: Any, patience: Patience, *, asked_for: int | None = None
) -> AsyncIterator[JsonObject]:
    """Yield the raw stream events of the answer in *response*, an ``httpx2.Response``.

    A whole message in place of a stream is yielded as the events that it would have been.

    Raises:
        ModelError: an error came as an event, the stream broke off before the model said why it
            stopped, or this is no answer of the Messages API at all.
    """
    import httpx2  # noqa: PLC0415 - the client has imported it

    body = _Body(response)
    events = aiter(httpx2.EventSource(body, max_event_size=_LARGEST_EVENT))  # type: ignore[arg-type]
    is_complete = False
    while True:
        try:
            sse = await patience.wait_for(anext(events))
        except StopAsyncIteration:
            break
        except (httpx2.HTTPError, ModelError):
            if is_complete:  # all of it is here: how the response ends is of no interest
                return
            raise
        event = _event(sse, response, asked_for)
        if event is None:
            continue
        body.is_stream = True
        if carries_content(event):
            patience.has_content = True
            patience.renew()
        is_complete = is_complete or _stop_reason(event) is not None
        if is_complete:
            patience.renew(_AFTER_END if event["type"] == "message_stop" else _AFTER_STOP_REASON)
        yield event
    if is_complete:
        return
    for event in _whole_message(body, response, asked_for):
        yield event


class _Body:
    """A response as `httpx2.EventSource` reads it: always UTF-8, always taken for a stream.

    Attributes:
        is_stream: Whether an event has come. Until then the text is kept: it may be another thing.
        text: What has come before.
    """

    def __init__(self, response: Any) -> None:
        self._response = response
        self.request = response.request
        self.headers = {"content-type": "text/event-stream"}
        self.is_stream = False
        self.text = ""

    async def aiter_text(self) -> AsyncIterator[str]:
        decoder = codecs.getincrementaldecoder("utf-8-sig")("replace")
        async for piece in self._response.aiter_bytes():
            text = decoder.decode(piece)
            if not self.is_stream and len(self.text) < _LONGEST_OTHER_BODY:
                self.text += text
            yield text


def _event(sse: Any, response: Any, asked_for: int | None) -> JsonObject | None:
    """Return the event of the API in *sse*; None if there is none in it; an error is raised."""
    data = parsed(sse.data)
    if sse.event == "error" or (isinstance(data, dict) and data.get("type") == "error"):
        raise refusal(
            data if data is not None else sse.data,
            status=None,
            headers=response.headers,
            asked_for=asked_for,
        )
    if not isinstance(data, dict):
        return None
    if not isinstance(data.get("type"), str):
        if sse.event == "message":  # SSE's name for events that have none
            return None
        data = {**data, "type": sse.event}
    return data


def parsed(text: str) -> Any:
    """Return the JSON in *text*, without numbers that JSON does not have; None if it is none."""
    with suppress(ValueError, RecursionError):
        return json.loads(text, parse_constant=lambda _: None, parse_float=_finite)
    return None


def _finite(number: str) -> float | None:
    value = float(number)
    return value if isfinite(value) else None


def _stop_reason(event: JsonObject) -> str | None:
    match event:
        case {"type": "message_delta", "delta": {"stop_reason": str(reason)}}:
            return reason
    return None


def _whole_message(body: _Body, response: Any, asked_for: int | None) -> Iterator[JsonObject]:
    """Yield the events of a message that came as one JSON object; anything else is an error."""
    if body.is_stream:
        raise ModelError(
            "the answer ended early",
            advice="say so again, or `go on`",
            kind="incomplete_answer",
            is_passing=True,
        )
    match parsed(body.text):
        case {"type": "message", "content": list(content), "stop_reason": str(reason)} as message:
            yield {"type": "message_start", "message": message}
            for index, block in enumerate(content):
                yield {"type": "content_block_start", "index": index, "content_block": block}
                yield {"type": "content_block_stop", "index": index}
            delta = {"stop_reason": reason, "stop_details": message.get("stop_details")}
            yield {"type": "message_delta", "delta": delta}
        case {"error": _} | {"type": "error"} as error:
            raise refusal(error, status=None, headers=response.headers, asked_for=asked_for)
        case _:
            raise _no_stream(body.text, response)


def _no_stream(text: str, response: Any) -> ModelError:
    """Return what to say of a body that is neither a stream nor a message."""
    kind = str(response.headers.get("content-type") or "no content type").partition(";")[0]
    words = words_of(text)
    beginning = f"{words[:_LONGEST_BEGINNING]}…" if len(words) > _LONGEST_BEGINNING else words
    what = f"{kind}: {beginning}" if beginning else f"{kind}, and nothing in it"
    status = response.status_code
    return ModelError(
        f"the API answered with something that is no answer (HTTP {status}, {what})",
        advice="check ANTHROPIC_BASE_URL: it has to be a server of the Messages API",
        kind="no_answer",
        status=status,
        is_passing=not beginning,
    )
