"""A server that answers anything: the turn ends, says how in a line, and the next prompt works.

Random answers over a real socket: any status, header and body, cut anywhere, events of any shape in
any order. Whatever comes, nothing raises, the log verifies, and what is in it makes a request that
the API accepts.
"""

import asyncio
import gzip
import json
from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import given, settings
from hypothesis import strategies as st

from app.application import Conversations
from app.verification import verify
from tests.app.doubles import Desk, Judge
from tests.levels import examples
from tests.raw_server import RawServer, block, delta, end, response, said, sse, start, stop
from tests.server import ScriptedServer, reply
from tests.strategies import TEXTS, json_values

MOST_TURNS = 4
"""Requests that get a hostile answer, before the server comes to its senses."""

# -- events ----------------------------------------------------------------------------------------

INDICES = st.sampled_from([0, 0, 0, 1, 2, -1, 10**20, True, None, "0", 1.5])
IDS = st.sampled_from(["toolu_1", "toolu_2", "toolu_1", "", " ", "a.b:c", "x" * 300, None, 7])
NAMES = st.sampled_from(["bash", "read", "write", "nope", "", "a b", "x" * 200, None, 5])
REASONS = st.one_of(
    st.sampled_from(
        [
            "end_turn",
            "tool_use",
            "max_tokens",
            "refusal",
            "pause_turn",
            "stop_sequence",
            "model_context_window_exceeded",
            "galaxy",
        ]
    ),
    json_values,
)
INPUTS = st.sampled_from(
    [
        *('{"command": "ls"}', '{"path": "a.txt"}', '{"path": "a', "", "[]", "null", '"x"', "}{"),
        *('{"path": 1e999}', '{"path": NaN}', "[" * 3000, '{"text": "\\ud800"}', "9" * 5000),
    ]
)
COUNTS = st.one_of(st.integers(0, 100), json_values)
BLOCKS = st.one_of(
    st.builds(lambda text: {"type": "text", "text": text}, TEXTS | json_values),
    st.builds(
        lambda call_id, name, value: {
            "type": "tool_use", "id": call_id, "name": name, "input": value
        },
        IDS, NAMES, st.just({}) | json_values,
    ),
    st.builds(
        lambda text, signature: {"type": "thinking", "thinking": text, "signature": signature},
        TEXTS | json_values, TEXTS | json_values,
    ),
    st.sampled_from([{"type": "redacted_thinking", "data": "x"}, {"type": "tool_result"}, {}]),
    st.dictionaries(st.sampled_from(["type", "text", "id", "input", "citations"]), json_values),
)  # fmt: skip
DELTAS = st.one_of(
    st.builds(lambda text: {"type": "text_delta", "text": text}, TEXTS | json_values),
    st.builds(lambda text: {"type": "thinking_delta", "thinking": text}, TEXTS | json_values),
    st.builds(lambda text: {"type": "signature_delta", "signature": text}, TEXTS | json_values),
    st.builds(
        lambda text: {"type": "input_json_delta", "partial_json": text}, INPUTS | json_values
    ),
    st.builds(lambda cited: {"type": "citations_delta", "citation": cited}, json_values),
    json_values,
)
ERRORS = st.one_of(
    st.builds(
        lambda kind, message: {"type": "error", "error": {"type": kind, "message": message}},
        st.sampled_from(["overloaded_error", "api_error", "invalid_request_error"]) | json_values,
        st.sampled_from(["Overloaded", "prompt is too long: 9000 tokens > 8000 maximum"]) | TEXTS,
    ),
    st.builds(lambda error: {"type": "error", "error": error}, json_values),
    st.builds(lambda error: {"error": error, "detail": error, "message": error}, json_values),
)
USAGES = st.dictionaries(
    st.sampled_from(["input_tokens", "output_tokens", "cache_read_input_tokens", "x"]), COUNTS
)
EVENTS = st.one_of(
    st.just(start()),
    st.builds(lambda i, b: {**block(i), "content_block": b}, INDICES, BLOCKS),
    st.builds(lambda i, d: {**delta(i), "delta": d}, INDICES, DELTAS),
    st.builds(stop, INDICES),
    st.builds(
        lambda reason, usage, details: {
            "type": "message_delta",
            "delta": {"stop_reason": reason, "stop_details": details},
            "usage": usage,
        },
        REASONS, USAGES | json_values, json_values,
    ),
    st.builds(lambda m: {"type": "message_start", "message": m}, json_values),
    st.builds(lambda u: {"type": "message_start", "message": {"id": u, "usage": u}}, json_values),
    st.sampled_from([{"type": "ping"}, {"type": "message_stop"}, {"type": "hologram"}, {}]),
    ERRORS,
    json_values,
)  # fmt: skip
CALLS = st.builds(
    lambda call_id, name, pieces: [
        block(1, type="tool_use", id=call_id, name=name, input={}),
        *(delta(1, type="input_json_delta", partial_json=piece) for piece in pieces),
        stop(1),
    ],
    IDS, NAMES, st.lists(INPUTS, max_size=2),
)  # fmt: skip


