"""The one reading of messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.messages import (
    ToolUseBlock,
    blocks_of,
    result_text,
    tool_result_message,
    user_message,
)
from tests import builders as b
from tests.strategies import assistant_blocks, user_blocks


@pytest.mark.parametrize("content", [None, 3, {}, True])
def test_content_that_is_no_list_is_no_blocks(content):
    assert blocks_of(content) == []


def test_content_may_be_a_string():
    assert blocks_of("hi") == [b.text("hi")]


def test_a_message_tells_its_text_calls_and_results():
    blocks = [
        b.text("a"), b.tool_use("x"), b.text("b"), b.tool_result("y"), b.tool_use("z"), None, "w", {},
        {"type": "text"}, {"type": "tool_use", "id": "v", "name": "x", "input": [1]}, {"type": 3},
        {"type": "tool_result", "tool_use_id": 1}, {"type": "hologram"},
    ]  # fmt: skip
    content = b.message({"role": "assistant", "content": blocks}, parent=None).content

    assert (content.text, content.prompt) == ("a\nb", "a")
    assert content.tool_uses == [b.tool_use("x"), b.tool_use("z")]
    assert content.tool_results == [b.tool_result("y")]
    assert (content.role, content.blocks, content.is_readable) == ("assistant", blocks, True)


@pytest.mark.parametrize("body", [[1], {"role": "tool", "content": "x"}, {"content": []}, None])
@pytest.mark.parametrize(("model", "role"), [(None, "user"), (b.MODEL, "assistant")])
def test_a_message_that_makes_no_sense_is_shown_as_its_bytes(body, model, role):
    event = b.message(body, parent=None, model=model)

    shown = f"(unreadable: {bytes(event.message).decode()})"
    assert event.content == (role, [b.text(shown)], False)


@given(st.lists(assistant_blocks | user_blocks))
def test_any_blocks_come_back_as_they_are(blocks):
    content = b.message({"role": "user", "content": blocks}, parent=None).content

    assert content.blocks == blocks
    assert all(raw in blocks for raw in (*content.tool_uses, *content.tool_results))


def test_a_call_tells_its_id_its_tool_and_its_input():
    call = ToolUseBlock(b.tool_use("a", "bash", command="ls") | {"caller": {"type": "direct"}})

    assert (call.id, call.name, call.input) == ("a", "bash", {"command": "ls"})
    assert call.raw["caller"] == {"type": "direct"}


@pytest.mark.parametrize(
    ("content", "text"),
    [("x", "x"), ([b.text("a"), b.image(), 3], "a\n[image]"), (None, ""), ({"a": 1}, ""), ([], "")],
)
def test_a_result_of_any_content_has_a_text(content, text):
    assert result_text(content) == text


def test_what_a_user_and_a_tool_say_has_the_form_of_the_api():
    assert user_message("hi") == {"role": "user", "content": [b.text("hi")]}
    assert tool_result_message("a", "x", is_error=False)["content"] == [b.tool_result("a", "x")]
    assert tool_result_message("a", "x", is_error=True)["content"] == [
        b.tool_result("a", "x", is_error=True)
    ]
