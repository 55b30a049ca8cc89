"""Figures add up and say the same of the same; lists use the screen, and nothing of it twice."""

import re
from decimal import Decimal

import pytest
from hypothesis import given
from hypothesis import strategies as st

from app.application import Conversations
from app.bootstrap import AgentFactory
from app.figures import statistics, text_of
from app.repl.show_commands import adding_up, context_rows
from app.settings import run_settings
from app.view.lines import columns, log_line, tree_line
from app.view.plain import cells
from domain.projections.compaction import context_tokens
from domain.projections.context import context
from domain.projections.outline import outline
from domain.projections.usage import added, by_model, own_entries, usage_of
from tests import builders as b
from tests.app.programs import Program
from tests.app.test_bad_input import begin

USED = {"input_tokens": 100, "output_tokens": 10, "cache_read_input_tokens": 50}


def nothing(_model, _usage):
    return None


def busy():
    """Two models, each with calls of which some failed; the second answers in another order."""
    return b.conversation(
        b.instructions(), b.user("go"),
        b.assistant(b.tool_use("t1"), b.tool_use("t2"), usage=USED, model="one"),
        b.result("t2", is_error=True), b.result("t1", is_error=True),
        b.assistant(b.tool_use("t3"), usage=USED, model="two"),
        b.user("meanwhile"),
        b.result("t3", is_error=True),
        b.assistant(b.text("Done."), usage=USED, model="one"),
    )  # fmt: skip


def test_what_failed_is_counted_for_the_model_that_asked_for_it():
    entries = own_entries(busy())
    whole, parts = usage_of(entries, nothing), by_model(entries, nothing)

    assert {model: used.failed_calls for model, used in parts.items()} == {"one": 2, "two": 1}
    for figure in ("failed_calls", "tool_calls", "answers"):
        assert sum(getattr(used, figure) for used in parts.values()) == getattr(whole, figure)


def test_what_models_have_spent_adds_up_with_summaries_and_is_unknown_with_one_price():
    talk = b.conversation(
        b.user("go"), b.assistant("One.", usage=USED, model="one"),
        b.compacted("notes", model="two", usage=USED), b.user("on"),
        b.assistant("Two.", usage=USED, model="two"),
    )  # fmt: skip
    entries = own_entries(talk)
    prices = {"two": Decimal(2)}.get
    whole, parts = usage_of(entries, lambda m, _: prices(m)), by_model(entries, lambda m, _: prices(m))  # fmt: skip

    assert {model: used.tokens for model, used in parts.items()} == {
        "one": USED,
        "two": added(USED, USED),
    }
    assert whole.tokens == added(USED, added(USED, USED))
    assert (whole.cost, parts["one"].cost, parts["two"].cost) == (None, None, 4)


def test_an_interrupted_answer_has_a_model_too():
    talk = b.conversation(
        b.user("go"), b.assistant(b.tool_use("t1"), model="one", stop_reason="interrupted"),
        b.result("t1", is_error=True),
    )  # fmt: skip

    assert by_model(own_entries(talk), nothing)["one"].failed_calls == 1


def test_a_call_that_no_model_made_belongs_to_none():
    talk = b.conversation(b.user(b.tool_use("t1")), b.result("t1"), b.assistant("Hi."))

    assert by_model(own_entries(talk), nothing)[b.MODEL].tool_calls == 0


def test_each_leaf_is_a_branch_and_waiting_is_summed_up():
    talk = b.conversation(
        b.user("go"), b.assistant("Left?", usage=USED, duration=1.25), b.user("left"),
        b.moved(2), b.user("right"), b.assistant("Right.", usage=USED, duration=2.0004),
        b.labelled(2, "fork in the road"),
    )  # fmt: skip
    found = statistics(talk)

    branches = {leaf: (used.entries, used.seconds) for leaf, used in found.branches.items()}  # fmt: skip
    assert branches == {"3": (3, 1.25), "6": (4, 3.25)}
    assert (found.leaf, found.depth, found.total.seconds) == (6, 4, 3.25)
    rows = [line.split("  ")[1] for line in text_of(found).split("\n")[3:]]
    assert rows == ["total", b.MODEL, "branch ending at 3", "branch ending at 6"]
    assert "3.3 s" in text_of(found) or "3.2 s" in text_of(found)


def test_a_fork_counts_nothing_that_its_parent_spent():
    spent = [b.user("go"), b.assistant("Done.", usage=USED, duration=9)]
    ended = [b.turn_ended(lost={"input_tokens": 7}), b.user("on the way")]
    talk = b.conversation(*spent, *ended, b.forked(4), *spent, b.turn_ended(lost={"input_tokens": 2}))  # fmt: skip
    found = statistics(talk)

    assert found.total.tokens == USED | {"input_tokens": 102}
    [(leaf, branch)] = found.branches.items()
    assert (leaf, branch.entries, branch.seconds) == ("7", 2, 9)
    assert branch.tokens == USED
    assert (found.messages, found.depth) == (5, 5)


def test_only_tokens_are_summed_up_whatever_else_a_server_says():
    more = {
        "service_tier": "x",
        "cache_creation": {"a": 1},
        "output_tokens": "many",
        "new_tokens": 5,
    }

    assert added(more | {"input_tokens": 1}, USED) == USED | {"input_tokens": 101}
    assert added(USED, more) == added(USED, None) == USED


