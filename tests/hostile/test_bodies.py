"""Bodies of messages that our encoder would not have written: what of them goes to the model.

Each stands in a real log: with a checksum that agrees (somebody took the trouble), with one that
does not, and with none. Whatever is sent is JSON that every strict parser reads.
"""

import json
from uuid import uuid4
from zlib import crc32

import pytest
from msgspec import Raw

from app.application import Conversations
from domain.calls import NEVER_STARTED, NO_INPUT
from domain.projections.context import context
from domain.projections.message_builder import CONTINUE
from domain.projections.parts import NO_OUTPUT
from tests import builders as b
from tests.api_rules import violations

STATE = b'{"timestamp":"2026-12-01T10:00:00Z",%s}'
PROMPT = b'{"role":"user","content":[{"type":"text","text":"hi"}]}'
A = b'{"type":"text","text":"a"}'
DEEP = b'{"a":' * 400 + b"1" + b"}" * 400


# -- what stands in the log ------------------------------------------------------------------------


def says(text):
    return user(b'{"type":"text","text":%s}' % text)


def user(*blocks):
    return b'{"role":"user","content":[%s]}' % b",".join(blocks)


def model(*blocks):
    return b'{"role":"assistant","content":[%s]}' % b",".join(blocks)


def call(arguments=b"{}", call_id=b'"t1"', name=b'"x"'):
    return b'{"type":"tool_use","id":%s,"name":%s,"input":%s}' % (call_id, name, arguments)


def result(content, call_id=b'"t1"', more=b""):
    return user(
        b'{"type":"tool_result","tool_use_id":%s,"content":%s%s}' % (call_id, content, more)
    )


# -- what is sent ----------------------------------------------------------------------------------


def said(*texts):
    """The user says *texts*, or nothing."""
    return [{"role": "user", "content": [b.text(text) for text in texts or [CONTINUE]]}]


def answer(*blocks):
    """The model has answered a prompt with *blocks*."""
    return [*said("hi"), {"role": "assistant", "content": list(blocks)}]


def called(arguments, *, outcome=NEVER_STARTED, call_id="t1", name="x"):
    """The model has called once, and the *outcome* is known to nobody."""
    made = {"type": "tool_use", "id": call_id, "name": name, "input": arguments}
    failed = b.tool_result(call_id, outcome, is_error=True)
    return [*answer(made), {"role": "user", "content": [failed]}]


def gave(content):
    """The model has called once, and got *content*."""
    answered = [b.tool_result("t1", content)]
    return [*answer(b.tool_use("t1", "x")), {"role": "user", "content": answered}]


