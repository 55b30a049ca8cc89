"""The scripted Messages API on loopback that every test talks to. A script is a list of steps.

    with ScriptedServer([reply("Hello"), reply(call("bash", command="ls")), refuse(529)]) as server:
        client = anthropic.Anthropic(base_url=server.url, api_key="test", max_retries=0)
        ...
        assert server.requests[0].json["messages"] == [...]

One request to /v1/messages consumes one step; after the last one the offline model's rules answer.
Requests that break a rule of the API are refused as the API would, consume nothing, and make
leaving the `with` block fail (unless ``ScriptedServer(..., expect_violations=True)``).
"""

import json
from dataclasses import dataclass, field, replace
from threading import Event, Lock

from infrastructure.model import offline
from infrastructure.model.offline import Reply
from infrastructure.model.offline_server import OfflineServer, Refusal
from tests import api_rules

ERROR_TYPES = {
    400: "invalid_request_error",
    401: "authentication_error",
    403: "permission_error",
    404: "not_found_error",
    413: "request_too_large",
    429: "rate_limit_error",
    500: "api_error",
    529: "overloaded_error",
}
OVERFLOW = "prompt is too long: 210000 tokens > 200000 maximum"
PATIENCE = 10.0


class Gate:
    """Where a reply pauses until the test lets it go on."""

    def __init__(self):
        self.arrived = Event()
        self._open = Event()

    def wait(self):
        """Wait, in the test, until the reply has come to the gate."""
        assert self.arrived.wait(PATIENCE), "no reply came to the gate"

    def release(self):
        self._open.set()

    def pass_through(self):
        """Wait, in the server, until the test opens the gate."""
        self.arrived.set()
        self._open.wait(PATIENCE)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.release()


@dataclass(frozen=True, slots=True)
class ScriptedReply(Reply):
    """A reply, and how its delivery goes wrong. Events are counted from the first, message_start."""

    gate: Gate | None = None
    gate_after: int = 0
    drop_after: int | None = None
    error_after: int | None = None
    error_type: str = "overloaded_error"
    finished: bool = True
    cut: bool = False
    stop_details: dict | None = None

    def play(self, events):
        events = list(events)
        if self.cut:
            events = _without_last_piece(events)
        for _, event in events:
            if self.stop_details and event["type"] == "message_delta":
                event["delta"]["stop_details"] = self.stop_details
        if not self.finished:
            events = [
                event for event in events if event[0] not in ("message_delta", "message_stop")
            ]
        for number, event in enumerate(events):
            self._before(number)
            yield event
        self._before(len(events))

    def _before(self, number):
        if self.gate is not None and number == self.gate_after:
            self.gate.pass_through()
        if number == self.drop_after:
            raise ConnectionAbortedError
        if number == self.error_after:
            raise _StreamError(self.error_type)


