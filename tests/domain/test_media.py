"""Images and documents: what the API would refuse is replaced, by arithmetic and for few requests."""

import base64
import struct
from itertools import pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from domain.conversation import Conversation
from domain.events import MessageAppended
from domain.projections import media
from domain.projections.context import context, request_of
from domain.projections.requests import Requests
from tests import builders as b
from tests.api_rules import prefix_violations, violations
from tests.levels import examples


def png(width, height=1, *, size=0):
    """The beginning of a PNG of so many pixels, and *size* bytes after it."""
    data = (
        b"\x89PNG\r\n\x1a\n\0\0\0\x0dIHDR" + struct.pack(">II", width, height) + b"\x08\x06\0\0\0"
    )
    return b.image(data=base64.b64encode(data + bytes(size)).decode())


def pdf(pages):
    data = base64.b64encode(b"%PDF-1.4\n" + b"<< /Type /Page >>\n" * pages).decode()
    source = {"type": "base64", "media_type": "application/pdf", "data": data}
    return {"type": "document", "source": source}


def request(*stream):
    talk = b.conversation(b.model(), *stream)
    found = context(talk, talk.leaf)
    assert violations(found) == []
    return found


def sent(found):
    """The types of the blocks of all user messages, with the images that sit in results."""
    blocks = [block for m in found["messages"] for block in m["content"]]
    inner = [block["content"] if block["type"] == "tool_result" else [block] for block in blocks]
    return [part["type"] for parts in inner for part in parts]


def told(found):
    blocks = [block for m in found["messages"] for block in m["content"]]
    inner = [block["content"] if block["type"] == "tool_result" else [block] for block in blocks]
    return [part["text"] for parts in inner for part in parts if part["type"] == "text"]


@pytest.mark.parametrize(
    ("medium", "why"),
    [
        (png(1, size=4 * 2**20), "more than 5 MB"),
        (png(8001), "larger than 8000 pixels"),
        (png(1, 8001), "larger than 8000 pixels"),
        (pdf(101), "more than 100 pages"),
    ],
)
@pytest.mark.parametrize("place", ["prompt", "result"])
def test_what_no_request_may_hold_is_replaced_by_a_line_that_says_why(medium, why, place):
    if place == "prompt":
        found = request(b.user("look", medium))
    else:
        found = request(b.user("look"), b.assistant(b.tool_use("a")), b.result("a", [medium]))

    assert medium["type"] not in sent(found)
    assert why in told(found)[-1]


@pytest.mark.parametrize("medium", [png(8000), png(1, size=3 * 2**20), pdf(100)])
def test_what_is_just_small_enough_goes_out(medium):
    assert sent(request(b.user("look", medium))) == ["text", medium["type"]]


def test_an_image_goes_out_as_what_its_bytes_are():
    """The API refuses an image whose type is not the one that is said of it."""
    [_, block] = request(b.user("look", b.image(media_type="image/jpeg")))["messages"][0]["content"]

    assert block["source"]["media_type"] == "image/png"


def test_with_more_than_twenty_images_large_ones_are_left_out_and_say_why():
    few = request(b.user("look", png(2001), *[png(2000)] * 19))
    many = request(b.user("look", png(2001), *[png(2000)] * 20))

    assert sent(few).count("image") == 20
    assert sent(many).count("image") == 20
    assert "larger than 2000 pixels" in told(many)[1]


def test_of_more_than_a_hundred_images_the_newest_are_sent():
    stream = [b.user(f"look {n}", png(n + 1)) for n in range(101)]
    found = request(*stream)

    kept = [block for m in found["messages"] for block in m["content"] if block["type"] == "image"]
    assert kept[-1] == png(101)
    assert len(kept) == 50
    assert "those that came after it are as many as the API takes" in told(found)[1]


def test_the_pages_of_all_documents_are_counted_together():
    found = request(*[b.user("read", pdf(60)) for _ in range(2)])

    assert sent(found) == ["text", "text", "text", "document"]


def test_the_bytes_of_all_media_are_counted_together():
    found = request(*[b.user("look", png(1, size=3 * 2**20)) for _ in range(7)])

    assert 1 < sent(found).count("image") < 7


shots = st.builds(png, st.sampled_from([1, 1, 1, 2001, 8001]), size=st.sampled_from([0, 0, 90]))


@st.composite
def galleries(draw):
    """Turns that each bring images, in a prompt or as the result of a call."""
    stream = []
    for number in range(draw(st.integers(1, 14))):
        seen = draw(st.lists(st.one_of(shots, st.builds(pdf, st.integers(0, 3))), max_size=3))
        if draw(st.booleans()):
            stream += [b.user("look", *seen)]
        else:
            call = f"c{number}"
            stream += [
                b.user("go"),
                b.assistant(b.tool_use(call)),
                b.result(call, [*seen, b.text("x")]),
            ]
        stream += [b.assistant("seen")]
    return stream


