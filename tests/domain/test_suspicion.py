"""Which content a refusal means, whatever its words are."""

from hypothesis import given
from hypothesis import strategies as st

from domain.projections.context import context
from domain.suspicion import suspected_entry, suspects
from tests import builders as b

NUMBERS = st.integers(0, 9) | st.sampled_from([10**9, 10**30, "9" * 5000])
PLACES = st.builds("messages.{}.content.{}.content.{}: image".format, NUMBERS, NUMBERS, NUMBERS)


@given(st.text() | PLACES)
def test_a_refusal_may_name_any_place_in_any_words(words):
    talk = b.conversation(
        b.model(), b.user("look", b.image()), b.assistant(b.tool_use("t")),
        b.result("t", [b.text("a dot"), b.image()]),
    )  # fmt: skip
    request = context(talk, talk.leaf)

    meant = suspects(talk, request, words)
    assert meant is None or set(meant.entries) <= set(talk.entries)
    assert suspected_entry(talk, request, words) in {None, *talk.entries}


def test_of_thinking_all_is_meant_because_signatures_hang_together():
    talk = b.conversation(
        b.model(), b.user("go"), b.assistant(b.thinking("one", "a"), b.tool_use("t")), b.result("t"),
        b.assistant(b.thinking("two", "b"), "Hm."), b.user("and?"),
    )  # fmt: skip
    words = "messages.1.content.0: Invalid `signature` in `thinking` block"

    assert suspects(talk, context(talk, talk.leaf), words) == ((3, 5), ("thinking",))
