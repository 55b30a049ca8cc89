"""The loopback server and its scripted form, driven by the real SDK and by raw sockets."""

import asyncio
import json
import socket
import threading
import time
from contextlib import contextmanager

import anthropic
import httpx2
import pytest

from infrastructure.model import offline
from infrastructure.model.offline_server import OfflineServer, Refusal
from tests import server as scripted
from tests.server import (
    Gate,
    ScriptedServer,
    by_rules,
    call,
    hang_up,
    overflow,
    refuse,
    reply,
    thinking,
)

TOOLS = [{"name": "bash", "input_schema": {"type": "object"}}]
ASK = {"model": "claude-sonnet-5-5", "max_tokens": 1000, "tools": TOOLS}


def user(content):
    return {"role": "user", "content": content}


@contextmanager
def client_of(server):
    with anthropic.Anthropic(base_url=server.url, api_key="offline", max_retries=0) as client:
        yield client


@contextmanager
def talk(*steps, **options):
    with ScriptedServer(steps, **options) as server, client_of(server) as client:
        yield server, client


def streamed(client, *messages, **more):
    with client.messages.stream(**ASK, messages=list(messages), **more) as stream:
        events = list(stream)
        return events, stream.get_final_message()


def connected(server):
    return socket.create_connection(("127.0.0.1", int(server.url.rsplit(":", 1)[1])), 5)


def offline_threads():
    return [thread for thread in threading.enumerate() if "offline-model" in thread.name]


@pytest.fixture(autouse=True)
def _no_thread_is_left():
    yield
    assert offline_threads() == []


# The offline server and the SDK.


def test_the_sdk_streams_a_tool_call_and_the_answer_to_its_result():
    with OfflineServer() as server, client_of(server) as client:
        _, first = streamed(client, user("list the files here"))
        (block,) = first.content
        assert (first.stop_reason, block.name, block.input) == (
            "tool_use",
            "bash",
            {"command": "ls"},
        )

        result = {"type": "tool_result", "tool_use_id": block.id, "content": "a.py\n"}
        events, second = streamed(
            client,
            user("list the files here"),
            {"role": "assistant", "content": [block.to_dict()]},
            user([result]),
        )

    assert second.content[0].text == "Here are the files in this directory:\n\n```\na.py\n```"
    assert second.stop_reason == "end_turn"
    assert second.id != first.id
    assert second.usage.output_tokens > 0
    assert sum(event.type == "text" for event in events) > 2


def test_the_sdk_gets_the_same_without_a_stream():
    with OfflineServer() as server, client_of(server) as client:
        message = client.messages.create(**ASK, messages=[user("列出当前目录的文件")])

    assert message.content[0].input == {"command": "ls"}
    assert message.model == "claude-sonnet-5-5"
    assert message.stop_reason == "tool_use"


def test_blocks_come_through_a_stream_as_they_were():
    content = [
        {"type": "thinking", "thinking": "质数 \u2028 \U0001f600", "signature": "sig=="},
        {"type": "redacted_thinking", "data": "AAAA"},
        {"type": "text", "text": "one two three four five 😀" * 50},
        {"type": "tool_use", "id": "toolu_1", "name": "bash", "input": {"command": "é\n", "n": [1, None, 10**20]}},
        {"type": "tool_use", "id": "toolu_2", "name": "bash", "input": {}},
    ]  # fmt: skip
    with talk(reply(*content), reply(*content)) as (_, client):
        _, message = streamed(client, user("hi"))
        plain = client.messages.create(**ASK, messages=[user("hi")])

    assert [block.to_dict() for block in message.content] == content
    assert [block.to_dict() for block in plain.content] == content


def test_thinking_streams_in_deltas_with_a_signature():
    with OfflineServer() as server, client_of(server) as client:
        events, message = streamed(client, user("think about primes"))

    kinds = [event.type for event in events]
    assert kinds.count("thinking") > 2
    assert kinds.count("signature") == 1
    block = message.content[0]
    assert block.signature == offline.signature("claude-sonnet-5-5", block.thinking)


def test_parallel_tools_stream():
    with OfflineServer() as server, client_of(server) as client:
        _, message = streamed(client, user("use 16 tools at once"))

    assert [block.input["command"] for block in message.content] == [
        f"echo {n}" for n in range(1, 17)
    ]
    assert len({block.id for block in message.content}) == 16


def test_the_async_sdk_streams_many_at_a_time():
    async def ask(client, number):
        async with client.messages.stream(**ASK, messages=[user(f"run: echo {number}")]) as stream:
            return (await stream.get_final_message()).content[0].input["command"]

    async def main(url):
        async with anthropic.AsyncAnthropic(
            base_url=url, api_key="offline", max_retries=0
        ) as client:
            return await asyncio.gather(*(ask(client, number) for number in range(8)))

    with OfflineServer() as server:
        commands = asyncio.run(main(server.url))

    assert commands == [f"echo {number}" for number in range(8)]


