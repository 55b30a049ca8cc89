"""The Messages API on loopback, by the standard library alone: the offline model's door.

Owns HTTP, server-sent events and error bodies; what is answered comes from the *respond* it is
given. The same server, scripted, drives the tests (`tests/server.py`).
"""

from __future__ import annotations

import json
import socket
import sys
from contextlib import suppress
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import count
from socketserver import TCPServer
from threading import Event as Flag
from threading import Thread
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

from infrastructure.model import offline

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping
    from typing import Self

    from infrastructure.model.offline import Json, Reply

    SSE = tuple[str, Json]  # the event's name and its data

_MESSAGES = "/v1/messages"
_PIECES = 48  # a block is streamed in at most about this many deltas
_SHORTEST_PIECE = 12
_SECONDS_TO_STOP = 2.0


class Refusal(Exception):  # noqa: N818 - it is an answer, not a failure of the server
    """An HTTP error to answer with, in the shape of the Messages API."""

    def __init__(
        self, status: int, kind: str, message: str, headers: Mapping[str, str] | None = None
    ) -> None:
        super().__init__(message)
        self.status = status
        self.headers = dict(headers or {})
        self.body: Json = {"type": "error", "error": {"type": kind, "message": message}}


class OfflineServer:
    """A loopback server of the Messages API, running from `start` to `stop`.

    As a context manager it starts and stops itself. *respond* is called in the thread of the
    connection; it may raise `Refusal` to answer with an error, or `ConnectionError` to hang up.
    Exceptions that are bugs end their connection and are kept in `failures`.
    """

    def __init__(self, respond: Callable[[Json], Reply] = offline.respond) -> None:
        self.respond = respond
        self.failures: list[BaseException] = []
        self._numbers = count(1)
        self._stopping = Flag()
        self._listener = _Listener(self)
        self._thread = Thread(target=self._serve, name="offline-model", daemon=True)

    @property
    def url(self) -> str:
        """The base URL to give to a client of the API."""
        return f"http://127.0.0.1:{self._listener.server_port}"

    def start(self) -> Self:
        """Begin to answer."""
        self._thread.start()
        return self

    def stop(self) -> None:
        """End every connection, open streams too, and wait for their threads. Idempotent."""
        if self._stopping.is_set():
            return
        self._stopping.set()
        if self._thread.is_alive():
            with suppress(OSError):  # wakes the accepting thread; no polling meanwhile
                socket.create_connection(("127.0.0.1", self._listener.server_port), 1).close()
            self._thread.join(_SECONDS_TO_STOP)
        self._listener.server_close()
        self._listener.hang_up()

    def __enter__(self) -> Self:
        return self.start()

    def __exit__(self, *_: object) -> None:
        self.stop()

    def read_request(self, path: str, body: bytes) -> Json:
        """Return the request in *body*, posted to *path*. Ours need no check; tests judge them."""
        del path
        request: Json = json.loads(body)
        return request

    def events(self, reply: Reply, message: Json) -> Iterator[SSE]:
        """Yield the server-sent events that stream *message*, which was made of *reply*."""
        del reply  # tests look at it, to play the faults that it asks for
        return message_events(message)

    def message(self, reply: Reply, request: Json) -> Json:
        """Return the Message object that carries *reply* to *request*."""
        return {
            "id": f"msg_offline_{offline.fingerprint(request, 'message', next(self._numbers))}",
            "type": "message",
            "role": "assistant",
            "model": request["model"],
            "content": list(reply.content),
            "stop_reason": reply.stop_reason,
            "stop_sequence": None,
            "usage": dict(reply.usage),
        }

    def request_id(self) -> str:
        """Return the next value of the `request-id` header."""
        return f"req_offline_{next(self._numbers)}"

    def _serve(self) -> None:
        while not self._stopping.is_set():
            self._listener.handle_request()


def message_events(message: Json) -> Iterator[SSE]:
    """Yield the events by which the API streams *message*: each a name and its data."""
    usage = message["usage"]
    start = {**message, "content": [], "stop_reason": None, "usage": {**usage, "output_tokens": 1}}
    yield _event("message_start", message=start)
    yield _event("ping")
    for index, block in enumerate(message["content"]):
        start, deltas = _split(block)
        yield _event("content_block_start", index=index, content_block=start)
        for delta in deltas:
            yield _event("content_block_delta", index=index, delta=delta)
        yield _event("content_block_stop", index=index)
    delta = {"stop_reason": message["stop_reason"], "stop_sequence": message["stop_sequence"]}
    yield _event("message_delta", delta=delta, usage=usage)
    yield _event("message_stop")


