"""Bytes to lines and back."""

import json
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.errors import InvalidEventError, NewerFormatError
from infrastructure.jsonl import line as lines_
from infrastructure.jsonl.line import Damage, Line
from infrastructure.jsonl.salvage import salvage

json_bytes = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
).map(lambda value: json.dumps(value, ensure_ascii=False).encode("utf-8", "surrogatepass"))


def read(data):
    return list(salvage(data))


def test_golden_line():
    assert (
        lines_.encode(1, "Started", b'{"cwd":"/home"}')
        == b'{"v":1,"topic":"Started","state":{"cwd":"/home"},"crc":"a3154d71"}\n'
    )


def test_golden_line_of_bytes_that_are_not_json():
    assert lines_.encode(
        1, "Started", b"state1"
    ) == b'{"v":1,"topic":"Started","state64":"c3RhdGUx","crc":"%08x"}\n' % zlib.crc32(b"state1")


@given(
    st.integers(0, lines_.MAX_VERSION),
    st.text(st.characters(exclude_categories=["Cs"])),
    st.binary() | json_bytes,
)
def test_whatever_the_state_it_comes_back_from_one_line(version, topic, state):
    data = lines_.encode(version, topic, state)

    line = lines_.decode(data[:-1])

    assert data.count(b"\n") == 1
    assert line is not None
    assert (line.version, line.topic, line.state) == (version, topic, state)


@given(
    st.integers(0, 100),
    st.binary(max_size=50) | json_bytes,
    st.integers(1, 9),
    st.none() | st.integers(0, 9),
)
def test_batch_base_and_tracking_come_back(version, state, count, base):
    data = lines_.encode(version, "T", state, batch=(1, count), base=base, tracking=("app", 7))

    line = lines_.decode(data[:-1])

    assert (line.batch, line.base, line.tracking) == ((1, count), base, ("app", 7))


@given(st.binary())
def test_no_bytes_make_it_raise_or_be_silent(data):
    for item in read(data.replace(b"\n", b"")):
        assert isinstance(item, Line | Damage)


@pytest.mark.parametrize(
    "state",
    [
        b'{"a":1}\n',
        b' {"a":1}',
        b'{"a":NaN}',
        b'"\xff"',
        rb'"\ud83d"',
        b"",
        b"[" * 5000 + b"]" * 5000,
        b'["]",' * 600 + b"1" + b"]" * 600,
    ],
)
def test_a_state_that_would_not_come_back_exact_goes_as_base64(state):
    data = lines_.encode(1, "T", state)

    assert b'"state64"' in data
    assert lines_.decode(data[:-1]).state == state


@pytest.mark.parametrize("separator", ["\u2028", "\u2029", "\x85", "\x0c", "\x1e", "\x00"])
def test_other_line_separators_stay_text(separator):
    state = json.dumps({"text": f"a{separator}b"}, ensure_ascii=False).encode()

    assert lines_.decode(lines_.encode(1, "T", state)[:-1]).state == state


def test_a_line_without_a_checksum_is_fine():
    (line,) = read(b'{"v":1,"topic":"T","state":{"a":1}}')

    assert (line.state, line.crc_ok) == (b'{"a":1}', None)


def test_a_line_whose_checksum_disagrees_is_used_and_marked():
    (line,) = read(b'{"v":1,"topic":"T","state":{"a":1},"crc":"00000000"}')

    assert (line.state, line.crc_ok) == (b'{"a":1}', False)


def test_glued_records_are_both_read_even_with_braces_in_text():
    first, second = lines_.encode(1, "T", b'{"a":"}{"}'), lines_.encode(2, "T", b'"}{"')

    damage, *found = read(first[:-1] + second[:-1])

    assert [(a.version, a.state, a.crc_ok) for a in found] == [
        (1, b'{"a":"}{"}', True),
        (2, b'"}{"', True),
    ]
    assert (damage.reason, damage.lost) == ("2 records on one line", False)
    assert [a.offset for a in found] == [0, len(first) - 1]


def test_a_record_behind_half_a_record_is_read():
    whole = lines_.encode(2, "T", b"{}")[:-1]

    damage, line = read(b'{"v":1,"topic":"T","sta' + whole)

    assert (damage.reason, line.version) == ("half a record", 2)


def test_a_record_inside_a_damaged_message_is_not_believed():
    inner = lines_.encode(9, "T", b"{}")[:-1]
    line = lines_.encode(1, "T", b'{"input":' + inner + b"}")[:-1]

    assert [
        item
        for item in read(
            line.replace(b'"topic":"T","state":{"input"', b'"topic":"T","state":{"input', 1)
        )
        if isinstance(item, Line)
    ] == []


def test_byte_order_mark_and_carriage_return_are_stripped():
    data = lines_.encode(1, "T", b"{}")[:-1]

    (line,) = read(b"\xef\xbb\xbf" + data + b"\r")

    assert (line.version, line.offset, line.crc_ok) == (1, 3, True)


def test_a_lone_surrogate_escape_is_read_as_a_replacement_character():
    damage, line = read(rb'{"v":1,"topic":"T","state":{"text":"a\ud83db \ud83d\ude00"}}')

    assert json.loads(line.state) == {"text": "a\ufffdb \U0001f600"}
    assert damage.lost is False


@pytest.mark.parametrize(
    ("data", "reason"),
    [
        (b"\0" * 30, "NUL bytes"),
        (b'{"v":1,\0\0\0\0', "NUL bytes"),
        (b'{"v":1,\0\0"topic":"T"}', "NUL bytes"),
        (b"hello", "not valid JSON"),
        (b'{"hello":1}', "not an event"),
        (b'{"v":1,"topic":"T","state":"\xff"}', "not valid UTF-8"),
        (b'{"v":-1,"topic":"T","state":{}}', "version -1 is out of range"),
        (
            b'{"v":99999999999999999999,"topic":"T","state":{}}',
            "version 99999999999999999999 is out of range",
        ),
        (
            b'{"v":1,"topic":"T","state64":"c3RhdGUx","crc":"00000000"}',
            "base64 state that disagrees with its checksum",
        ),
    ],
)
def test_damage_says_what_it_is(data, reason):
    (damage,) = read(data)

    assert (damage.reason, damage.length, damage.lost) == (reason, len(data), True)


def test_blank_lines_are_nothing():
    assert read(b"") == read(b" \t\r") == []


def test_header_comes_back():
    data = lines_.encode_header("id", "now")

    assert data == b'{"format":"leftfold/1","id":"id","created":"now"}\n'
    assert lines_.header(data[:-1] + b"\r") == lines_.Header("leftfold/1", "id", "now")
    assert lines_.header(b'{"format":"other/1"}') is None


def test_a_newer_format_is_refused_by_name():
    with pytest.raises(NewerFormatError, match="leftfold/2"):
        lines_.header(b'{"format":"leftfold/2","id":"x"}')


@pytest.mark.parametrize(("version", "topic"), [(-1, "T"), (2**32, "T"), (1, "\ud83d")])
def test_what_cannot_be_written_is_refused(version, topic):
    with pytest.raises(InvalidEventError):
        lines_.encode(version, topic, b"{}")


def test_a_state_that_is_wide_and_not_deep_is_embedded():
    state = b"[" + b'["[[[",{}],' * 900 + b"1]"

    assert b'"state":[' in lines_.encode(1, "T", state)
