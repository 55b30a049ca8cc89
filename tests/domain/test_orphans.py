"""Results that answer no call are found, and are those that no request has."""

import pytest

from domain.conversation import Conversation
from domain.projections.context import context
from domain.projections.orphans import orphans
from tests.builders import (
    assistant,
    compacted,
    conversation,
    lost,
    numbered,
    result,
    started,
    tool_result,
    tool_use,
    user,
)

CALL = assistant(tool_use("one"), tool_use("two"))


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        ([user("go"), CALL, result("one"), result("two")], []),
        ([user("go"), CALL, result("two"), result("one"), assistant("Done.")], []),
        ([user("go"), result("three")], ["three"]),
        ([user("go"), CALL, result("one"), result("three")], ["three"]),
        ([user("go"), CALL, result("one"), result("one"), result("two")], ["one"]),
        ([user("go"), CALL, result("one"), assistant("Hm."), result("three")], ["three"]),
        ([user("go"), CALL, user(tool_result("two"), tool_result("three"))], ["three"]),
        ([user("go"), result("three"), user("and"), compacted(first_kept=4)], []),
        ([user("go"), result("three"), user("and"), compacted(first_kept=3)], ["three"]),
        ([user("go"), result("three"), user("and"), compacted(first_kept=None)], []),
    ],
)
def test_a_result_without_a_call_is_an_orphan(stream, expected):
    talk = conversation(started(), *stream)

    assert orphans(talk, talk.leaf) == expected
    assert "three" not in str(context(talk, talk.leaf)["messages"])


def test_a_call_that_was_lost_leaves_orphans():
    stream = numbered(started(), user("go"), CALL, result("one"), result("two"), assistant("Done."))
    talk = Conversation.replay(None, lost(stream, 3))

    assert sorted(orphans(talk, talk.leaf)) == ["one", "two"]