TEXTS = {
    "a number": (b"1", ()),
    "a number that is no blank": (b"11", ()),
    "true": (b"true", ()),
    "null": (b"null", ()),
    "a list": (b'["a"]', ()),
    "an object": (b'{"a":"b"}', ()),
    "nothing": (b'""', ()),
    "escaped blanks": (rb'"\u0020\u00a0\u2003\n\u000b\u001f"', ()),
    "blanks of other scripts": ('"\u3000\u1680\u2028\u0085"'.encode(), ()),
    "blanks and a letter": ('"\u3000\u2028 a"'.encode(), ("\u3000\u2028 a",)),
    "escaped blanks and a letter": (rb'"\u3000\n\ta"', ("\u3000\n\ta",)),
    "a letter that is no blank, as its bytes begin": ('"\u2013"'.encode(), ("\u2013",)),
    "an escaped letter": (rb'"\u0061b"', ("ab",)),
    "escapes that nobody needs": (rb'"a\/b\u00e9\ud83d\ude00"', ("a/bé😀",)),
    "a lone surrogate": (rb'"xbc\ud800"', ("xbc\ufffd",)),
    "a lone surrogate first": (rb'"\ud800xbc"', ("\ufffdxbc",)),
    "halves in the wrong order": (rb'"\ude00\ud83d"', ("\ufffd\ufffd",)),
    "a control character": (b'"xbc\x01"', ()),
    "a bad escape": (rb'"xbc\q"', ()),
}
ARGUMENTS = {
    "a number of many digits": (b'{"n":%d}' % 10**32, {"n": 10**32}),
    "numbers written oddly": (b'{"n":1E2,"m":1.50,"o":-0.0}', {"n": 100.0, "m": 1.5, "o": -0.0}),
    "a repeated key": (b'{"n":1,"n":2}', {"n": 2}),
    "a repeated key of texts": (b'{"n":"1","n":"2"}', {"n": "2"}),
    "a repeated key, deep in": (b'{"n":{"a":1,"a":2}}', {"n": {"a": 2}}),
    "a repeated key, in a list": (b'{"n":[{"a":1,"a":2}]}', {"n": [{"a": 2}]}),
    "a lone surrogate": (rb'{"n":"a\ud800"}', {"n": "a\ufffd"}),
    "a lone surrogate in a key": (rb'{"a\ud800":1}', {"a\ufffd": 1}),
    "blanks between tokens": (b'{"n": [1, 2] }', {"n": [1, 2]}),
    "an escaped key": (rb'{"\u006e":1}', {"n": 1}),
    "deep nesting": (DEEP, json.loads(DEEP)),
}
NOT_BELIEVED = {
    "a text with a byte that is no UTF-8": ([says(b'"xbc\xff"')], said("xbc\ufffd")),
    "a text with an encoded surrogate": ([says(b'"x\xed\xa0\x80"')], said("x" + "\ufffd" * 3)),
    "a text with an overlong character": ([says(b'"x\xc0\xaf"')], said("x\ufffd\ufffd")),
    "a call with a byte that is no UTF-8": (
        [PROMPT, model(call(b'{"n":"\xff"}'))],
        called({"n": "\ufffd"}),
    ),
    "a key with a byte that is no UTF-8": (
        [PROMPT, model(call(b'{"n\xff":1}'))],
        called({"n\ufffd": 1}),
    ),
    "a result with bytes that are no UTF-8": (
        [PROMPT, model(call()), result(b'"a\xff\xfe"')],
        gave("a\ufffd\ufffd"),
    ),
    "a number out of range": ([PROMPT, model(call(b'{"n":1e999}'))], called({"n": None})),
    "a number out of range, deep in": (
        [PROMPT, model(call(b'{"n":[{"m":[-1e999]}]}'))],
        called({"n": [{"m": [None]}]}),
    ),
}
"""Lines that are no text of our format: they are used as long as their checksum agrees."""

