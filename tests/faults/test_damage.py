"""Damage costs what it covers: every other line is read, and the conversation opens and goes on.

The oracle shares nothing with the reader: it splits the damaged bytes at newlines and looks which
original lines stand there, whole and alone. Cases D1-D4, D10, J3, Z9.
"""

import json
import re
from bisect import bisect_left
from collections import Counter

import pytest
from hypothesis import event, given, settings
from hypothesis import strategies as st

from app.errors import AppError
from app.verification import verify
from domain.projections.context import context
from domain.projections.transcript import transcript
from infrastructure.errors import NewerFormatError
from tests.api_rules import violations
from tests.faults.damage import KINDS, corrupted, histories, hospital
from tests.levels import at_level, examples

# The same lines, thousands of times: coverage would double what this takes and show nothing.
pytestmark = pytest.mark.no_cover

TALLY = Counter()

QUICK = settings(max_examples=examples(25))
MANY = settings(max_examples=examples(150))
_ANY_VERSION = re.compile(rb'"v"\s*:\s*(-?\d+)')


@pytest.fixture(scope="module", autouse=True)
def figures():
    """Print, after a long run, what was tried (see docs/reliability.md; `pytest -s`)."""
    yield
    if at_level(quick=False, whole=False, soak=True):
        print("\n" + ", ".join(f"{name}: {count:,}" for name, count in TALLY.items()))


# -- the oracle ----------------------------------------------------------------------------------


def standing(history, data):
    """The original lines that stand in *data*, whole and alone: (offset, line as JSON)."""
    originals, offset, found = set(history.lines), 0, []
    for number, piece in enumerate(data.split(b"\n")):
        if piece in originals and number:
            found.append((offset, json.loads(piece)))
        offset += len(piece) + 1
    return found


def longest_rise(versions):
    tops = []
    for version in versions:
        place = bisect_left(tops, version)
        tops[place : place + 1] = [version]
    return len(tops)


def may_be_unsaved(line, intact):
    """Whether *line* belongs to a batch of which a member was hit, and nothing newer is there.

    Such a batch looks like one that a crash cut short: it was never saved.
    """
    if "batch" not in line:
        return False
    place, total = line["batch"]
    first = line["v"] - place + 1
    members = {first + i for i in range(total)}
    there = {other["v"] for _, other in intact if other.get("batch", [0, 0])[1] == total}
    newer = any(other["v"] >= first + total for _, other in intact)
    return members - there != set() and not newer


def check_lines(history, data, found):
    """Every line that was not touched is believed; where two orders are possible, the longer."""
    intact = standing(history, data)
    TALLY["damaged logs"] += 1
    TALLY["lines hit or lost"] += max(len(history.lines) - len(intact), 0)
    TALLY["lines not hit"] += len(intact)
    lines = {line.offset: line for line in found.lines}
    reported = {damage.offset for damage in found.damages}
    missed = []
    for offset, line in intact:
        read = lines.get(offset)
        if read is None:
            assert offset in reported, f"{line['v']} is neither read nor reported"
            missed.append(line)
        else:
            assert (read.version, read.topic) == (line["v"], line["topic"])
            assert json.loads(read.state) == line["state"]
    missed = [line for line in missed if not may_be_unsaved(line, intact)]
    versions = [int(number) for number in _ANY_VERSION.findall(data)]
    marks = [mark for mark in re.findall(rb'"ba[^,}]*', history.data) if b"base" in mark]
    if not all(mark in data for mark in marks):
        return
    if versions == sorted(set(versions)):
        TALLY["of these lost"] += len(missed)
        assert missed == []
    else:
        sure = [line["v"] for _, line in intact if not may_be_unsaved(line, intact)]
        assert len(found.lines) >= longest_rise(sure)


def check_report(history, data, found, report):
    """What is wrong is reported with its place; clean means that nothing was lost or changed."""
    for damage in found.damages:
        assert damage.reason
        assert 0 <= damage.offset <= damage.offset + damage.length <= len(data)
        assert damage.number == 1 + data.count(b"\n", 0, damage.offset)
    named = {(finding.line, finding.offset, finding.what) for finding in report.findings}
    assert {(d.number, d.offset, d.reason) for d in found.damages} <= named
    if report.ok:
        was = [(line["v"], line["topic"], line["state"]) for line in map(json.loads, history.lines)]
        now = [(line.version, line.topic, json.loads(line.state)) for line in found.lines]
        shorter = min(len(was), len(now))
        # What ends at a line's end, and lines that go on where it ended, only the order can tell.
        assert was[:shorter] == now[:shorter]


def check_it_goes_on(conversations, history, data, believed):
    """The conversation opens, shows its gaps, takes an event, can be forked; no byte is lost."""
    path = conversations.store.path_of(history.id)
    if not believed:
        with pytest.raises(AppError):
            conversations.get(history.id)
        return
    talk = conversations.get(history.id)
    assert violations(context(talk, talk.leaf)) == []
    for gap in talk.gaps:
        shown = [item for item in transcript(talk, gap.leaf) if item.kind == "gap"]
        assert any(str(gap.first) in item.text for item in shown)
    child = conversations.fork(history.id)
    assert path.read_bytes() == data

    conversations.open(history.id).record(lambda talk: talk.append_prompt("and on"))

    conversations.store.close()
    after = conversations.get(history.id)
    now = path.read_bytes()
    assert now.startswith(data)
    assert json.loads(now.split(b"\n")[-2])["v"] == after.version, "glued to what was there"
    assert after.messages()[-1].content.text == "and on"
    assert list(after.entries)[:-1] == list(talk.entries)
    forked = conversations.get(child)
    assert forked.entries.keys() == talk.entries.keys()
    assert forked.leaf == talk.leaf
    assert violations(context(forked, forked.leaf)) == []


def check(history, data):
    with hospital(history, data) as conversations:
        try:
            found = conversations.store.inspect(history.id)
        except NewerFormatError as error:
            event(f"a header that says {error.format}")
            return
        check_lines(history, data, found)
        report = verify(conversations, history.id)
        assert conversations.store.path_of(history.id).read_bytes() == data
        check_report(history, data, found, report)
        check_it_goes_on(conversations, history, data, found.lines)


# -- random damage to random logs ----------------------------------------------------------------


@MANY
@given(histories, st.data())
def test_whatever_happens_to_a_log_only_what_was_hit_is_lost(history, data):
    check(history, data.draw(corrupted(history)))


@pytest.mark.parametrize("kind", KINDS)
@QUICK
@given(histories, st.data())
def test_every_kind_of_damage_costs_only_what_it_covers(kind, history, data):
    check(history, data.draw(corrupted(history, kinds=(kind,), most=1)))
