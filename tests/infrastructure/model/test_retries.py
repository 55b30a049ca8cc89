"""What fails for a moment is asked again, in sight; what fails for good is not."""

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.request import Request
from infrastructure.errors import ModelError
from infrastructure.model import client, failures
from infrastructure.model.client import AnthropicModel
from tests.server import ScriptedServer, hang_up, refuse, reply

REQUEST = Request.of(
    {"model": "test-model", "max_tokens": 100, "stream": True}, [b'{"role":"user","content":"hi"}']
)


def asked(*steps, max_retries=3):
    """Return the stream events, the error if there was one, and how many requests came."""

    async def ask(url):
        model = AnthropicModel(base_url=url, api_key="test", max_retries=max_retries)
        events = []
        try:
            async for event in model.stream(REQUEST):
                events.append(event)  # noqa: PERF401 - what came before an error counts
        except ModelError as error:
            return events, error
        finally:
            await model.close()
        return events, None

    with ScriptedServer(list(steps)) as server:
        events, error = asyncio.run(ask(server.url))
        return events, error, len(server.requests)


def retries(events):
    return [(event["attempt"], event["of"]) for event in events if event["type"] == "retry"]


@pytest.mark.parametrize("status", [408, 409, 429, 500, 503, 529])
def test_what_passes_is_asked_again(status):
    events, error, requests = asked(refuse(status, "busy", retry_after=0), reply("Hi."))

    assert error is None
    assert requests == 2
    assert retries(events) == [(1, 3)]
    assert "busy" in events[0]["reason"]
    assert events[0]["after"] == 0
    assert events[1]["type"] == "message_start"


@pytest.mark.parametrize("status", [400, 401, 403, 404, 413, 422])
def test_what_does_not_pass_is_not(status):
    events, error, requests = asked(refuse(status, "no", retry_after=0), reply("Hi."))

    assert (events, error.status, requests) == ([], status, 1)


def test_a_request_that_is_too_long_is_not_asked_again():
    _, error, requests = asked(refuse(400, "prompt is too long: 2 > 1", retry_after=0))

    assert error.is_overflow
    assert requests == 1


def test_after_three_retries_it_fails():
    events, error, requests = asked(*[refuse(529, retry_after=0)] * 4, reply("never"))

    assert error.status == 529
    assert retries(events) == [(1, 3), (2, 3), (3, 3)]
    assert requests == 4


def test_a_connection_that_breaks_before_the_answer_is_made_again(monkeypatch):
    monkeypatch.setattr(failures.random, "uniform", lambda *_: 0.0)
    events, error, requests = asked(hang_up(), reply("Hi."))

    assert error is None
    assert retries(events) == [(1, 3)]
    assert "no answer in HTTP" in events[0]["reason"]
    assert requests == 2


def test_what_to_do_is_said_when_nothing_is_tried_any_more(monkeypatch):
    monkeypatch.setattr(failures.random, "uniform", lambda *_: 0.0)
    events, error, _ = asked(*[refuse(529, "Overloaded")] * 4)

    assert {event["reason"] for event in events} == {
        "the API is overloaded (HTTP 529, overloaded_error: Overloaded)"
    }
    assert str(error) == f"{error.reason}: try again in a moment"


@pytest.mark.parametrize(
    ("refusal", "said"),
    [
        (
            refuse(400, "no such thing"),
            (
                "the API refused the request (HTTP 400, invalid_request_error: no such thing): "
                "go back with /tree, or choose another model"
            ),
        ),
        (
            refuse(401, "no"),
            "the API refused the key (HTTP 401, authentication_error: no): check ANTHROPIC_API_KEY",
        ),
    ],
)
def test_a_refusal_says_that_it_is_one(refusal, said):
    _, error, _ = asked(refusal)

    assert str(error) == said


def test_an_answer_that_has_begun_is_not_asked_for_again():
    events, error, requests = asked(reply("Hi there.", drop_after=4), reply("never"))

    assert error is not None
    assert retries(events) == []
    assert requests == 1


def test_a_server_that_asks_for_an_hour_is_not_waited_for():
    events, error, requests = asked(refuse(429, retry_after=3600))

    assert (events, error.status, requests) == ([], 429, 1)


def test_a_pause_is_as_long_as_the_server_asks_for_and_as_is_said(monkeypatch):
    waited = []

    async def sleep(seconds):
        waited.append(seconds)

    monkeypatch.setattr(client.asyncio, "sleep", sleep)
    events, error, _ = asked(refuse(529, retry_after=2.5), reply("Hi."))

    assert error is None
    assert waited == [2.5]
    assert events[0]["after"] == 2.5


@given(st.integers(1, failures.MAX_RETRIES))
def test_pauses_that_nobody_asked_for_double_and_are_a_little_shorter_by_chance(attempt):
    pause = failures.pause_after(ModelError("busy", is_passing=True), attempt)

    assert 0.75 <= pause / 2 ** (attempt - 1) <= 1


@pytest.mark.parametrize(("seconds", "pause"), [(0, 0), (120, 120), (121, None)])
def test_a_server_is_waited_for_two_minutes_at_most(seconds, pause):
    problem = ModelError("busy", is_passing=True, retry_after=seconds)

    assert failures.pause_after(problem, 1) == pause


def test_a_pause_can_be_cancelled():
    async def ask(url):
        model = AnthropicModel(base_url=url, api_key="test")
        paused = asyncio.Event()

        async def stream():
            async for event in model.stream(REQUEST):
                assert event["type"] == "retry"
                paused.set()

        task = asyncio.ensure_future(stream())
        await paused.wait()
        task.cancel()
        await asyncio.wait({task})
        await model.close()
        return task.cancelled()

    with ScriptedServer([refuse(529, retry_after=100)]) as server:
        assert asyncio.run(ask(server.url))
        assert len(server.requests) == 1


def test_a_date_means_the_seconds_until_then():
    soon = datetime.now(UTC)  # noqa: TID251
    soon += timedelta(seconds=60)

    assert 50 < failures.retry_after(format_datetime(soon, usegmt=True)) <= 60
    assert failures.retry_after("Wed, 21 Oct 2015 07:28:00 GMT") == 0
    assert failures.retry_after("2.5") == 2.5
    assert failures.retry_after("-5") == 0
    assert failures.retry_after("nan") is None
    assert failures.retry_after("Wed, 21 Oct 2015 07:28:00 -0000") is None
    assert failures.retry_after("soon") is None