MESSAGES = {
    "a call with NaN": ([PROMPT, model(call(b'{"n":NaN}'))], said("hi")),
    "a call with Infinity": ([PROMPT, model(call(b'{"n":[-Infinity]}'))], said("hi")),
    "a repeated text": ([user(b'{"type":"text","text":"a","text":"b"}')], said("b")),
    "a repeated type": ([user(b'{"type":"image","text":"a","type":"text"}')], said("a")),
    "a repeated role": ([b'{"role":"user","content":[%s],"role":"user"}' % A], said("a")),
    "another role, later": (
        [PROMPT, b'{"role":"user","content":[%s],"role":"assistant"}' % A],
        [*answer(b.text("a")), *said()],
    ),
    "another role, before": (
        [PROMPT, b'{"role":"user","role":"assistant","content":[%s]}' % A],
        [*answer(b.text("a")), *said()],
    ),
    "a repeated content": (
        [b'{"role":"user","content":[%s],"content":[{"type":"text","text":"b"}]}' % A],
        said("b"),
    ),
    "a repeated content without blocks": (
        [b'{"role":"user","content":[%s],"content":[]}' % A],
        said(),
    ),
    "a content before the role": ([b'{"content":[%s],"role":"user"}' % A], said("a")),
    "a text before its type": ([user(b'{"text":"a","type":"text"}')], said("a")),
    "a call with keys in another order": (
        [PROMPT, model(b'{"name":"x","input":{},"id":"t1","type":"tool_use"}'), result(b'"a"')],
        [
            *answer({"name": "x", "input": {}, "id": "t1", "type": "tool_use"}),
            *gave("a")[2:],
        ],
    ),
    "blanks everywhere": (
        [b'{ "role" : "user", "content" : [ {"type": "text", "text": "a"} ] }'],
        said("a"),
    ),
    "blanks at the end": ([b'{"role":"user","content":[%s ] }' % A], said("a")),
    "a blank in the middle": ([b'{"role":"user" ,"content":[%s]}' % A], said("a")),
    "an escaped role": ([rb'{"role":"\u0075ser","content":[%s]}' % A], said("a")),
    "an escaped key": ([user(rb'{"type":"text","te\u0078t":"a"}')], said("a")),
    "an escaped type": ([user(rb'{"type":"te\u0078t","text":"a"}')], said("a")),
    "another key": ([b'{"role":"user","content":[%s],"id":"m"}' % A], said("a")),
    "a role of nobody": ([b'{"role":"system","content":[%s]}' % A], said()),
    "no content": ([b'{"role":"user"}'], said()),
    "an empty content": ([b'{"role":"user","content":[]}'], said()),
    "an answer without content": ([PROMPT, model()], said("hi")),
    "a content that is a text": ([b'{"role":"user","content":"a"}'], said("a")),
    "no object": ([b'["user"]'], said()),
    "a call of the user": ([user(call(), A)], said("a")),
    "a result of the model": (
        [PROMPT, model(b'{"type":"tool_result","tool_use_id":"t1","content":"a"}', A)],
        [*answer(b.text("a")), *said()],
    ),
    "an input that is a list": ([PROMPT, model(call(b"[1]"))], called({}, outcome=NO_INPUT)),
    "an input that is nothing": ([PROMPT, model(call(b"null"))], called({}, outcome=NO_INPUT)),
    "a lone surrogate in an id": (
        [PROMPT, model(call(call_id=rb'"t\ud800"'))],
        called({}, call_id="t_"),
    ),
    "an id that ends in a newline": (
        [PROMPT, model(call(call_id=rb'"t1\n"'))],
        called({}, call_id="t1_"),
    ),
    "a name with a blank": ([PROMPT, model(call(name=b'"x y"'))], called({}, name="x_y")),
    "an escaped id": (
        [PROMPT, model(call(call_id=rb'"\u0074\u0031"')), result(b'"done"')],
        gave("done"),
    ),
    "an escaped id in the result": (
        [PROMPT, model(call()), result(b'"done"', rb'"\u0074\u0031"')],
        gave("done"),
    ),
    "a repeated id in the result": (
        [PROMPT, model(call()), result(b'"done"', b'"t0","tool_use_id":"t1"')],
        gave("done"),
    ),
    "a repeated content of a result": (
        [PROMPT, model(call()), result(b'"a","content":"b"')],
        gave("b"),
    ),
    "a result that is no error": (
        [PROMPT, model(call()), result(b'"a"', more=b',"is_error":false')],
        gave("a"),
    ),
    "a result that may be an error": (
        [PROMPT, model(call()), result(b'"a"', more=b',"is_error":"true"')],
        gave("a"),
    ),
    "a result with a mark": (
        [PROMPT, model(call()), result(b'"a"', more=b',"cache_control":{"type":"ephemeral"}')],
        gave("a"),
    ),
    "a result that is a number": ([PROMPT, model(call()), result(b"5")], gave(NO_OUTPUT)),
    "a result that is an object": ([PROMPT, model(call()), result(b'{"a":1}')], gave(NO_OUTPUT)),
    "a result of blanks": (
        [PROMPT, model(call()), result(rb'"\u0020\u3000"')],
        gave(NO_OUTPUT),
    ),
    "a result of texts, one blank": (
        [PROMPT, model(call()), result(b'[%s,{"type":"text","text":" "}]' % A)],
        gave([b.text("a")]),
    ),
    "a result of texts, oddly written": (
        [PROMPT, model(call()), result(b'[{"text":"a","type":"text"}, %s]' % A)],
        gave([b.text("a")] * 2),
    ),
    "a result of a text, twice in it": (
        [PROMPT, model(call()), result(b'[{"type":"text","text":"b","text":"a"}]')],
        gave([b.text("a")]),
    ),
    "a result of a text with a mark": (
        [PROMPT, model(call()), result(b'[{"type":"text","text":"a","citations":null}]')],
        gave([b.text("a")]),
    ),
    "a result of no texts": ([PROMPT, model(call()), result(b"[]")], gave(NO_OUTPUT)),
    "thinking that is a number": (
        [PROMPT, model(b'{"type":"thinking","thinking":1,"signature":"s"}', A)],
        [*answer(b.text("a")), *said()],
    ),
    "thinking that is not signed": (
        [PROMPT, model(b'{"type":"thinking","thinking":"hm","signature":""}', A)],
        [*answer(b.text("a")), *said()],
    ),
    **{f"a text of {name}": ([says(raw)], said(*texts)) for name, (raw, texts) in TEXTS.items()},
    **{
        f"an input with {name}": ([PROMPT, model(call(raw))], called(value))
        for name, (raw, value) in ARGUMENTS.items()
    },
}


