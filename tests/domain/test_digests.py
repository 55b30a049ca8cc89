"""Digests computed step by step are those of the whole requests, whatever a log holds."""

from hypothesis import given, settings
from hypothesis import strategies as st

from domain.canonical import digest
from domain.conversation import Conversation
from domain.projections.context import context
from domain.projections.digests import Digests
from tests import builders as b
from tests.levels import examples
from tests.strategies import streams


@settings(max_examples=examples(100))
@given(streams(), st.data())
def test_whatever_a_log_holds_each_digest_is_that_of_the_whole_request(stream, data):
    talk = Conversation.blank(b.ID, b.NOW)
    digests = Digests(talk)
    for event in stream:
        talk.fold(event)
        if data.draw(st.booleans()):
            leaf = data.draw(st.sampled_from([talk.leaf] * 8 + [None, *talk.entries]))

            assert digests.of(leaf) == digest(context(talk, leaf))


def test_what_becomes_known_of_an_old_call_changes_the_digests_that_hold_it():
    talk = b.conversation(
        b.model(), b.user("go"), b.assistant(b.tool_use("a")), b.user("and?"), b.assistant("hm")
    )
    digests = Digests(talk)
    before = digests.of(talk.leaf)
    talk.fold(b.moved(3, version=6))
    talk.fold(b.tool_started("a", version=7))
    talk.fold(b.moved(5, version=8))

    assert before != digests.of(5) == digest(context(talk, 5))


def test_facts_on_which_what_is_hashed_depends_begin_anew():
    talk = b.conversation(b.model(), b.user("one", b.image()), b.assistant("two"), b.user("three"))
    digests = Digests(talk)
    facts = (
        b.model(max_tokens=7), b.model(caching=True), b.instructions(), b.thinking_level("low"),
        b.learned(max_tokens=3), b.withheld([2]),
    )  # fmt: skip
    for number, fact in enumerate(facts, 5):
        digests.of(talk.leaf)
        talk.fold(
            fact.__class__(
                **{f: getattr(fact, f) for f in fact.__struct_fields__}
                | {"originator_version": number}
            )
        )

        assert digests.of(talk.leaf) == digest(context(talk, talk.leaf))