@st.composite
def streams(draw):
    """Events: a good answer with something done to it, or anything in any order."""
    if draw(st.integers(0, 3)) == 0:
        return [start(), *draw(st.lists(EVENTS, max_size=8))]
    middle = draw(st.lists(CALLS, max_size=2))
    reason = draw(st.sampled_from(["end_turn", "tool_use", "max_tokens"]) | REASONS)
    events = [*said("Hello.")[:-2], *(event for call in middle for event in call), *end(reason)]
    for _ in range(draw(st.integers(0, 3))):
        at = draw(st.integers(0, len(events)))
        match draw(st.sampled_from(["insert", "drop", "double", "swap"])):
            case "insert":
                events.insert(at, draw(EVENTS))
            case "drop":
                del events[at : at + 1]
            case "double":
                events[at:at] = events[at : at + 2]
            case "swap":
                events[at:] = reversed(events[at:])
    return events


# -- bodies and responses --------------------------------------------------------------------------


def _sse(events, names):
    lines = []
    for event in events:
        if names == "right":
            lines.append(f"event: {event.get('type') if isinstance(event, dict) else event}\n")
        elif names:
            lines.append(f"event: {names}\n")
        lines.append(f"data: {json.dumps(event)}\n\n")
    return "".join(lines)


BODIES = st.one_of(
    st.builds(
        _sse, streams(), st.sampled_from(["right", "right", "right", "", "error", "ping", "\u2028"])
    ),
    st.builds(
        lambda content, reason, usage: json.dumps(
            {"type": "message", "content": content, "stop_reason": reason, "usage": usage}
        ),
        st.lists(BLOCKS, max_size=3) | json_values, REASONS, USAGES | json_values,
    ),
    ERRORS.map(json.dumps),
    json_values.map(json.dumps),
    st.sampled_from(["<html><body>Sign in</body></html>", "", "\n\n", "data:", "event: error\n\n"]),
    st.text(max_size=40),
    st.just("data: " + "x" * 300_000),
)  # fmt: skip
HEADERS = st.lists(
    st.sampled_from(
        [
            ("retry-after", "0"), ("retry-after", "1e9"), ("retry-after", "soon"),
            ("retry-after", "-5"), ("request-id", "req_\xe9"), ("request-id", "req_1"),
            ("content-encoding", "gzip"), ("content-encoding", "br"), ("content-length", "5"),
            ("content-length", "99999"), ("transfer-encoding", "chunked"), ("x", "\xff"),
            ("location", "http://[::1"), ("location", "/v1/messages"), ("set-cookie", "a=b;;=;"),
        ]
    ),
    max_size=2,
)  # fmt: skip
KINDS = st.sampled_from(
    ["text/event-stream", "text/event-stream; charset=utf-16", "application/json", None, "nonsense"]
)
STATUSES = st.sampled_from([200] * 8 + [400, 401, 404, 413, 422, 429, 500, 529, 204, 301, 302, 101])


@st.composite
def answers(draw):
    """The bytes of a response: odd events in a good one, or an odd response."""
    if draw(st.integers(0, 3)):
        names = draw(st.sampled_from(["right", ""]))
        whole = response(_sse(draw(streams()), names).encode("utf-8", "surrogatepass"))
    else:
        whole = draw(odd_responses())
    cut = draw(st.integers(0, len(whole))) if draw(st.integers(0, 5)) == 5 else 0
    return whole[: len(whole) - cut]


@st.composite
def odd_responses(draw):
    body = draw(BODIES).encode("utf-8", "surrogatepass")
    if draw(st.integers(0, 9)) == 0:
        at = draw(st.integers(0, len(body)))
        body = body[:at] + draw(st.binary(max_size=5)) + body[at:]
    headers = draw(HEADERS) if draw(st.booleans()) else []
    if ("content-encoding", "gzip") in headers and draw(st.booleans()):
        body = gzip.compress(body)
    return response(
        body,
        status=draw(STATUSES),
        kind=draw(KINDS),
        headers=headers,
        version=draw(st.sampled_from(["1.1"] * 8 + ["1.0", "2"])),
    )


# -- the property ----------------------------------------------------------------------------------


def one_turn(conversations, url, folder, prompt, **options):
    """Say *prompt* to the server at *url*; return the desk and how the turn ended."""

    class Server:
        pass

    Server.url = url
    desk = Desk(conversations, Server, folder, approver=Judge(*["No."] * 99), **options)
    return desk, asyncio.run(desk.say(prompt))


@settings(max_examples=examples(150))
@given(st.lists(answers(), min_size=1, max_size=MOST_TURNS))
def test_whatever_a_server_answers_the_turn_ends_and_the_next_prompt_works(hostile):
    with TemporaryDirectory() as name:
        folder = Path(name)
        store = {"LEFTFOLD_STORE": str(folder / "store"), "LEFTFOLD_DURABILITY": "os"}
        with Conversations(store) as conversations:
            with RawServer(*hostile, response(sse(*said("Fine.")))) as server:
                desk, outcome = one_turn(conversations, server.url, folder, "hello")
            assert outcome in ("done", "failed")
            error = desk.talk.last_turn.error
            assert (error is None) == (outcome == "done")
            if error is not None:
                assert len(error.message.splitlines()) == 1
                assert error.type

            with ScriptedServer([reply("All is well.")]) as sane:
                desk, outcome = one_turn(
                    conversations, sane.url, folder, "and now?", at_hand=desk.at_hand
                )
            assert outcome == "done"
            assert list(desk.talk.messages())[-1].content.text == "All is well."
            report = verify(conversations, desk.talk.id)
            assert report.ok, report.findings
            events = [event.TOPIC for event in conversations.events_of(desk.talk.id)]
            assert events.count("TurnEnded") == 2