@pytest.fixture
def conversations(home):
    with Conversations({"LEFTFOLD_STORE": str(home)}) as application:
        yield application


def copied_in(home, bodies, checksum):
    """A log with *bodies*, all of them written by hand."""
    conversation_id = uuid4()
    lines = [
        b'{"format":"leftfold/1","id":"%s"}' % str(conversation_id).encode(),
        b'{"v":1,"topic":"Started","state":%s}' % (STATE % b'"cwd":"/"'),
    ]
    parent = b"null"
    for version, body in enumerate(bodies, 2):
        state = STATE % (b'"parent":%s,"message":%s,"model":"m"' % (parent, body))
        line = b'{"v":%d,"topic":"MessageAppended","state":%s%s}'
        lines.append(line % (version, state, checksum(state)))
        parent = b"%d" % version
    home.mkdir(parents=True, exist_ok=True)
    (home / f"{conversation_id}.jsonl").write_bytes(b"\n".join([*lines, b""]))
    return conversation_id


def agreeing(state):
    return b',"crc":"%08x"' % crc32(state)


def disagreeing(state):
    return b',"crc":"%08x"' % (crc32(state) ^ 1)


def missing(_state):
    return b""


def sent_for(conversations, conversation_id):
    """The messages of the request; it keeps the rules of the API."""
    conversation = conversations.get(conversation_id)
    request = context(conversation, conversation.leaf)
    assert violations(request) == []
    return request["messages"]


@pytest.mark.parametrize(("bodies", "expected"), MESSAGES.values(), ids=MESSAGES)
def test_a_body_that_is_not_as_we_write_it_is_sent_as_it_should_be(
    conversations, home, bodies, expected
):
    for checksum in (agreeing, disagreeing, missing):
        sent = sent_for(conversations, copied_in(home, bodies, checksum))

        assert repr(sent) == repr(expected)


@pytest.mark.parametrize(("bodies", "expected"), NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_a_body_that_only_its_checksum_vouches_for_is_sent_as_it_should_be(
    conversations, home, bodies, expected
):
    sent = sent_for(conversations, copied_in(home, bodies, agreeing))

    assert repr(sent) == repr(expected)


@pytest.mark.parametrize(("bodies", "expected"), NOT_BELIEVED.values(), ids=NOT_BELIEVED)
def test_no_body_is_passed_on_for_where_it_comes_from(bodies, expected):
    """Nothing has looked at these bytes before: they are of no log."""
    messages = (b.message(Raw(body), model="m") for body in bodies)
    conversation = b.conversation(b.started(), *messages)

    assert repr(context(conversation, conversation.leaf)["messages"]) == repr(expected)
