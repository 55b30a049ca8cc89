"""Any lines to `--input stream-json`: each is obeyed, or answered by an error that names it."""

import json

import jsonschema
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from app.application import Conversations
from app.verification import verify
from tests.app.in_process import run
from tests.json_docs import SCHEMAS
from tests.levels import examples

ORDER = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "input.json").read_text()))
PRINTED = jsonschema.Draft202012Validator(json.loads((SCHEMAS / "stream-json.json").read_text()))

values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=8,
)  # fmt: skip
kinds = st.sampled_from(["prompt", "interrupt", "approve", "quit", "promt", ""]) | values
keys = {
    "type": kinds,
    "text": st.text(max_size=8) | st.just("hello") | values,
    "tool_use_id": st.text(max_size=8) | values,
    "decision": st.sampled_from(["yes", "always", "no"]) | values,
    "reason": st.text(max_size=8) | values,
    "command": st.booleans() | values,
}
objects = st.fixed_dictionaries({}, optional=keys)
repeated = st.builds(
    lambda key, one, two: f'{{"type":"prompt","text":"hi",{json.dumps(key)}:{one},{json.dumps(key)}:{two}}}'.encode(),
    st.sampled_from(["type", "text", "decision", "x"]), st.just('"prompt"'), st.just('"quit"'),
)  # fmt: skip
cut = st.builds(lambda value, end: json.dumps(value).encode()[:end], objects, st.integers(0, 60))
lines = (
    objects.map(lambda value: json.dumps(value).encode())
    | values.map(lambda value: json.dumps(value).encode())
    | st.binary(max_size=30)
    | cut
    | repeated
)


def is_order(line):
    """Whether a program that keeps to the schema could have sent *line*."""

    def once(pairs):
        assert len({key for key, _ in pairs}) == len(pairs)
        return dict(pairs)

    def never(constant):
        raise AssertionError(constant)

    try:
        value = json.loads(line.decode(), object_pairs_hook=once, parse_constant=never)
    except (ValueError, AssertionError, RecursionError):
        return None
    return value if ORDER.is_valid(value) else None


@settings(max_examples=examples(50))
@given(st.lists(lines, max_size=5), st.booleans())
@example([b'{"type":"prompt","text":"hi","text":"ho"}'], True)
@example([b'{"type":"approve","decision":"no","tool_use_id":"x","decision":"yes"}'], True)
@example([b'{"type":"prompt","text":"hi","n":NaN}', b'{"type":"prompt","text":"\xff"}'], True)
@example([b'{"type":"prompt","text":"\\ud800"}', b'{"type":"prompt","text":"\\u0000"}'], True)
@example([b"[" * 5_000, b'{"a":' * 5_000, b"\xff\xfe{\x00}\x00"], False)
@example([b'{"type":"' + b"prompt" * 1_000 + b'"}', b"9" * 5_000], False)
def test_any_line_is_obeyed_or_answered(given_lines, ends):
    sent = b"\n".join(given_lines) + (b"\n" if ends else b"")
    done = run("--offline", "--input", "stream-json", stdin=sent)

    assert (done.code, done.err) == (0, "")
    for line in done.objects:
        PRINTED.validate(line)
    first, *told = done.objects
    assert first["type"] == "conversation"
    complaints = {line["line"] for line in told if line["type"] == "error"}
    prompts = 0
    for number, line in enumerate(sent.split(b"\n"), 1):
        order = is_order(line)
        if order is None:
            assert number in complaints or not line.strip(), line
            continue
        if order["type"] == "quit":
            break
        prompts += order["type"] == "prompt" and bool(order["text"].strip())
    assert all(len(line["message"]) < 500 for line in told if line["type"] == "error")
    answered = [line for line in told if line["type"] in ("result", "queued")]
    assert len(answered) >= prompts


@pytest.fixture(autouse=True)
def all_logs_verify(home):
    """Whatever was said, every log is as it should be."""
    yield
    with Conversations({"LEFTFOLD_STORE": str(home / "conversations")}) as conversations:
        reports = [verify(conversations, each) for each in conversations.ids()]
    assert reports
    assert all(report.ok for report in reports)
