"""Requests made step by step are those of the whole path, whatever a log holds, in every form."""

import msgspec
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.conversation import Conversation
from domain.projections.context import request_of
from domain.projections.requests import Requests
from domain.request import CANONICAL_FORM, FORM, Request, form_of
from tests import builders as b
from tests.levels import examples
from tests.strategies import streams

FORMS = pytest.mark.parametrize("form", [FORM, CANONICAL_FORM])


@settings(max_examples=examples(200))
@given(streams(max_size=12), st.data())
def test_every_request_is_that_of_the_whole_path_with_its_digest(stream, data):
    talk = Conversation.blank(b.ID, b.NOW)
    requests, old = Requests(talk), Requests(talk, CANONICAL_FORM)
    held = []

    for event in stream:
        talk.fold(event)
        leaf = data.draw(st.sampled_from([talk.leaf] * 8 + [None, *talk.entries]))
        whole = request_of(talk, leaf)

        assert requests.request(leaf) == (whole, whole.digest())
        if data.draw(st.booleans()):
            held.append((requests.request(leaf)[0], whole))
        if data.draw(st.booleans()):
            assert old.digest(leaf) == whole.digest(CANONICAL_FORM)

    assert all(request == whole for request, whole in held)  # none grew into a later one


def test_a_request_that_somebody_has_stays_as_it_is_when_the_next_one_is_made():
    talk = b.conversation(b.user("one"))
    requests = Requests(talk)
    first = requests.request(talk.leaf)[0]
    talk.fold(b.assistant("two", version=2))
    talk.fold(b.user("three", version=3))

    second = requests.request(talk.leaf)[0]

    assert first == request_of(talk, 1)
    assert second == request_of(talk, 3)


def test_a_branch_that_is_left_leaves_nothing_behind():
    talk = b.conversation(b.started(), b.user("one"), b.assistant("two"), b.user("three"))
    requests = Requests(talk)

    for leaf in (talk.leaf, 2, talk.leaf, None, 3):
        assert requests.request(leaf)[0] == request_of(talk, leaf)


@FORMS
def test_what_becomes_known_of_an_old_call_changes_the_digests_that_hold_it(form):
    talk = b.conversation(
        b.model(), b.user("go"), b.assistant(b.tool_use("a")), b.user("and?"), b.assistant("hm")
    )
    requests = Requests(talk, form)
    before = requests.digest(talk.leaf)
    talk.fold(b.moved(3, version=6))
    talk.fold(b.tool_started("a", version=7))
    talk.fold(b.moved(5, version=8))

    assert before != requests.digest(5) == request_of(talk, 5).digest(form)


@FORMS
def test_facts_on_which_what_is_hashed_depends_begin_anew(form):
    talk = b.conversation(b.model(), b.user("one", b.image()), b.assistant("two"), b.user("three"))
    requests = Requests(talk, form)
    facts = (
        b.model(max_tokens=7), b.model(caching=True), b.instructions(), b.thinking_level("low"),
        b.learned(max_tokens=3), b.withheld([2]),
    )  # fmt: skip
    for number, fact in enumerate(facts, 5):
        requests.digest(talk.leaf)
        talk.fold(
            fact.__class__(
                **{f: getattr(fact, f) for f in fact.__struct_fields__}
                | {"originator_version": number}
            )
        )

        assert requests.digest(talk.leaf) == request_of(talk, talk.leaf).digest(form)


# -- digests ---------------------------------------------------------------------------------------


def test_a_digest_names_its_form_and_never_changes():
    one, other = Request(b'{"b":2,"a":1}', 1), Request(b'{"a":1,"b":2}', 1)
    canonical = "c1:43258cff783fe7036d8a43033f830adfc60ec037382473548ac742b888292777"
    as_sent = "c2:3fb75453225c732a76b7899ea2096dda1455189c89817239732182f73fe5a09f"

    assert one.digest(CANONICAL_FORM) == other.digest(CANONICAL_FORM) == canonical
    assert one.digest() == as_sent != other.digest()
    assert list(map(form_of, (canonical, as_sent, "sha"))) == [CANONICAL_FORM, FORM, FORM]


@pytest.mark.parametrize("more", [{}, {"cache_control": {"z": 1, "a": 2}}, {"tools": [{"b": "é"}]}])
@pytest.mark.parametrize("messages", [[], [{"b": 1, "a": 2}], [{"a": 1}, {"b": [2]}]])
def test_a_request_is_its_fields_by_name_with_the_messages_among_them(messages, more):
    fields = {"stream": True, "model": "m", "max_tokens": 7, **more}

    request = Request.of(fields, [b",".join(map(msgspec.json.encode, messages))])

    whole = fields | {"messages": messages}
    assert request.body == msgspec.json.encode({key: whole[key] for key in sorted(whole)})
    assert (request.content, request.max_tokens) == (whole, 7)