class _StreamError(Exception):
    """The stream ends with an SSE `error` event of this type."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """One request as it came over the wire."""

    path: str
    body: bytes
    json: dict
    violations: tuple[str, ...] = field(default=())


def reply(*blocks, stop_reason=None, usage=None, **delivery):
    """Answer with *blocks*; a str is a text block.

    *delivery*: gate=Gate(), gate_after=K · drop_after=K (the connection) · error_after=K (an SSE
    error event, error_type="overloaded_error") · finished=False (no message_delta, no message_stop)
    · stop_details={…} · cut=True (the last tool call's JSON loses its last piece; the stop reason is max_tokens).
    They act on streams only.
    """
    content = tuple(text(block) if isinstance(block, str) else block for block in blocks)
    if stop_reason is None:
        called = any(block["type"] == "tool_use" for block in content)
        stop_reason = "tool_use" if called else "end_turn"
    if delivery.get("cut"):
        stop_reason = "max_tokens"
    return ScriptedReply(content, stop_reason, usage or {}, **delivery)


def refuse(status, message=None, *, kind=None, retry_after=None):
    """Answer with an HTTP error in the API's shape."""
    headers = {} if retry_after is None else {"retry-after": str(retry_after)}
    kind = kind or ERROR_TYPES.get(status, "api_error")
    return Refusal(status, kind, message or f"scripted {kind}", headers)


def overflow(message=OVERFLOW):
    """Refuse the request as longer than the model's window."""
    return refuse(400, message)


def hang_up():
    """Close the connection before a byte of the answer."""
    return ConnectionAbortedError()


def by_rules(request):
    """Answer one request by the offline model's rules."""
    return offline.respond(request)


def text(content):
    return {"type": "text", "text": content}


def thinking(content, signature=None):
    """Return a thinking block; without a *signature* it gets the offline model's for its model."""
    block = {"type": "thinking", "thinking": content}
    return block if signature is None else {**block, "signature": signature}


def call(name, /, *, call_id=None, **arguments):
    """Return a tool_use block; without a *call_id* the server gives it a unique one."""
    block = {"type": "tool_use", "name": name, "input": arguments}
    return block if call_id is None else {**block, "id": call_id}


class ScriptedServer(OfflineServer):
    """An `OfflineServer` that plays *steps* and records and judges what it is sent.

    A step is a `reply`, a `refuse`/`overflow`, a `hang_up`, or a function from the request (a dict)
    to one of these, `by_rules` for example.
    """

    def __init__(self, steps=(), *, expect_violations=False):
        super().__init__(self._next)
        self.requests = []  # to /v1/messages, in order
        self.violations = []
        self._expect_violations = expect_violations
        self._steps = list(steps)
        self._gates = [step.gate for step in self._steps if getattr(step, "gate", None)]
        self._signed = {}  # (signature) → {(model, thinking)}
        self._mutex = Lock()

    @property
    def unused(self):
        """The steps that no request has consumed yet."""
        return tuple(self._steps)

    @property
    def prefix_violations(self):
        """What keeps successive requests from being prefix extensions of each other."""
        return [
            f"request {number}: {violation}"
            for number in range(1, len(self.requests))
            for violation in api_rules.prefix_violations(
                self.requests[number - 1].json, self.requests[number].json
            )
        ]

    def add(self, *steps):
        """Append *steps* to the script."""
        with self._mutex:
            self._steps.extend(steps)
            self._gates.extend(step.gate for step in steps if getattr(step, "gate", None))

    def stop(self):
        for gate in self._gates:
            gate.release()
        super().stop()

    def __exit__(self, kind, error, traceback):
        super().__exit__(kind, error, traceback)
        if kind is None:
            assert not self.failures, self.failures
            assert self._expect_violations or not self.violations, self.violations

    def read_request(self, path, body):
        broken = self._judge(path, body)
        if broken:
            self.violations.extend(broken)
            raise refuse(400, "; ".join(broken))
        return super().read_request(path, body)

    def events(self, reply, message):
        events = super().events(reply, message)
        if not isinstance(reply, ScriptedReply):
            yield from events
            return
        try:
            yield from reply.play(events)
        except _StreamError as broken:
            error = {"type": str(broken), "message": f"scripted {broken}"}
            yield "error", {"type": "error", "error": error}

    def message(self, reply, request):
        message = super().message(reply, request)
        for block in message["content"]:
            if block["type"] == "thinking":
                signed = self._signed.setdefault(block["signature"], set())
                signed.add((request["model"], block["thinking"]))
        return message

    def _judge(self, path, body):
        try:
            request = json.loads(body)
        except ValueError as error:
            return [f"body: not JSON: {error}"]
        broken = [*api_rules.violations(request), *self._forged(request)]
        with self._mutex:
            self.requests.append(Recorded(path, body, request, tuple(broken)))
        return broken

    def _forged(self, request):
        """Thinking that this server signed must come back as it was, to the model it was from."""
        for message in request.get("messages", ()):
            for block in message["content"] if isinstance(message.get("content"), list) else ():
                signed = self._signed.get(block.get("signature"))
                if signed and (request.get("model"), block.get("thinking")) not in signed:
                    yield "messages: a thinking block was modified, or is another model's"

    def _next(self, request):
        with self._mutex:
            step = self._steps.pop(0) if self._steps else by_rules
            number = len(self.requests)
        if callable(step):
            step = step(request)
        if isinstance(step, BaseException):
            raise step
        if not isinstance(step, ScriptedReply):
            return step
        content = tuple(
            _completed(block, request, f"toolu_scripted_{number}_{index}")
            for index, block in enumerate(step.content)
        )
        usage = {**offline.usage(request, list(content)), **step.usage}
        return replace(step, content=content, usage=usage)


def _completed(block, request, call_id):
    if block["type"] == "tool_use" and "id" not in block:
        return {"type": "tool_use", "id": call_id, **block}
    if block["type"] == "thinking" and "signature" not in block:
        return {**block, "signature": offline.signature(request["model"], block["thinking"])}
    return block


def _without_last_piece(events):
    """Drop the last piece of the last tool call's JSON."""
    pieces = [
        index
        for index, (_, data) in enumerate(events)
        if data.get("delta", {}).get("type") == "input_json_delta"
    ]
    assert pieces, "cut=True needs a tool call"
    return events[: pieces[-1]] + events[pieces[-1] + 1 :]
