"""What comes in place of an answer: other forms of it are understood, everything else is named."""

import asyncio
import json

import pytest

from domain.answer import Answer
from infrastructure.errors import ModelError
from infrastructure.model import failures
from infrastructure.model.client import AnthropicModel
from tests.infrastructure.model.test_retries import REQUEST
from tests.raw_server import (
    RawServer,
    block,
    chunked,
    delta,
    end,
    response,
    said,
    sse,
    start,
    stop,
)
from tests.server import Gate

OVERLOADED = {"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}}
MESSAGE = {
    "id": "msg_1",
    "type": "message",
    "role": "assistant",
    "content": [{"type": "text", "text": "Hi."}],
    "stop_reason": "end_turn",
    "usage": {"input_tokens": 3, "output_tokens": 1},
}


@pytest.fixture(autouse=True)
def _without_pauses(monkeypatch):
    monkeypatch.setattr(failures.random, "uniform", lambda *_: 0.0)


def asked(*answers, idle_limit=60.0):
    """Return the answer, the error if there was one, the retries, and how many requests came."""

    async def ask(url):
        model = AnthropicModel(base_url=url, api_key="test", idle_limit=idle_limit)
        answer, retries = Answer(), []
        try:
            async for event in model.stream(REQUEST):
                if event["type"] == "retry":
                    answer = Answer()
                    retries.append(event["reason"])
                answer.apply(event)
        except ModelError as error:
            return answer, error, retries
        finally:
            await model.close()
        return answer, None, retries

    with RawServer(*answers) as server:
        return *asyncio.run(ask(server.url)), len(server.requests)


def text_of(answer):
    return "".join(raw.get("text", "") for raw in answer.content)


@pytest.mark.parametrize(
    "answer",
    [
        response(sse(*said("Hi."))),
        response(sse(*said("Hi."), is_named=False)),
        response(sse(*said("Hi.")), kind="text/plain"),
        response(sse(*said("Hi.")), kind=None),
        response(sse(*said("Hi.")), version="1.0"),
        response("\ufeff" + sse(*said("Hi.")).replace("\n", "\r\n")),
        response(sse(*said("Hi.")) + "data: [DONE]\n\n"),
        response(sse(*said("Hi."))[:-2]),  # the end of message_stop is missing
        response(sse(*said("Hi.")[:-1])),  # message_stop is missing
        chunked(sse(*said("Hi.")).encode()),
        chunked(*(bytes([byte]) for byte in sse(*said("Hi.")).encode())),
        chunked(sse(*said("Hi.")).encode(), is_whole=False),
        response(json.dumps(MESSAGE), kind="application/json"),
        response(json.dumps(MESSAGE, indent=2), kind="application/json"),
        response(json.dumps(MESSAGE), kind="text/event-stream"),
    ],
)
def test_an_answer_in_another_form_is_an_answer(answer):
    got, error, _, requests = asked(answer)

    assert error is None
    assert (text_of(got), got.stop_reason, requests) == ("Hi.", "end_turn", 1)


def test_an_answer_that_is_complete_is_not_waited_for():
    """The server leaves the connection open after the last event."""
    gate = Gate()
    got, error, _, _ = asked([response(sse(*said("Hi."))), gate])

    assert (text_of(got), error) == ("Hi.", None)


def test_bytes_that_are_not_utf8_are_replaced():
    data = sse(*said("H?i.")).encode().replace(b"H?i", b"H\xffi")
    got, error, _, _ = asked(response(data))

    assert (text_of(got), error) == ("H\ufffdi.", None)


@pytest.mark.parametrize(
    ("answer", "told"),
    [
        (
            response("<html><title>Gateway</title> Sign in </html>", kind="text/html"),
            "Gateway Sign",
        ),
        (response("<html>x</html>", kind="text/html"), "text/html"),
        (response('{"choices": []}', kind="application/json"), '{"choices": []}'),
        (response("Welcome to nginx", kind="text/plain"), "Welcome to nginx"),
        (response('data: {"object": "chat.completion.chunk"}\n\n'), "chat.completion.chunk"),
    ],
)
def test_what_is_no_answer_is_named_by_its_type_and_its_beginning(answer, told):
    _, error, retries, requests = asked(answer)

    assert told in str(error)
    assert "ANTHROPIC_BASE_URL" in str(error)
    assert (error.kind, retries, requests) == ("no_answer", [], 1)


@pytest.mark.parametrize(
    "body",
    [
        OVERLOADED,
        {"error": {"type": "overloaded_error", "message": "Overloaded"}},
    ],
)
def test_an_error_in_place_of_a_stream_is_that_error(body):
    _, error, retries, requests = asked(response(json.dumps(body), kind="application/json"))

    assert (error.kind, error.status, requests, len(retries)) == ("overloaded_error", 529, 4, 3)


# -- nothing has come yet --------------------------------------------------------------------------


@pytest.mark.parametrize(
    "beginning",
    [
        [start(), {"type": "ping"}, OVERLOADED],
        [start(), OVERLOADED],
        [start(), block(type="text", text=""), delta(type="text_delta", text=""), OVERLOADED],
        [{"type": "ping"}],
        [start()],
        [start(), block(type="text", text="")],
        [],
    ],
)
@pytest.mark.parametrize("is_named", [True, False])
def test_an_envelope_is_no_answer_yet_and_is_asked_for_again(beginning, is_named):
    broken = response(sse(*beginning, is_named=is_named))
    got, error, retries, requests = asked(broken, response(sse(*said("Hi."))))

    assert error is None
    assert (text_of(got), len(retries), requests) == ("Hi.", 1, 2)


@pytest.mark.parametrize("answer", [b"", b"HTTP/1.1 200", b"HTTP/1.1 200 OK\r\n\r\n", b"nonsense"])
def test_a_server_that_closes_at_once_is_asked_again(answer):
    got, error, _, requests = asked(answer, response(sse(*said("Hi."))))

    assert (text_of(got), error, requests) == ("Hi.", None, 2)


@pytest.mark.parametrize("is_named", [True, False])
def test_an_answer_that_has_begun_is_not_asked_for_again(is_named):
    events = [
        start(),
        block(type="text", text=""),
        delta(type="text_delta", text="Hal"),
        OVERLOADED,
    ]
    got, error, retries, requests = asked(response(sse(*events, is_named=is_named)))

    assert (text_of(got), error.kind, retries, requests) == ("Hal", "overloaded_error", [], 1)


# -- silence ---------------------------------------------------------------------------------------

SILENCE = 0.2


def test_silence_after_the_beginning_is_given_up_and_says_how_long_it_was():
    events = [start(), block(type="text", text=""), delta(type="text_delta", text="Hal")]
    got, error, _, requests = asked([response(sse(*events)), Gate()], idle_limit=SILENCE)

    assert (text_of(got), error.kind, requests) == ("Hal", "idle_timeout", 1)
    assert "0.2 seconds" in str(error)
    assert "idle_limit" in str(error)


@pytest.mark.parametrize("beginning", [b"", response(sse(start(), {"type": "ping"}))])
def test_silence_before_anything_came_is_asked_again(beginning):
    again = response(sse(*said("Hi.")))
    got, error, retries, requests = asked([beginning, Gate()], again, idle_limit=SILENCE)

    assert (text_of(got), error, requests) == ("Hi.", None, 2)
    assert "0.2 seconds" in retries[0]


@pytest.mark.parametrize(
    "sign_of_life",
    [sse({"type": "ping"}), ": still here\n\n", sse(delta(type="text_delta", text="")), " ", "\n"],
)
def test_signs_of_life_are_no_answer(sign_of_life):
    """They come faster than the limit, for longer than the limit; the clock is the event loop's."""
    events = [start(), block(type="text", text=""), delta(type="text_delta", text="Hal")]
    trickle = [sign_of_life.encode()] * 400
    parts = [response(sse(*events))]
    for sign in trickle:
        parts += [sign, _Nap()]
    _, error, _, _ = asked(parts, idle_limit=SILENCE)

    assert error.kind == "idle_timeout"


class _Nap(Gate):
    """A pause in the server: a tenth of the limit."""

    def pass_through(self):
        self._open.wait(SILENCE / 10)


# -- whole calls and odd events --------------------------------------------------------------------


def test_events_in_odd_orders_are_taken_as_far_as_they_make_sense():
    events = [
        delta(0, type="text_delta", text="Hi"),
        start(input_tokens=None),
        block(0, type="text", text=""),
        delta(0, type="text_delta", text="."),
        {"type": "content_block_delta", "delta": {"type": "text_delta", "text": "?"}},
        {"type": "content_block_start", "index": "one", "content_block": None},
        stop(7),
        *end(),
    ]
    got, error, _, _ = asked(response(sse(*events)))

    assert error is None
    assert text_of(got) == "."
