"""A refusal of a field of the request blames the field, in whatever words, and no content."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from domain.projections.context import context
from domain.refused_fields import refused_field
from domain.suspicion import suspects
from tests import builders as b

TALK = b.conversation(
    b.model("claude-opus-4-6", caching=True), b.instructions(), b.thinking_level("low"),
    b.user("look", b.image()),
    b.assistant(b.thinking("hm"), b.tool_use("t"), model="claude-opus-4-6"),
    b.result("t", [b.text("a dot"), b.image()]),
)  # fmt: skip
REQUEST = context(TALK, TALK.leaf)


@pytest.mark.parametrize(
    ("words", "field"),
    [
        ("cache_control: Extra inputs are not permitted", "cache_control"),
        ("strict: Extra inputs are not permitted", "strict"),
        ("context_management: Extra inputs are not permitted", "context_management"),
        ("thinking: Extra inputs are not permitted", "thinking"),
        ("body.thinking: Extra inputs are not permitted", "thinking"),
        ("tools.0.custom.strict: Extra inputs are not permitted", "tools.0.custom.strict"),
        ("tools.0.custom.input_schema: JSON schema is invalid", "tools.0.custom.input_schema"),
        ("thinking.budget_tokens: Input should be greater than 1024", "thinking.budget_tokens"),
        ("Unrecognized request argument supplied: cache_control", "cache_control"),
        ("Unknown parameter: 'tools[0].strict'.", "tools[0].strict"),
        ("Unsupported parameter: 'thinking' is not supported with this model.", "thinking"),
        ("Additional properties are not allowed ('output_config' was unexpected)", "output_config"),
        ('Unknown name "cache_control": Cannot find field.', "cache_control"),
        ("Malformed input request: #: extraneous key [cache_control] is not permitted", "cache_control"),
        ("#/tools/0: extraneous key [strict] is not permitted", "tools/0"),
        ("create() got an unexpected keyword argument 'thinking'", "thinking"),
        ("xai does not support parameters: ['thinking'], for model=grok", "thinking"),
        ('json: unknown field "system"', "system"),
        ("unknown field `output_config`, expected one of `model`, `messages`", "output_config"),
        ("Unrecognized key(s) in object: 'fast_mode'", "fast_mode"),
        ("This model doesn't support tool use.", "tools"),
        ("adaptive thinking is not supported on this model", "thinking"),
        ("不支持的参数: thinking", "thinking"),
    ],
)  # fmt: skip
def test_the_field_is_named(words, field):
    assert refused_field(REQUEST, f"the API refused the request (HTTP 400: {words})") == field


@pytest.mark.parametrize(
    "words",
    [
        "Could not process image",
        "messages.0.content.1.image.source.base64.data: not what its media type says",
        "messages.1.content.0.thinking: Extra inputs are not permitted",
        "messages.1.content.0: Invalid `signature` in `thinking` block",
        "image input is not supported",
        "unknown media type in field 'source'",
        "unsupported value in field 'media_type'",
        "thinking blocks are not supported",
        "Input should be 'text'",
        "Bad Request",
        "the system does not support pictures",
        "模型不支持图片输入",
        "",
    ],
)
def test_content_is_no_field(words):
    assert refused_field(REQUEST, words) is None


def test_names_in_content_are_none_of_a_field_whatever_they_are():
    call = {"type": "tool_use", "input": {"type": ["odd"], "colour": {"type": {"a": 1}}}}
    request = {"messages": [{"role": "assistant", "content": [call]}]}

    assert refused_field(request, "unknown field 'colour'") is None
    assert refused_field(request, "unknown field 'tool_use'") is None
    assert refused_field(request, "unknown field 'shape'") == "shape"


@given(st.text() | st.from_regex(r"(unknown|extra) [a-z_.\[\]'\"]{0,30}"))
def test_any_words_name_one_field_or_none(words):
    field = refused_field(REQUEST, words)
    assert field is None or field in words or field == "tools"


@pytest.mark.parametrize("kind", ["text", "tool_use"])
def test_a_place_that_is_a_text_or_a_call_accuses_no_image(kind):
    index = {"text": "0.content.0", "tool_use": "1.content.1"}[kind]
    words = f"messages.{index}.{kind}.annotations: invalid content"

    assert suspects(TALK, REQUEST, words) is None
