"""What is believed of a damaged log."""

import time

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.jsonl import line as lines_
from infrastructure.jsonl import reader
from tests.scanning import scan

HEADER = lines_.encode_header("id", "now")


def line(version, *, batch=None, base=None, text=b"x"):
    return lines_.encode(version, "T", b'"%s"' % text, batch=batch, base=base)


def log(*parts):
    return scan(HEADER + b"".join(parts))


def got(found):
    return [line.version for line in found.lines]


def reasons(found):
    return [damage.reason for damage in found.damages]


def batch(first, count):
    return [line(first + i, batch=(i + 1, count)) for i in range(count)]


def test_a_log_as_written_is_clean():
    found = log(line(1), line(2), *batch(3, 2), line(5))

    assert (got(found), found.damages, found.clean, found.sealed) == (
        [1, 2, 3, 4, 5],
        [],
        True,
        True,
    )
    assert found.lines[1].offset == len(HEADER + line(1))
    assert [line.number for line in found.lines] == [2, 3, 4, 5, 6]


def test_versions_may_start_at_zero():
    assert log(line(0), line(1)).clean


def test_a_nul_run_costs_itself_and_names_its_line():
    found = log(line(1), b"\0" * 300 + b"\n", line(2))

    assert got(found) == [1, 2]
    assert [(d.number, d.reason, d.length) for d in found.damages] == [(3, "NUL bytes", 300)]


@pytest.mark.parametrize(
    ("data", "kinds"),
    [
        (line(1), ["header"]),
        (b"half a header\n" + line(1), ["header"]),
        (HEADER + line(1) + b"\0" * 9 + b"\n" + line(2), ["zeros"]),
        (HEADER + line(1) + b"\0" * 9 + line(2), ["zeros"]),
        (HEADER + line(1) + b'{"v":2,\0\0"}\n' + line(3), ["zeros"]),
        (HEADER + line(1) + line(2, batch=(1, 2)), ["batch"]),
        (HEADER + line(1) + line(1) + line(2), ["version"]),
        (HEADER + line(1) + b'{"v":-1,"topic":"T","state":{}}\n' + line(2), ["version"]),
        (HEADER + line(1) + b"no line\n" + line(2), ["damage"]),
        (HEADER + line(1)[:-1] + line(2) + b"x", ["damage", "damage"]),
    ],
)
def test_damage_has_a_kind(data, kinds):
    assert [damage.kind for damage in scan(data).damages] == kinds


def test_a_nul_run_before_a_record_costs_nothing():
    assert got(log(line(1), b"\0" * 300 + line(2), line(3))) == [1, 2, 3]


def test_a_torn_tail_is_damage_and_a_whole_one_counts():
    torn, whole = log(line(1), line(2)[:-9]), log(line(1), line(2)[:-1])

    assert (got(torn), reasons(torn), torn.sealed) == ([1], ["torn tail"], False)
    assert (got(whole), whole.damages, whole.sealed) == ([1, 2], [], False)


def test_glued_lines_are_both_read():
    found = log(line(1)[:-1], line(2), line(3))

    assert got(found) == [1, 2, 3]
    assert reasons(found) == ["2 records on one line"]


def test_glued_lines_and_a_blank_one_are_not_taken_for_whole_lines():
    """The length of the block is that of three whole lines, the number of newlines as well."""
    found = log(line(1)[:-1], line(2), b"\n", line(3))

    assert got(found) == [1, 2, 3]
    assert reasons(found) == ["2 records on one line"]
    assert [one.offset for one in found.lines] == [
        len(HEADER), len(HEADER + line(1)) - 1, len(HEADER + line(1) + line(2)),
    ]  # fmt: skip


def test_a_repeated_old_line_is_the_one_that_goes():
    found = log(line(1, text=b"a"), line(2), line(3), line(1, text=b"b"), line(4))

    assert (got(found), found.lines[0].state) == ([1, 2, 3, 4], b'"a"')
    assert reasons(found) == ["version 1 does not rise"]


