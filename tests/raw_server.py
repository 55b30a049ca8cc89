"""A loopback server that answers with bytes as they are: what no well-behaved server would send.

    with RawServer(response(sse(*events)), response("<html>…", kind="text/html")) as server:
        ...

One request consumes one answer; the last one answers all that follow. An answer is bytes, after
which the connection is closed, or a list of bytes and `Gate`s: the server waits at a gate, and the
connection stays open until the test opens it.
"""

import json
import socket
from contextlib import suppress
from socketserver import BaseRequestHandler, ThreadingTCPServer
from threading import Lock, Thread

from tests.server import Gate


class RawServer:
    """Plays *answers*; `requests` are the bodies that came."""

    def __init__(self, *answers):
        self.requests = []
        self._answers = list(answers)
        self._mutex = Lock()
        self._gates = [part for answer in answers for part in answer if isinstance(part, Gate)]
        self._listener = _Listener(("127.0.0.1", 0), _handler(self))
        self._thread = Thread(target=self._listener.serve_forever, args=(0.01,), daemon=True)

    @property
    def url(self):
        return f"http://127.0.0.1:{self._listener.server_address[1]}"

    def answer(self, body):
        """Record the *body* of a request, and return the parts of its answer."""
        with self._mutex:
            self.requests.append(json.loads(body))
            answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        return [answer] if isinstance(answer, bytes) else answer

    def __enter__(self):
        self._thread.start()
        return self

    def __exit__(self, *_):
        for gate in self._gates:
            gate.release()
        self._listener.shutdown()
        self._listener.server_close()


class _Listener(ThreadingTCPServer):
    daemon_threads = True
    request_queue_size = 50

    def handle_error(self, request, client_address):
        """Print nothing: the client may hang up."""


def _handler(owner):
    class Connection(BaseRequestHandler):
        def handle(self):
            head, _, body = self._until(b"\r\n\r\n")
            length = next(
                int(line.partition(b":")[2])
                for line in head.lower().splitlines()
                if line.startswith(b"content-length:")
            )
            while len(body) < length:
                body += self.request.recv(65_536)
            for part in owner.answer(body):
                if isinstance(part, Gate):
                    part.pass_through()
                else:
                    self.request.sendall(part)
            with suppress(OSError):
                self.request.shutdown(socket.SHUT_RDWR)

        def _until(self, mark):
            data = b""
            while mark not in data:
                piece = self.request.recv(65_536)
                if not piece:
                    raise ConnectionError
                data += piece
            return data.partition(mark)

    return Connection


def response(body="", *, status=200, kind="text/event-stream", headers=(), version="1.1"):
    """Return an HTTP response that ends where the connection does."""
    data = body if isinstance(body, bytes) else body.encode("utf-8", "surrogatepass")
    lines = [f"HTTP/{version} {status} Said"]
    lines += [f"content-type: {kind}"] if kind else []
    lines += [f"{name}: {value}" for name, value in headers]
    head = "\r\n".join([*lines, "connection: close", "", ""])
    return head.encode("utf-8", "replace") + data


def chunked(*pieces, is_whole=True):
    """Return a chunked response; without its last chunk it was cut."""
    head = response(headers=[("transfer-encoding", "chunked")])
    chunks = b"".join(b"%x\r\n%b\r\n" % (len(piece), piece) for piece in pieces)
    return head + chunks + (b"0\r\n\r\n" if is_whole else b"")


def sse(*events, is_named=True):
    """Return *events*, dicts, as server-sent events, with or without their names."""
    return "".join(
        (f"event: {event.get('type')}\n" if is_named else "") + f"data: {json.dumps(event)}\n\n"
        for event in events
    )


# -- events ----------------------------------------------------------------------------------------


def start(**usage):
    message = {"id": "msg_1", "type": "message", "role": "assistant", "content": []}
    return {"type": "message_start", "message": {**message, "usage": usage}}


def block(index=0, /, **content):
    return {"type": "content_block_start", "index": index, "content_block": content}


def delta(index=0, /, **content):
    return {"type": "content_block_delta", "index": index, "delta": content}


def stop(index=0):
    return {"type": "content_block_stop", "index": index}


def end(stop_reason="end_turn", **more):
    return [
        {"type": "message_delta", "delta": {"stop_reason": stop_reason, **more}, "usage": {}},
        {"type": "message_stop"},
    ]


def said(text, **more):
    """Return the events of an answer that says *text*."""
    opening = [start(), block(type="text", text=""), delta(type="text_delta", text=text), stop()]
    return [*opening, *end(**more)]
