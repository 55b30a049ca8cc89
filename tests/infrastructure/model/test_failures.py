"""What a refusal becomes, whatever the server sends."""

import asyncio
import inspect
import json
import sys

import pytest

from domain.request import Request
from infrastructure.errors import ModelError
from infrastructure.model.client import AnthropicModel
from infrastructure.model.failures import refusal, words_of
from tests.raw_server import RawServer, response


def test_a_body_that_is_nested_deeply_or_is_a_page_without_an_end_is_an_error_like_any_other():
    """Nested 900 deep it ended the program; a page of 15 MB of open tags was read for minutes."""
    deep = json.loads('{"error":' * 900 + '"no"' + "}" * 900)
    for body in (deep, "<html>" + "<p " * 5_000_000, "<script>" * 2_000_000):
        problem = refusal(body, status=400, headers={})
        assert problem.status == 400
        assert len(problem.reason) < 1000


def test_a_place_that_stands_beside_the_words_is_said_with_them():
    place = {"type": "extra_forbidden", "loc": ["body", "tools", 0, "strict"], "msg": "No extras"}

    assert (
        "body.tools.0.strict: No extras"
        in refusal({"detail": [place]}, status=422, headers={}).reason
    )


@pytest.mark.parametrize(
    ("status", "passes"),
    [
        *((status, True) for status in (408, 409, 425, 429, 500, 502, 503, 504, 520, 529)),
        *((status, False) for status in (302, 400, 401, 403, 404, 413, 422, 501, 505, 511)),
    ],
)
def test_a_status_says_whether_waiting_helps(status, passes):
    assert refusal("no", status=status, headers={}).is_passing is passes


@pytest.mark.parametrize("status", [429, 500, 503])
@pytest.mark.parametrize("words", ["prompt is too long: 9000 tokens > 8000", "max_tokens: 9 > 8"])
def test_a_limit_that_is_named_does_not_pass_by_waiting(status, words):
    problem = refusal(words, status=status, headers={}, asked_for=9)
    names_limit = problem.is_overflow or problem.max_tokens is not None

    assert problem.is_passing is not names_limit
    assert names_limit or status == 429


@pytest.mark.parametrize(
    ("kind", "status", "passes"),
    [
        ("overloaded_error", 529, True),
        ("rate_limit_error", 429, True),
        ("api_error", 500, True),
        ("timeout_error", 504, True),
        ("invalid_request_error", 400, False),
        ("galaxy_error", None, False),
    ],
)
def test_in_a_stream_the_kind_of_an_error_stands_for_its_status(kind, status, passes):
    problem = refusal({"error": {"type": kind, "message": "no"}}, status=200, headers={})

    assert (problem.kind, problem.status, problem.is_passing) == (kind, status, passes)


@pytest.mark.parametrize(
    ("body", "kind"),
    [
        ({"type": "overloaded_error", "message": "no"}, "overloaded_error"),
        ({"type": "message", "message": "no"}, "invalid_request_error"),
        ({"error": {"type": "two words"}}, "invalid_request_error"),
        ({"error": {"type": 7}}, "invalid_request_error"),
        ("no", "invalid_request_error"),
    ],
)
def test_what_is_no_name_of_an_error_is_none(body, kind):
    assert refusal(body, status=400, headers={}).kind == kind


@pytest.mark.parametrize("header", ["request-id", "x-request-id"])
def test_the_id_of_the_request_is_kept(header):
    assert refusal("no", status=400, headers={header: "req_1"}).request_id == "req_1"


def test_a_long_wait_that_the_server_asks_for_is_the_advice():
    long, short = (refusal("no", status=429, headers={"retry-after": n}) for n in ("3600", "60"))

    assert "3,600 seconds" in str(long)
    assert "seconds" not in str(short)


@pytest.mark.parametrize(
    ("body", "words"),
    [
        ("<html><style>a {}</style><b>Bad</b> gateway</html>", "Bad gateway"),
        ({"errors": [{"message": "one"}, {"message": "two"}]}, "one"),
        ({"detail": "so"}, "so"),
        ("a\n b", "a b"),
        ("x" * 5000, f"{'x' * 599}…"),
        (None, ""),
    ],
)
def test_an_error_body_is_said_in_one_line_without_markup(body, words):
    assert words_of(body) == words


def test_the_deepest_body_costs_no_more_frames_than_any_caller_has():
    deep: object = "no"
    for _ in range(300):
        deep = {"error": deep}
    limit = sys.getrecursionlimit()
    try:
        sys.setrecursionlimit(len(inspect.stack(0)) + 150)
        assert refusal(deep, status=400, headers={}).status == 400
    finally:
        sys.setrecursionlimit(limit)


@pytest.mark.parametrize("status", range(400, 500))
def test_the_conversation_is_blamed_for_nothing_but_what_it_says(status):
    """A proxy that wants a password, a wrong address: both were told to go back with /tree."""
    advice = str(refusal("no", status=status, headers={})).rpartition("): ")[2]

    assert ("/tree" in advice) is (status in (400, 415, 422))
    assert (status != 407) or "the proxy" in advice


@pytest.mark.parametrize(
    ("answer", "words"),
    [
        (b"SSH-2.0-OpenSSH_9\r\n", "no answer in HTTP from the API at http://127"),
        (b"HTTP/9.9 abc\r\n\r\n", "no answer in HTTP from the API at http://127"),
        (
            b"HTTP/1.1 101 Up\r\nupgrade: h2c\r\n\r\n",
            "no answer in HTTP from the API at http://127",
        ),
        (response("text", headers=[("content-encoding", "gzip")]), "not what its content-encoding"),
        (
            response("text", status=500, headers=[("content-encoding", "gzip")]),
            "not what its content-encoding",
        ),
    ],
)
def test_a_server_that_answers_with_other_bytes_is_not_one_that_is_not_there(answer, words):
    async def ask(url):
        model = AnthropicModel(base_url=url, api_key="test", max_retries=0)
        request = Request.of({"model": "m", "max_tokens": 1, "stream": True}, [])
        try:
            async for _ in model.stream(request):
                pass
        finally:
            await model.close()

    with RawServer(answer) as server, pytest.raises(ModelError, match=words):
        asyncio.run(ask(server.url))
