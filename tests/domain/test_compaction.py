"""Where a compaction cuts."""

from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.events import MessageAppended
from domain.limits import Room
from domain.projections.compaction import estimate, find_cut, summary_text
from domain.projections.summaries import Subject, summary_requests
from tests import builders as b

WORK = [
    b.user("one"), b.assistant("sure", b.tool_use("a"), b.tool_use("b")), b.result("b"),
    b.note("a note"), b.result("a"), b.assistant("so", b.tool_use("c")), b.user("stop"),
    b.result("c"), b.assistant("fine"), b.user("two"), b.assistant("ok", b.tool_use("d")),
]  # fmt: skip


def calls_and_results(entries):
    said = [entry.content for entry in entries if isinstance(entry, MessageAppended)]
    calls = {call["id"] for each in said for call in each.tool_uses}
    return calls, {result["tool_use_id"] for each in said for result in each.tool_results}


@given(length=st.integers(2, len(WORK)), keep=st.integers(1, 400))
def test_a_call_stays_with_its_results(length, keep):  # K1
    talk = b.conversation(*WORK[:length])
    cut = find_cut(talk, keep)
    if cut is None:
        return
    calls, results = calls_and_results([*cut.history, *cut.turn])

    assert results <= calls
    assert calls == results, "what is cut off has an answer, also one that is still to come"


@pytest.mark.parametrize(
    ("length", "first_kept"),
    [(1, None), (2, 2), (3, 2), (5, 2), (6, 6), (7, 6), (8, 6), (9, 9), (10, 10), (11, 11)],
)
def test_the_newest_place_is_cut_where_no_pair_is_parted(length, first_kept):
    cut = find_cut(b.conversation(*WORK[:length]), 1)

    assert (cut and cut.first_kept) == first_kept


def test_an_open_call_stays_for_a_result_that_is_still_to_come():
    talk = b.conversation(
        b.user("go"), b.assistant(b.tool_use("a"), b.tool_use("b")), b.note("!ls")
    )

    assert find_cut(talk, 1).first_kept == 2


@given(
    window=st.integers(4_096, 200_000),
    quote=st.integers(0, 40_000),
    paths=st.lists(st.text("abc/é", min_size=1, max_size=4_000), max_size=60),
    previous=st.integers(0, 800_000),
)
def test_a_summary_leaves_room_whatever_is_said_word_for_word(window, quote, paths, previous):
    """A long prompt and a list of files that only grew filled a small window by themselves."""
    room = Room.of(window)
    calls = [b.tool_use(f"c{n}", name="edit", path=path) for n, path in enumerate(paths)]
    talk = b.conversation(
        b.compacted("## Goal\n" + "é" * (previous // 2)),
        b.user("go " + "é" * (quote // 2)),
        b.assistant("ok", *calls),
        *(b.result(f"c{n}") for n in range(len(paths))),
        b.assistant("so"),
    )
    cut = find_cut(talk, 1)
    requests = summary_requests(talk, talk.leaf, Subject.of_cut(cut), window=window)
    told = "x" * room.longest_summary
    sizes = [estimate(next(requests).content["messages"])]
    with suppress(StopIteration):
        while True:
            sizes.append(estimate(requests.send(told).content["messages"]))

    assert max(sizes) <= window
    assert estimate(summary_text(cut, told, told, room)) < room.limit
    assert cut.turn == () or len(summary_text(cut, "", "", room)) > min(quote // 2, 100)
