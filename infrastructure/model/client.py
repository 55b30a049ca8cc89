"""The model client: the anthropic SDK, streaming, with its errors made ours.

The SDK takes a second to import, so it is imported when the first client is made
(`preload` does it in the background). We take its raw stream events and fold them ourselves
(`domain.answer`), for the reasons in facts.md, section 1.
"""

from __future__ import annotations

import asyncio
import threading
from typing import TYPE_CHECKING, Any

from infrastructure.errors import ModelError
from infrastructure.model.failures import MAX_RETRIES, pause_after, sdk_failure
from infrastructure.model.streaming import Patience, events_of

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable

    from anthropic import AsyncAnthropic

    from domain.request import Request

_AS_CREATE: Any = {"span_name": "anthropic.messages.create", "span_route": "/v1/messages"}
"""What `messages.create` says of a request. It would decode the body, walk it, and encode it."""


def preload() -> None:
    """Import what is slow in the background, so that the first request does not wait for it."""
    names = ("anthropic", "genai_prices")
    threading.Thread(target=lambda: [__import__(name) for name in names], daemon=True).start()


class AnthropicModel:
    """Answers requests by the Messages API of Anthropic, or of another server that speaks it.

    With a *base_url* and an *api_key* nothing of the environment applies; a function for *base_url*
    is called once, when there is something to send. Without, the environment says where and how.
    *idle_limit*: after so many seconds without anything of an answer it is given up.
    """

    def __init__(
        self,
        *,
        base_url: str | Callable[[], str] | None = None,
        api_key: str = "",
        max_retries: int = MAX_RETRIES,
        idle_limit: float = 300.0,
    ) -> None:
        self._base_url = base_url
        self._api_key = api_key
        self._max_retries = max_retries
        self._idle_limit = idle_limit
        self._client: AsyncAnthropic | None = None
        self._modules: tuple[Any, Any, Any] | None = None

    async def stream(self, request: Request) -> AsyncIterator[dict[str, Any]]:
        """Send *request*, byte for byte as it is, and yield the raw stream events of the answer.

        What fails for a moment only (no connection, overload, too many requests, silence) is sent
        again while no content of an answer has come. Before each pause there is an event of ours:
        ``{"type": "retry", "attempt": 1, "of": 3, "after": 2.0, "reason": "…"}``; what came before
        it is void.

        Raises:
            ModelError: there is no answer, or it broke off.
        """
        if self._modules is None:
            # A second of start-up, in a thread: Ctrl+C must work meanwhile.
            self._modules = await asyncio.to_thread(_slow_imports)
        for attempt in range(1, self._max_retries + 2):
            patience = Patience(self._idle_limit)
            try:
                async for event in self._answer(request, patience, *self._modules):
                    yield event
            except ModelError as problem:
                pause = None if patience.has_content else pause_after(problem, attempt)
                if pause is None or attempt > self._max_retries:
                    raise
                yield {
                    "type": "retry",
                    "attempt": attempt,
                    "of": self._max_retries,
                    "after": round(pause, 1),
                    "reason": problem.reason,
                }
            else:
                return
            await asyncio.sleep(pause)

    async def _answer(
        self,
        request: Request,
        patience: Patience,
        anthropic: Any,
        httpx2: Any,
        connection: Any,
    ) -> AsyncIterator[dict[str, Any]]:
        """Send *request* once."""
        try:
            if self._client is None:
                self._client = self._connect(anthropic, httpx2, connection)
            sent = self._client.post(
                "/v1/messages",
                cast_to=anthropic.types.Message,
                content=request.body,
                options=_AS_CREATE,
                stream=True,
                stream_cls=anthropic.AsyncStream[anthropic.types.RawMessageStreamEvent],
            )
            async with await patience.wait_for(sent) as stream:
                limit = request.max_tokens
                async for event in events_of(stream.response, patience, asked_for=limit):
                    yield event
        except ModelError:
            raise
        except anthropic.CredentialsError as error:  # a file that it reads when it needs it
            raise connection.unusable_credentials(error) from error
        except Exception as error:  # the SDK and its transport raise what they like
            raise sdk_failure(error, anthropic, httpx2, asked_for=request.max_tokens) from error

    def _connect(self, anthropic: Any, httpx2: Any, connection: Any) -> AsyncAnthropic:
        # The SDK would retry in silence: nobody could see why nothing happens, nor stop it.
        url = self._base_url() if callable(self._base_url) else self._base_url
        if url is None:
            client: AsyncAnthropic = connection.connect_by_environment(anthropic, httpx2)
            return client
        own: AsyncAnthropic = connection.connect(anthropic, base_url=url, api_key=self._api_key)
        return own

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None


def _slow_imports() -> tuple[Any, Any, Any]:
    import anthropic  # noqa: PLC0415
    import httpx2  # noqa: PLC0415

    from infrastructure.model import connection  # noqa: PLC0415

    return anthropic, httpx2, connection
