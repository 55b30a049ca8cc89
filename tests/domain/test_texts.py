"""What of an event can be searched for, and when two texts are the same."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.projections.texts import excerpt, folded, texts
from tests import builders as b


def found(*events):
    return [
        (text.kind, text.text, text.tool, text.call, text.failed)
        for event in events
        for text in texts(event)
    ]


def test_what_was_said_called_printed_and_noted_can_be_searched_for():
    call = b.tool_use("t1", "edit", path="a.py", edits=[{"old": "x", "count": 2}])

    assert found(
        b.user("a prompt", b.text("a file")),
        b.assistant(b.thinking("a thought"), "an answer", call),
        b.result("t1", "a result", is_error=True),
        b.compacted("a summary"),
        b.note("a note"),
    ) == [
        ("user", "a prompt", None, None, False),
        ("user", "a file", None, None, False),
        ("thinking", "a thought", None, None, False),
        ("assistant", "an answer", None, None, False),
        ("tool_use", "edit\na.py\nx\n2", "edit", "t1", False),
        ("tool_result", "a result", None, "t1", True),
        ("summary", "a summary", None, None, False),
        ("note", "a note", None, None, False),
    ]


def test_facts_and_what_makes_no_sense_say_nothing():
    odd = b.message({"role": "user", "content": [{"type": "tool_use"}, 7, None, {"type": "text"}]})

    assert found(b.started(), b.renamed("a name"), b.unrecognised(), b.message([]), odd) == [
        ("user", "(unreadable: [])", None, None, False)
    ]


@pytest.mark.parametrize(
    ("wanted", "text"),
    [
        ("CAFÉ", "the cafe\u0301 is open"),
        ("cafe", "Café"),
        ("straße", "STRASSE"),
        ("snake_case", "call_snake_case()"),
        ("a.b.c", "import a.b.c"),
        ("src/main.py", "edit SRC/Main.py:12"),
        ("数据", "连接数据库"),
        ("가", "가나"),
        ("🦊", "a 🦊 ran"),
        ("connection refused", "connection\n    refused"),
        ("ﬁle", "file"),
    ],
)
def test_case_accents_and_lines_make_no_difference(wanted, text):
    assert folded(wanted) in folded(text)


@pytest.mark.parametrize(
    ("wanted", "text"), [("a.b", "a-b"), ("snake case", "snake_case"), ("が", "か"), ("가", "각")]
)
def test_everything_else_does(wanted, text):
    assert folded(wanted) not in folded(text)


@given(st.data(), st.text("aÉß数\u0301 .\n\t", max_size=400), st.integers(20, 60))
def test_an_excerpt_shows_what_was_looked_for(data, text, width):
    start = data.draw(st.integers(0, len(text)))
    wanted = folded(text[start : start + data.draw(st.integers(1, 10))])
    if wanted and wanted in folded(text):
        shown = excerpt(text, wanted, width)

        assert wanted in folded(shown)
        assert len(shown) <= width + 2
        assert "\n" not in shown
