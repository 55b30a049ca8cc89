"""A message that was read is spelled as our own encoder spells it: it may be passed on undecoded."""

import math
from zlib import crc32

import msgspec
import pytest
from hypothesis import given

from app.application import Conversations
from domain.events import MessageAppended
from domain.messages import blocks_of
from domain.text import decoded, rewritten
from infrastructure.jsonl.line import encode_header
from tests import builders as b
from tests.strategies import json_values

USER = b'{"role":"user","content":[{"type":"text","text":%s}]}'
CALL = b'{"role":"assistant","content":[{"type":"tool_use","id":"a","name":"x","input":%s}]}'
NOT_TEXT = USER % b'"xbc\xff"'
TOO_LONG = CALL % (b'{"n":%s}' % (b"7" * 5000))
PLAIN = USER % b'"hi"'
HOSTILE = {
    "a lone surrogate": USER % rb'"xbc\ud800"',
    "a key twice": CALL % b'{"n":1,"n":2}',
    "a second role": b'{"role":"user","content":[{"type":"text","text":"a"}],"role":"user"}',
    "blanks between": b'{ "role" : "user", "content" : [ {"type":"text", "text":"a"} ] }',
    "escapes of another writer": USER % rb'"\u0041\/"',
    "nested deeply": CALL % (b'{"a":' * 400 + b"1" + b"}" * 400),
    "no message": b"null",
    "words": b'"hello"',
}


def state_of(message):
    return b'{"timestamp":"2026-01-02T03:04:05Z","parent":null,"message":%s}' % message


def line_of(version, state, crc):
    return b'{"v":%d,"topic":"MessageAppended","state":%s%s}\n' % (version, state, crc)


def vouched(message):
    return b',"crc":"%08x"' % crc32(state_of(message))


@pytest.fixture
def read(tmp_path):
    """Return what reads one *message* back from a log, in which its line has the mark *crc*."""

    def read(message, crc=b""):
        log = encode_header(str(b.ID), "now") + line_of(1, state_of(message), crc)
        (tmp_path / f"{b.ID}.jsonl").write_bytes(log)
        (event,) = app.events_of(b.ID)
        return event

    with Conversations({"LEFTFOLD_STORE": str(tmp_path)}) as app:
        yield read


@pytest.mark.parametrize("message", HOSTILE.values(), ids=HOSTILE)
def test_what_another_hand_wrote_is_spelled_as_we_would(read, message):
    event = read(message)

    assert isinstance(event, MessageAppended)
    assert decoded(event.message) == decoded(message)
    assert bytes(event.message) == msgspec.json.encode(msgspec.json.decode(event.message))


@pytest.mark.parametrize("crc", [b',"crc":"00000000"', b',"crc":"not one"', b',"crc":null'])
def test_a_checksum_that_does_not_agree_makes_it_anothers(read, crc):
    assert bytes(read(HOSTILE["blanks between"], crc).message) == USER % b'"a"'


def test_a_checksum_does_not_vouch_for_bytes_that_are_not_text(read):
    event = read(NOT_TEXT, vouched(NOT_TEXT))

    assert bytes(event.message) == USER % '"xbc\ufffd"'.encode()


def test_what_we_wrote_is_left_as_it_is(read):
    message = HOSTILE["blanks between"]

    assert bytes(read(message, vouched(message)).message) == message
    assert bytes(read(PLAIN).message) == PLAIN


def test_what_no_parser_takes_is_shown_as_it_stands(read):
    content = read(TOO_LONG, vouched(TOO_LONG)).content

    assert not content.is_readable
    assert content.blocks == blocks_of(f"(unreadable: {TOO_LONG.decode()})")


@given(json_values)
def test_what_our_encoder_wrote_it_writes_again(value):
    written = msgspec.json.encode(value)

    assert bytes(rewritten(written)) == written


@pytest.mark.parametrize("number", [1e300, 5e-324, -0.0, 1.0, 10**25, 0.1, 1e23, math.pi])
def test_numbers_are_written_as_they_were(number):
    written = msgspec.json.encode(number)

    assert bytes(rewritten(written)) == written