@given(st.lists(st.lists(st.text("a汉\u0301 ,", max_size=9), min_size=3, max_size=3), min_size=1))
def test_columns_stand_below_one_another_in_every_script(rows):
    lines = columns([[*row, "|"] for row in rows], left=(0, 2))

    assert len({cells(line) for line in lines}) == 1


def test_the_table_of_stats_is_one():
    lines = text_of(statistics(busy())).split("\n")[2:]

    assert re.split(r"\s{2,}", lines[0].strip()) == [
        "in", "out", "cached", "calls", "failed", "time", "cost",
    ]  # fmt: skip
    assert re.split(r"\s{2,}", lines[1].strip()) == [
        "total", "450", "30", "33%", "3", "3", "0.0 s", "cost unknown",
    ]  # fmt: skip
    assert len({len(line) for line in lines[1:]}) == 1


def test_a_narrow_screen_gets_the_figures_in_lines():
    lines = text_of(statistics(busy()), 60).split("\n")[2:]

    assert lines[:2] == [
        "  total",
        "    in 450, out 30, cached 33%, calls 3, failed 3, time 0.0 s, cost unknown",
    ]
    assert [line for line in lines if line.startswith("  o")] == ["  one"]


@given(st.lists(st.integers(0, 10**9), min_size=1, max_size=6), st.integers(0, 10**9))
def test_parts_add_up_in_proportion(parts, total):
    shares = adding_up(parts, total)

    assert sum(shares) == total
    assert all(share >= 0 for share in shares)
    if sum(parts):
        for part, share in zip(parts, shares, strict=True):
            assert abs(share - total * part / sum(parts)) <= 1


def test_the_parts_of_the_context_add_up():
    talk = busy()
    rows = context_rows(talk, context(talk, talk.leaf), 1_000)
    counts = [
        int(found[1].replace(",", ""))
        for row in rows
        if (found := re.search(r"([\d,]+) tokens", row))
    ]

    assert sum(counts[:-1]) == counts[-1] == context_tokens(talk)


def test_a_summary_is_counted_once_in_its_own_row():
    talk = b.conversation(
        b.user("go"), b.assistant("Done."), b.compacted("words " * 5_000), b.user("Further."),
    )  # fmt: skip
    rows = context_rows(talk, context(talk, talk.leaf), 1_000)
    counts = {row.split()[0]: int(row.split()[1].replace(",", "")) for row in rows[1:5]}

    assert counts["summary"] > 5_000
    assert counts["messages"] < 100


def test_the_first_request_is_foreseen_with_its_instructions_and_tools(tmp_path, monkeypatch):
    """The status line said "23 tokens" before the first prompt, and 2,000 after it."""
    monkeypatch.setenv("ANTHROPIC_API_KEY", "test")
    with Conversations({"LEFTFOLD_STORE": str(tmp_path / "store")}) as conversations:
        workshop = AgentFactory(run_settings(model="m"), conversations, model=None)
        at_hand = workshop.start()
        foreseen = workshop.foreseen(at_hand.conversation)

        assert {"system", "tools"} <= context(foreseen, foreseen.leaf).keys()
        assert context_tokens(foreseen) > context_tokens(at_hand.conversation) + 500
        assert at_hand.conversation.instructions is None
        at_hand.record(lambda talk: talk.rename("a name"))  # now it is in the store
        assert context_tokens(workshop.foreseen(at_hand.conversation)) == context_tokens(foreseen)
        assert conversations.get(at_hand.id).instructions is None


# -- as wide as the screen -------------------------------------------------------------------------

CHINESE = "请列出当前目录的文件，然后" * 30


@pytest.mark.parametrize("width", [40, 60, 100, 200])
def test_a_line_of_the_log_or_the_tree_is_as_wide_as_the_screen(width):
    talk = b.conversation(b.user(CHINESE), b.assistant(b.tool_use("t1", command=CHINESE)))
    lines = [log_line(entry, width) for entry in talk.entries.values()]
    lines += [tree_line(row, width=width) for row in outline(talk)]

    for line in lines:
        assert width - 1 <= cells(line) <= width
        assert line.removesuffix(" ◀ leaf").endswith("…")


def test_where_nobody_looks_at_a_screen_lines_are_whole():
    talk = b.conversation(b.user(CHINESE[:200]), b.assistant(b.tool_use("t1", command=CHINESE)))
    asked, called = talk.entries.values()

    assert log_line(asked).endswith(f"user: {CHINESE[:200]}")
    assert log_line(called).endswith(f'bash {{"command": "{CHINESE}"}}')
    assert CHINESE[:200] in tree_line(next(outline(talk)))


def test_a_name_in_chinese_is_printed_as_it_is(tmp_path):
    program = Program(tmp_path)
    conversation_id = begin(program, "列出文件")
    program.run("rename", conversation_id, "列出文件")

    assert '{"name": "列出文件"}' in program.run("log", conversation_id).out


def test_what_a_model_says_in_an_event_cannot_draw_on_the_terminal():
    [entry] = b.conversation(b.user("a\x1b[2Jb\nc\r\u202ed")).entries.values()

    assert log_line(entry).endswith("user: a␛[2Jb c␍\\u202ed")
