"""What goes over the wire: the bytes of the request and no others, in a head like the SDK's own."""

import asyncio
from contextlib import suppress
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread

import anthropic

from domain.request import Request
from infrastructure.errors import ModelError
from infrastructure.model.client import AnthropicModel

REQUEST = Request(
    b'{ "stream":true,"model":"m","max_tokens":5e1, "messages":[ {"role":"user",'
    b'"content":"\\u00e9\xc3\xa9"}]}',
    50,
)
"""Spelled as no encoder would: with blanks, an exponent, an escape that nobody needs."""


class Wire:
    """A server that refuses everything, and keeps the path, the headers and the body of it."""

    def __enter__(self):
        kept = self.kept = []

        class Refuse(BaseHTTPRequestHandler):
            def do_POST(self):
                body = self.rfile.read(int(self.headers["content-length"]))
                headers = {name.lower(): value for name, value in self.headers.items()}
                kept.append((self.path, headers, body))
                self.send_response(400)
                self.send_header("content-length", "0")
                self.end_headers()

            def log_message(self, *_):
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Refuse)
        self.url = f"http://127.0.0.1:{self._server.server_port}"
        Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_):
        self._server.shutdown()
        self._server.server_close()


async def send(url, *, too):
    """Send the request by our model, and what it says by the SDK's own method if *too*."""
    model = AnthropicModel(base_url=url, api_key="test", max_retries=0)
    with suppress(ModelError):
        async for _ in model.stream(REQUEST):
            pass
    if too:
        with suppress(anthropic.APIStatusError):
            await model._client.messages.create(**REQUEST.content)
    await model.close()


def test_the_bytes_of_a_request_are_sent_as_they_are():
    with Wire() as wire:
        asyncio.run(send(wire.url, too=False))

    assert [body for _, _, body in wire.kept] == [REQUEST.body]


def test_the_head_of_a_request_is_that_of_the_method_that_would_encode_it_anew():
    with Wire() as wire:
        asyncio.run(send(wire.url, too=True))

    (path, ours, body), (their_path, theirs, their_body) = wire.kept
    assert path == their_path
    assert body != their_body  # else the test shows nothing
    differ = {"content-length"}
    assert {k: v for k, v in ours.items() if k not in differ} == {
        k: v for k, v in theirs.items() if k not in differ
    }