@settings(max_examples=examples(60))
@given(galleries())
def test_however_many_come_the_limits_hold_and_few_requests_begin_anew(stream):
    with pytest.MonkeyPatch.context() as small:
        for limit, most in (
            ("MAX_MEDIA", 6),
            ("MANY_IMAGES", 4),
            ("MAX_PAGES", 8),
            ("MAX_BYTES", 900),
        ):
            small.setattr(media, limit, most)
        talk, requests = Conversation.blank(b.ID, b.NOW), []
        made = Requests(talk)
        for event in b.numbered(b.model(), *stream):
            talk.fold(event)
            if (
                isinstance(event, MessageAppended) and event.content.role == "user"
            ):  # here a program asks
                whole = request_of(talk, talk.leaf)
                requests.append(whole.content)
                assert made.request(talk.leaf) == (whole, whole.digest())
    for found in requests:
        assert violations(found) == []
        assert len(list(_media_of(found))) <= 6
    came = len(list(_media_of(requests[-1], placed=True)))
    anew = sum(bool(prefix_violations(*pair)) for pair in pairwise(requests))
    assert anew <= 1 + came // 2


def _media_of(found, *, placed=False):
    for block in (block for m in found["messages"] for block in m["content"]):
        for part in block["content"] if isinstance(block.get("content"), list) else [block]:
            is_stub = part["type"] == "text" and "left out here" in part["text"]
            if part["type"] in ("image", "document") or (placed and is_stub):
                yield part


# -- content that the API refused ----------------------------------------------------------------


@pytest.mark.parametrize("place", ["prompt", "result"])
def test_an_image_that_the_api_refused_is_not_sent_again_and_others_are(place):
    if place == "prompt":
        stream = [b.user("look", b.image())]
    else:
        stream = [
            b.user("go"),
            b.assistant(b.tool_use("a")),
            b.result("a", [b.text("x"), b.image()]),
        ]
    entry = len(stream) + 1
    after = [b.withheld([entry]), b.assistant("hm"), b.user("this?", b.image())]
    found = request(*stream, *after)

    assert sent(found).count("image") == 1
    assert "the API refused it" in " ".join(told(found))
    assert found["messages"][-1]["content"][-1] == b.image()


def test_what_one_model_refused_another_one_gets():
    stream = [b.user("look", b.image()), b.withheld([2])]

    assert "image" not in sent(request(*stream))
    assert "image" in sent(request(*stream, b.model("claude-other")))


@pytest.mark.parametrize(
    ("blocks", "kinds"),
    [
        ([b.thinking("hm"), b.redacted()], ["thinking", "redacted_thinking"]),
        ([{"type": "hologram", "data": "x"}], ["hologram"]),
    ],
)
def test_blocks_of_an_answer_that_were_refused_are_left_out_of_it(blocks, kinds):
    stream = [b.user("go"), b.assistant(*blocks, "yes"), b.withheld([3], kinds), b.user("and?")]

    assert request(*stream)["messages"][1]["content"] == [b.text("yes")]


def test_neither_what_was_said_nor_calls_nor_results_can_be_withheld():
    kinds = ["text", "tool_use", "tool_result"]
    stream = [b.user("go"), b.assistant("I look", b.tool_use("a")), b.result("a", "1")]

    assert request(*stream, b.withheld([2, 3, 4], kinds)) == request(*stream)


def test_the_limit_that_a_server_named_holds_for_its_model():
    assert request(b.user("go"))["max_tokens"] == 1000
    assert request(b.user("go"), b.learned(max_tokens=700))["max_tokens"] == 700
    assert request(b.user("go"), b.learned(max_tokens=7000))["max_tokens"] == 1000
    assert request(b.user("go"), b.learned(context_window=2000))["max_tokens"] == 500
    assert request(b.user("go"), b.learned("other", max_tokens=1))["max_tokens"] == 1000


def test_an_image_that_the_server_fetches_is_one_of_many():
    of_url = {"type": "image", "source": {"type": "url", "url": "https://example.com/a.png"}}

    assert sent(request(b.user("look", *[of_url] * 19, png(3000)))).count("image") == 20
    assert sent(request(b.user("look", *[of_url] * 20, png(3000)))).count("image") == 20


def test_a_document_whose_pages_do_not_show_has_as_many_as_it_says():
    def compressed(pages):
        data = base64.b64encode(b"%%PDF-1.5\n<< /Type /Pages /Count %d >>\n" % pages).decode()
        source = {"type": "base64", "media_type": "application/pdf", "data": data}
        return {"type": "document", "source": source}

    assert "document" in sent(request(b.user("read", compressed(100))))
    assert "document" not in sent(request(b.user("read", compressed(101))))
