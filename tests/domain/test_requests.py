"""Requests made step by step are those of the whole path, whatever a log holds."""

from hypothesis import given, settings

from domain.canonical import digest
from domain.conversation import Conversation
from domain.projections.context import context
from domain.projections.requests import Requests
from tests import builders as b
from tests.levels import examples
from tests.strategies import streams


@settings(max_examples=examples(200))
@given(streams(max_size=12))
def test_every_request_is_the_context_with_its_digest(stream):
    talk = Conversation.blank(b.ID, b.NOW)
    requests = Requests(talk)

    for event in stream:
        Conversation.replay(talk, [event])
        body, proof = requests.request(talk.leaf)
        whole = context(talk, talk.leaf)

        assert repr(body) == repr(whole)
        assert proof == digest(whole)


def test_a_branch_that_is_left_leaves_nothing_behind():
    stream = b.numbered(b.started(), b.user("one"), b.assistant("two"), b.user("three"))
    talk = Conversation.replay(None, stream)
    requests = Requests(talk)

    for leaf in (talk.leaf, 2, talk.leaf, None, 3):
        assert requests.request(leaf)[0] == context(talk, leaf)