def test_another_path_is_not_found():
    with OfflineServer() as server, client_of(server) as client:
        with pytest.raises(anthropic.NotFoundError):
            client.post("/v1/nothing", cast_to=object, body={})

        assert client.messages.create(**ASK, messages=[user("hi")]).content


# Stopping.


def test_stopping_may_be_repeated_and_closes_the_port():
    for _ in range(20):
        server = OfflineServer().start()
        server.stop()
        server.stop()
    OfflineServer().stop()

    with pytest.raises(OSError, match="refused"):
        connected(server)


def test_stopping_ends_idle_connections():
    server = OfflineServer().start()
    with connected(server) as connection:
        with client_of(server) as client:
            client.messages.create(**ASK, messages=[user("hi")])
            server.stop()

        assert connection.recv(1) == b""


def test_stopping_while_a_stream_is_open_ends_the_stream():
    class Endless(OfflineServer):
        def events(self, reply, message):
            yield from list(super().events(reply, message))[:4]
            while True:
                time.sleep(0.005)
                yield "ping", {"type": "ping"}

    with (
        Endless() as server,
        client_of(server) as client,
        client.messages.stream(**ASK, messages=[user("hi")]) as stream,
    ):
        next(iter(stream))
        server.stop()

        with pytest.raises((httpx2.RemoteProtocolError, httpx2.ReadError)):
            list(stream)

    assert server.failures == []


def test_a_client_that_hangs_up_is_no_failure(capfd):
    with Gate() as gate, talk(reply("word " * 2000, gate=gate, gate_after=5)) as (server, client):
        with client.messages.stream(**ASK, messages=[user("hi")]) as stream:
            next(iter(stream))
            gate.wait()
        gate.release()

        assert streamed(client, user("hi"))[1].content
        assert server.failures == []

    assert capfd.readouterr() == ("", "")


def test_a_bug_of_the_responder_is_kept():
    def broken(request):
        raise LookupError(request["model"])

    with (
        OfflineServer(broken) as server,
        client_of(server) as client,
        pytest.raises(anthropic.APIConnectionError),
    ):
        client.messages.create(**ASK, messages=[user("hi")])

    assert [type(failure) for failure in server.failures] == [LookupError]


def test_a_responder_may_refuse():
    def refusing(request):
        raise Refusal(402, "billing_error", "no credit", {"x-should-retry": "false"})

    with (
        OfflineServer(refusing) as server,
        client_of(server) as client,
        pytest.raises(anthropic.APIStatusError, match="no credit") as caught,
    ):
        client.messages.create(**ASK, messages=[user("hi")])

    assert (caught.value.status_code, caught.value.type) == (402, "billing_error")
    assert caught.value.response.headers["x-should-retry"] == "false"


# The scripted server.


def test_steps_are_consumed_one_by_one_and_then_the_rules_answer():
    with talk(reply("one"), by_rules, lambda request: reply(request["model"])) as (server, client):
        texts = [streamed(client, user("hi"))[1].content[0].text for _ in range(3)]
        assert server.unused == ()
        texts.append(streamed(client, user("hi"))[1].content[0].text)

    assert texts[0] == "one"
    assert texts[2] == "claude-sonnet-5-5"
    assert texts[1] == texts[3]
    assert "offline model" in texts[1]


def test_requests_are_recorded_as_bytes_and_as_json():
    with talk(reply("one")) as (server, client):
        streamed(client, user("hi"))
        streamed(client, user("hi"), {"role": "assistant", "content": "one"}, user("go on"))

        assert [len(request.json["messages"]) for request in server.requests] == [1, 3]
        assert json.loads(server.requests[0].body) == server.requests[0].json
        assert server.requests[0].path == "/v1/messages"
        assert server.prefix_violations == []

        streamed(client, user("else"))
        assert len(server.prefix_violations) == 1


def test_calls_get_unique_ids_and_usage_may_be_given():
    steps = (
        reply(call("bash", command="a"), call("bash", command="b")),
        reply("x", usage={"input_tokens": 7}),
    )
    with talk(*steps, reply(call("bash", call_id="mine"))) as (_, client):
        first, second, third = (streamed(client, user("hi"))[1] for _ in range(3))

    assert [block.id for block in first.content] == ["toolu_scripted_1_0", "toolu_scripted_1_1"]
    assert first.stop_reason == "tool_use"
    assert second.usage.input_tokens == 7
    assert third.content[0].id == "mine"


