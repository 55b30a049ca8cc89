"""The typed view of messages."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.messages import (
    Block,
    Message,
    TextBlock,
    ThinkingBlock,
    ToolResultBlock,
    ToolUseBlock,
    block,
    blocks_of,
    tool_result_message,
    user_message,
)
from domain.raw_messages import Said
from tests import builders as b
from tests.strategies import assistant_blocks, user_blocks


@pytest.mark.parametrize(
    ("raw", "kind"),
    [
        (b.text("x"), TextBlock), (b.thinking("x"), ThinkingBlock), (b.tool_use("a"), ToolUseBlock),
        (b.tool_result("a"), ToolResultBlock), ({"type": "hologram"}, Block), ({"type": "text"}, Block),
        ({"type": "tool_use", "id": "a", "name": "x", "input": [1]}, Block), ({"type": 3}, Block),
        ({}, Block), ("x", Block), (None, Block),
    ],
)  # fmt: skip
def test_a_block_has_the_class_of_its_type_if_it_has_its_shape(raw, kind):
    assert type(block(raw)) is kind


@given(assistant_blocks | user_blocks)
def test_a_view_of_any_block_keeps_every_key(raw):
    dumped = block(raw).model_dump()

    assert dumped.keys() >= (raw.keys() if isinstance(raw, dict) else {"value"})


@given(st.lists(assistant_blocks | user_blocks))
def test_what_is_shown_is_what_the_typed_view_says(blocks):
    said, view = Said("user", blocks), Message(role="user", content=blocks)

    assert said.text == view.text
    assert [call["id"] for call in said.tool_uses] == [call.id for call in view.tool_uses]
    assert [each["tool_use_id"] for each in said.tool_results] == [
        result.tool_use_id for result in view.tool_results
    ]


@pytest.mark.parametrize("content", [None, 3, {}, True])
def test_content_that_is_no_list_is_no_blocks(content):
    assert blocks_of(content) == []


def test_content_may_be_a_string():
    assert blocks_of("hi") == [b.text("hi")]
    assert Message.model_validate({"role": "user", "content": "hi"}).text == "hi"


def test_a_message_tells_its_text_calls_and_results():
    message = Message.model_validate(
        {
            "role": "assistant",
            "content": [
                b.text("a"),
                b.tool_use("x"),
                b.text("b"),
                b.tool_result("y"),
                b.tool_use("z"),
            ],
        }
    )

    assert message.text == "a\nb"
    assert [call.id for call in message.tool_uses] == ["x", "z"]
    assert [result.tool_use_id for result in message.tool_results] == ["y"]


@pytest.mark.parametrize(
    ("content", "text"),
    [("x", "x"), ([b.text("a"), b.image(), 3], "a\n[image]"), (None, ""), ({"a": 1}, ""), ([], "")],
)
def test_a_result_of_any_content_has_a_text(content, text):
    assert block(b.tool_result("a", content)).text == text


def test_what_a_user_and_a_tool_say_has_the_form_of_the_api():
    assert user_message("hi") == {"role": "user", "content": [b.text("hi")]}
    assert tool_result_message("a", "x", is_error=False)["content"] == [b.tool_result("a", "x")]
    assert tool_result_message("a", "x", is_error=True)["content"] == [
        b.tool_result("a", "x", is_error=True)
    ]