def _event(name: str, **data: Any) -> SSE:
    return name, {"type": name, **data}


def _split(block: Json) -> tuple[Json, list[Json]]:
    """Return how *block* starts, and the deltas that complete it. Unknown types start complete."""
    match block:
        case {"type": "text", "text": text}:
            return {**block, "text": ""}, _deltas("text_delta", "text", text)
        case {"type": "thinking", "thinking": text, "signature": signature}:
            last = {"type": "signature_delta", "signature": signature}
            start = {**block, "thinking": "", "signature": ""}
            return start, [*_deltas("thinking_delta", "thinking", text), last]
        case {"type": "tool_use", "input": arguments}:
            text = json.dumps(arguments, ensure_ascii=False)
            return {**block, "input": {}}, _deltas("input_json_delta", "partial_json", text)
        case _:
            return block, []


def _deltas(kind: str, key: str, text: str) -> list[Json]:
    size = max(_SHORTEST_PIECE, -(-len(text) // _PIECES))
    pieces = (text[start : start + size] for start in range(0, len(text), size))
    return [{"type": kind, key: piece} for piece in pieces]


class _Listener(ThreadingHTTPServer):
    """The listening socket. Knows its open connections, so that it can end them."""

    def __init__(self, owner: OfflineServer) -> None:
        self.owner = owner
        self._connections: dict[Thread, socket.socket] = {}
        super().__init__(("127.0.0.1", 0), _Connection)

    def server_bind(self) -> None:
        """Bind without the look-up of a host name that `HTTPServer` would do."""
        TCPServer.server_bind(self)
        self.server_name, self.server_port = "127.0.0.1", int(self.server_address[1])

    def process_request(self, request: Any, client_address: Any) -> None:
        """Answer *request*, a connection, in its own thread."""
        thread = Thread(
            target=self.process_request_thread,
            args=(request, client_address),
            name="offline-model connection",
            daemon=True,
        )
        for ended in [thread for thread in self._connections if not thread.is_alive()]:
            del self._connections[ended]
        thread.start()
        self._connections[thread] = request

    def hang_up(self) -> None:
        """End all connections, and wait for the threads that serve them."""
        for connection in self._connections.values():
            with suppress(OSError):  # it has ended already
                connection.shutdown(socket.SHUT_RDWR)
        for thread in self._connections:
            thread.join(_SECONDS_TO_STOP)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Print nothing: a client that hung up is none of the user's business."""
        del request, client_address
        error = sys.exception()
        if error is not None and not isinstance(error, ConnectionError):
            self.owner.failures.append(error)


class _Connection(BaseHTTPRequestHandler):
    """One connection: reads requests, writes JSON or server-sent events."""

    protocol_version = "HTTP/1.1"
    server_version = "leftfold-offline"
    disable_nagle_algorithm = True
    server: _Listener

    def do_POST(self) -> None:
        owner, path = self.server.owner, urlsplit(self.path).path
        body = self.rfile.read(int(self.headers["content-length"]))
        try:
            if path != _MESSAGES:
                raise Refusal(HTTPStatus.NOT_FOUND, "not_found_error", f"Not found: {path}")
            request = owner.read_request(path, body)
            reply = owner.respond(request)
        except Refusal as refusal:
            self._json(refusal.status, refusal.body, refusal.headers)
            return
        message = owner.message(reply, request)
        events = owner.events(reply, message)
        if request.get("stream"):
            self._stream(events)
        else:
            self._json(HTTPStatus.OK, message)

    def log_message(self, *_: Any) -> None:
        """Print nothing."""

    def _json(self, status: int, body: Json, headers: Mapping[str, str] | None = None) -> None:
        data = json.dumps(body).encode()
        self._head(status, {"content-length": str(len(data)), **(headers or {})})
        self.wfile.write(data)

    def _stream(self, events: Iterator[SSE]) -> None:
        kind = {"content-type": "text/event-stream; charset=utf-8", "cache-control": "no-cache"}
        self._head(HTTPStatus.OK, {**kind, "transfer-encoding": "chunked"})
        for name, data in events:
            chunk = f"event: {name}\ndata: {json.dumps(data)}\n\n".encode()
            self.wfile.write(b"%x\r\n%b\r\n" % (len(chunk), chunk))
        self.wfile.write(b"0\r\n\r\n")

    def _head(self, status: int, headers: Mapping[str, str]) -> None:
        self.send_response(status)
        usual = {
            "content-type": "application/json",
            "request-id": self.server.owner.request_id(),
        }
        for name, value in {**usual, **headers}.items():
            self.send_header(name, value)
        self.end_headers()