def test_of_equal_lines_the_first_is_believed():
    found = log(line(1), line(2, text=b"first"), line(2, text=b"second"), line(3))

    assert found.lines[1].state == b'"first"'


@pytest.mark.parametrize("version", [900, 4_000_000_000, 1, 0])
def test_a_flipped_version_costs_itself_only(version):
    found = log(line(1), line(2), line(version), line(4), line(5))

    assert got(found) == [1, 2, 4, 5]
    assert found.missing == [(3, 3)]


def test_a_file_that_was_appended_to_itself_is_read_once():
    body = [line(version) for version in range(1, 50)]

    assert got(log(*body, *body)) == list(range(1, 50))


def test_a_gap_is_seen_and_is_no_damage():
    found = log(line(1), line(5))

    assert (got(found), found.damages, found.missing, found.clean) == (
        [1, 5],
        [],
        [(2, 4)],
        False,
    )


def test_an_unfinished_batch_at_the_end_was_never_saved():
    found = log(line(1), *batch(2, 3)[:2])

    assert (got(found), found.unfinished) == ([1], True)
    assert reasons(found) == ["unfinished batch, never saved"] * 2


def test_an_unfinished_batch_that_was_overwritten_was_never_saved():
    found = log(line(1), *batch(2, 3)[:2], line(2, text=b"new"), line(3))

    assert (got(found), found.lines[1].state) == ([1, 2, 3], b'"new"')


@pytest.mark.parametrize("hole", [0, 1, 2])
def test_a_damaged_member_of_a_saved_batch_costs_itself_only(hole):
    members = batch(2, 3)
    members[hole] = b"garbage\n"

    assert got(log(line(1), *members, line(5))) == [v for v in [1, 2, 3, 4, 5] if v != hole + 2]


def test_a_batch_at_the_end_whose_last_line_is_there_was_saved():
    first, _, last = batch(2, 3)

    assert got(log(line(1), first, b"garbage\n", last)) == [1, 2, 4]


@pytest.mark.parametrize("hole", [0, 1])
def test_a_batch_at_the_end_with_zero_filled_blocks_was_not_saved(hole):
    members = batch(2, 3)
    members[hole] = b"\0" * 50 + b"\n"

    assert got(log(line(1), *members)) == [1]


@pytest.mark.parametrize("hole", [0, 1])
@pytest.mark.parametrize("place", [slice(0, 9), slice(5, 15), slice(-9, None)], ids=str)
def test_a_batch_with_zeros_anywhere_in_a_line_was_not_saved(hole, place):
    """Also where the zeros took a newline, or only the beginning of a line."""
    members = batch(2, 3)
    damaged = bytearray(members[hole])
    damaged[place] = bytes(len(damaged[place]))
    members[hole] = bytes(damaged)

    found = log(line(1), *members)
    assert got(found) == [1]
    assert "NUL bytes" in reasons(found)


def test_an_append_that_names_its_base_decides_about_the_batch_before():
    committed = log(line(1), *batch(2, 3)[:2], line(4, base=3))
    dropped = log(line(1), *batch(2, 3)[:2], line(100, base=1))

    assert (got(committed), got(dropped)) == ([1, 2, 3, 4], [1, 100])


def test_a_repeated_line_does_not_undo_a_damaged_batch():
    first, _, last = batch(2, 3)

    assert got(log(line(1), first, b"garbage\n", last, line(1), line(5))) == [1, 2, 4, 5]


def test_a_missing_header_costs_nothing():
    found = scan(line(1) + line(2))

    assert (got(found), reasons(found), found.header) == ([1, 2], ["no header"], None)


def test_a_damaged_header_costs_itself():
    found = scan(b"\0\0\0\n" + line(1))

    assert (got(found), reasons(found)) == ([1], ["damaged header"])


