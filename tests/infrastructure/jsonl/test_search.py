"""What a query reads of a log never depends on the way in which it was found.

The blocks are made tiny, so that a log of some lines is long: every way is taken, by searching, from
the end, and with the whole of it.
"""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from infrastructure.jsonl import line as lines_
from infrastructure.jsonl import search
from infrastructure.jsonl.log_file import LogFile
from tests.infrastructure.jsonl.support import ID
from tests.levels import examples

TINY = {"CHUNK": 512, "BLOCK": 256, "PROBE": 64, "_PROBED_FROM": 1024}
HEADER = lines_.encode_header(str(ID), "2026-12-01T10:00:00.000000Z")
DAMAGE = st.sampled_from(
    [b"\0" * 40 + b"\n", b"\n", b"{\n", b'{"v":3,"topic":"Noted","sta\n', b"no\n"]
)


@st.composite
def logs(draw):
    """Saves whose versions rise, with gaps, long and short, and damage between and in them."""
    version, parts, base = draw(st.integers(0, 3)), [], None
    for _ in range(draw(st.integers(1, 40))):
        count = draw(st.sampled_from([1, 1, 1, 2, 4]))
        saved = count if draw(st.integers(0, 7)) else draw(st.integers(1, count))
        for number in range(1, saved + 1):
            text = b'"%s"' % (b"x" * draw(st.sampled_from([0, 1, 30, 700])))
            mark = (number, count) if count > 1 else None
            here = base if number == 1 else None
            parts.append(lines_.encode(version + number, "Noted", text, batch=mark, base=here))
            if draw(st.integers(0, 9)) == 0:
                parts.insert(draw(st.integers(len(parts) - 1, len(parts))), draw(DAMAGE))
        if saved == count:
            version, base = version + count + draw(st.sampled_from([0, 0, 0, 0, 1, 9])), None
        else:  # the program was killed: the next save says what it builds on
            base = version
        if draw(st.integers(0, 19)) == 0:  # a part of the file was appended to it again
            first = draw(st.integers(0, len(parts) - 1))
            parts += parts[first : first + draw(st.integers(1, 30))]
    head = HEADER if draw(st.booleans()) else b""
    data = head + b"".join(parts)
    return data[: -draw(st.sampled_from([0, 0, 0, 1, 9])) or None], version


@pytest.fixture(scope="module")
def tiny():
    with pytest.MonkeyPatch.context() as patch:
        for name, value in TINY.items():
            patch.setattr(search, name, value)
        yield


def contents(lines):
    """What the lines say. Of a line that is there twice, either copy is fine."""
    return [(line.version, line.topic, line.state) for line in lines]


@settings(max_examples=examples(120))
@given(logs(), st.data())
def test_every_way_gives_what_reading_all_of_it_gives(tiny, tmp_path_factory, log, data):
    content, last = log
    path = tmp_path_factory.mktemp("log") / f"{ID}.jsonl"
    path.write_bytes(content)
    file = LogFile(path, ID, durable=False)
    everything = file.scan().lines
    version = st.none() | st.integers(0, last + 2)
    for _ in range(20):
        gt, lte = data.draw(version), data.draw(version)
        limit = data.draw(st.none() | st.integers(0, 12))
        desc = data.draw(st.booleans())

        found = file.read(gt=gt, lte=lte, desc=desc, limit=limit)

        expected = search.selected(everything, gt, lte, desc=desc, limit=limit)
        assert contents(found) == contents(expected)
    for cut in data.draw(st.lists(st.integers(0, last + 2), max_size=5)):
        with file.reading() as (fd, size):
            end, line = search.cut_after(fd, size, cut)
        kept = search.selected(everything, None, cut, desc=True, limit=1)
        assert contents([line] if line else []) == contents(kept)
        assert line is None or content[end - 1 : end] in (b"\n", content[-1:])


@pytest.mark.parametrize("desc", [False, True])
@given(
    bounds=st.tuples(st.none() | st.integers(0, 30), st.none() | st.integers(0, 30)),
    limit=st.none() | st.integers(1, 12),
)
def test_the_bounds_of_a_limit_leave_out_all_that_is_not_asked_for_and_no_more(desc, bounds, limit):
    """Without gaps nothing is read twice: a bound that is off by one costs a second reading."""
    gt, lte = bounds
    lower = search.lower_bound(gt, lte, desc=desc, limit=limit)
    upper = search.upper_bound(gt, lte, desc=desc, limit=limit)

    asked = [v for v in range(1, 41) if (gt is None or v > gt) and (lte is None or v <= lte)]
    asked = asked[::-1] if desc else asked
    asked = asked if limit is None else asked[:limit]
    left = [v for v in range(1, 41) if v > (lower or 0) and (upper is None or v <= upper)]
    if desc and limit is not None and lte is None:
        return  # read from the end, without bounds
    assert sorted(asked) == left


def run(first, last, text):
    return [lines_.encode(v, "Noted", b'"%s"' % text) for v in range(first, last + 1)]


@pytest.mark.parametrize(("last", "again"), [(90, (1, 40)), (10, (5, 7))])
def test_a_short_run_behind_a_longer_one_is_not_believed_because_it_comes_last(
    tiny, tmp_path, last, again
):
    path = tmp_path / f"{ID}.jsonl"
    path.write_bytes(b"".join([*run(1, last, b"long"), *run(*again, b"short")]))
    file = LogFile(path, ID, durable=False)

    assert [line.version for line in file.read(desc=True, limit=2)] == [last, last - 1]
    assert file.last() == last


def test_a_version_that_ends_a_block_is_believed_only_if_its_batch_was_saved(tiny, tmp_path):
    """Whatever stands behind the block decides about it; the block ends at every place."""
    path = tmp_path / f"{ID}.jsonl"
    for pad in range(900, 1100):
        killed = lines_.encode(2, "Noted", b'"never saved"', batch=(1, 2))
        path.write_bytes(
            b"".join([*run(1, 1, b"x" * pad), killed, lines_.encode(2, "Noted", b'"2"', base=1)])
            + b"".join(run(3, 99, b"more"))
        )

        found = LogFile(path, ID, durable=False).read(lte=2)

        assert [line.state for line in found[1:]] == [b'"2"']