@pytest.mark.parametrize(
    ("step", "error", "kind"),
    [
        (refuse(400), anthropic.BadRequestError, "invalid_request_error"),
        (refuse(401), anthropic.AuthenticationError, "authentication_error"),
        (refuse(404), anthropic.NotFoundError, "not_found_error"),
        (refuse(429, retry_after=3), anthropic.RateLimitError, "rate_limit_error"),
        (refuse(500), anthropic.InternalServerError, "api_error"),
        (refuse(529), anthropic.InternalServerError, "overloaded_error"),
        (overflow(), anthropic.BadRequestError, "invalid_request_error"),
    ],
)
def test_a_scripted_refusal_is_the_sdks_error(step, error, kind):
    with talk(step) as (_, client), pytest.raises(error) as caught:
        streamed(client, user("hi"))

    assert caught.value.type == kind
    assert caught.value.request_id.startswith("req_offline_")
    assert caught.value.response.headers.get("retry-after") == step.headers.get("retry-after")
    assert str(step) in str(caught.value)


def test_the_connection_drops_before_the_answer():
    with talk(hang_up()) as (_, client), pytest.raises(anthropic.APIConnectionError):
        streamed(client, user("hi"))


@pytest.mark.parametrize("after", [0, 1, 4, 6])
def test_the_connection_drops_after_some_events(after):
    with (
        talk(reply("hello " * 20, drop_after=after)) as (_, client),
        client.messages.create(**ASK, messages=[user("hi")], stream=True) as stream,
    ):
        events = iter(stream)
        got = [next(events) for _ in range(after - 1 if after > 1 else after)]  # no ping
        with pytest.raises(httpx2.RemoteProtocolError):
            next(events)

    assert len(got) == max(0, after - 1) or after < 2


def test_an_error_event_in_mid_stream_is_an_api_error():
    with (
        talk(reply("hello " * 20, error_after=4)) as (_, client),
        pytest.raises(anthropic.APIStatusError) as caught,
    ):
        streamed(client, user("hi"))

    assert caught.value.type == "overloaded_error"


def test_a_stream_may_end_without_its_end():
    with talk(reply("hello", finished=False)) as (_, client):
        _, message = streamed(client, user("hi"))

    assert message.content[0].text == "hello"
    assert message.stop_reason is None


def test_a_tool_call_is_cut_off():
    step = reply(call("write", path="a.py", text="x" * 100), cut=True)
    with talk(step) as (_, client):
        _, message = streamed(client, user("hi"))

    assert message.stop_reason == "max_tokens"
    assert message.content[0].input != {"path": "a.py", "text": "x" * 100}


def test_an_unknown_block_comes_through():
    block = {"type": "hologram", "data": {"depth": 3}}
    with talk(reply(block, "text")) as (_, client):
        _, message = streamed(client, user("hi"))

    assert message.content[0].to_dict() == block


def test_a_stream_waits_at_its_gate():
    gate = Gate()
    with (
        talk(reply("hello " * 20, gate=gate, gate_after=4)) as (_, client),
        client.messages.stream(**ASK, messages=[user("hi")]) as stream,
    ):
        events = iter(stream)
        got = [next(events) for _ in range(4)]  # start, block start, delta and its text event
        gate.wait()
        assert got[-1].type == "text"
        gate.release()
        assert stream.get_final_message().content[0].text == "hello " * 20


def test_leaving_opens_every_gate():
    gate = Gate()
    with (
        talk(reply("hello", gate=gate, gate_after=2)) as (server, client),
        client.messages.stream(**ASK, messages=[user("hi")]),
    ):
        gate.wait()
        server.stop()


def test_a_request_that_breaks_a_rule_is_refused_and_consumes_nothing():
    with talk(reply("one"), expect_violations=True) as (server, client):
        with pytest.raises(anthropic.BadRequestError, match="blank"):
            streamed(client, user(" "))

        assert server.violations == ["messages.0: the content is blank"]
        assert len(server.unused) == 1
        assert streamed(client, user("hi"))[1].content[0].text == "one"


def test_leaving_reports_violations():
    with (
        pytest.raises(AssertionError, match="blank"),
        talk() as (_, client),
        pytest.raises(anthropic.BadRequestError),
    ):
        streamed(client, user(" "))


def test_thinking_must_come_back_as_it_was_and_to_its_model():
    with talk(reply(thinking("deep"), "ok"), expect_violations=True) as (server, client):
        blocks = [block.to_dict() for block in streamed(client, user("hi"))[1].content]
        streamed(client, user("hi"), {"role": "assistant", "content": blocks}, user("go on"))
        assert server.violations == []

        changed = [{**blocks[0], "thinking": "shallow"}, blocks[1]]
        for content, model in ((changed, "claude-sonnet-5-5"), (blocks, "claude-haiku-5-5")):
            with pytest.raises(anthropic.BadRequestError, match="thinking block was modified"):
                client.messages.create(
                    model=model,
                    max_tokens=10,
                    messages=[user("hi"), {"role": "assistant", "content": content}, user("go on")],
                )


def test_steps_may_be_added_while_it_runs():
    with talk() as (server, client):
        server.add(reply(scripted.text("late")))

        assert streamed(client, user("hi"))[1].content[0].text == "late"