def test_byte_order_mark_and_carriage_returns_cost_nothing():
    data = HEADER + line(1) + line(2)

    found = scan(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))

    assert (got(found), found.damages) == ([1, 2], [])


def test_nothing_is_nothing():
    assert got(scan(b"")) == got(scan(HEADER)) == []
    assert scan(b"").clean


@given(st.data())
def test_lines_that_were_not_touched_survive(data):
    parts = [HEADER, *(line(version) for version in range(1, 12))]
    hurt = data.draw(st.sets(st.integers(1, 11)))
    for index in hurt:
        body = bytearray(parts[index][:-1])
        for _ in range(data.draw(st.integers(1, 4))):
            place = data.draw(st.integers(20, len(body) - 1))  # behind the version and the topic
            byte = data.draw(st.integers(0, 255).filter(lambda b: b != 10))
            body[place] = byte
        parts[index] = bytes(body) + b"\n"

    found = scan(b"".join(parts))

    assert {v for v in range(1, 12) if v not in hurt} <= set(got(found))


@given(
    st.lists(
        st.sampled_from(
            [
                line(1),
                line(2),
                line(3),
                *batch(2, 3),
                *batch(4, 2),
                b"\0\0\n",
                b"}{\n",
                b"\n",
                b'{"v":',
                HEADER,
            ]
        )
    )
)
def test_whatever_the_order_what_is_believed_rises(parts):
    found = log(*parts)

    assert got(found) == sorted(set(got(found)))


@given(st.binary(), st.lists(st.integers(1, 60)))
def test_pieces_of_any_size_give_what_the_whole_gives(noise, cuts):
    from infrastructure.jsonl.reader import Reader

    data = HEADER + line(1) + noise + b"\n" + b"".join(batch(2, 3)) + line(5)[:-1]
    reader, position = Reader(), 0
    for cut in cuts:
        reader.feed(data[position : position + cut])
        position += cut
    reader.feed(data[position:])

    assert reader.finish() == scan(data)


@given(
    st.lists(
        st.one_of(
            st.builds(
                line, st.integers(0, 12), text=st.sampled_from([b"x", "語".encode(), b"y" * 99])
            ),
            st.sampled_from(batch(3, 3)),
            st.just(line(4, base=2)),
            st.just(lines_.encode(5, "T", b"not json")),
            st.sampled_from(
                [b"\n", b" ", b"\r\n", line(6)[:-1], line(7).replace(b",", b",\n"), b"{}\n"]
            ),
            st.just(line(8).replace(b'"crc":"', b'"crc":"0')),
            st.just(line(9).replace(b'"v"', b'" offset":7," number":8," crc_ok":false,"v"')),
        )
    ),
    st.randoms(),
)
def test_lines_taken_at_once_are_those_taken_one_by_one(parts, random):
    """The quick way to read a block answers as the careful one does, whatever the block holds."""
    data = bytearray(b"".join(parts))
    for _ in range(random.randrange(2)):
        if data:
            data[random.randrange(len(data))] = random.choice(b'{}"\n ,1x')
    data = HEADER + bytes(data)
    at_once = scan(data)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reader, "decode_block", lambda *_: None)
        one_by_one = scan(data)

    assert at_once == one_by_one


@pytest.mark.parametrize(
    "data",
    [
        b"{" * 300_000,
        b'{"v":' * 60_000,
        b"}{" * 150_000,
        b"\0" * 1_000_000,
        b"".join(line(v, batch=(1, 3)) for v in range(20_000, 0, -1)),
        b'{"v":1,"topic":"T","state":' + b"[" * 200_000,
    ],
    ids=["braces", "starts", "glue", "nul", "batches", "deep"],
)
def test_hostile_bytes_are_read_in_one_pass(data):
    started = time.process_time()

    scan(HEADER + data + b"\n" + line(1))

    assert time.process_time() - started < 10  # quadratic would be minutes
