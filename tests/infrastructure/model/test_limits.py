"""What a refusal says of limits, in the words of many servers; and what says nothing of them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from infrastructure.model.limits import Limits, limits

OVERFLOWS = [
    ("prompt is too long: 210000 tokens > 200000 maximum", 200000, 210000),
    ("Your request exceeded model token limit: 262144 (requested: 291351)", 262144, 291351),
    ("prompt token count of 9000 exceeds the limit of 8192", 8192, 9000),
    (
        "This model's maximum context length is 8192 tokens. However, you requested 9000 tokens (5000 in the messages, 4000 in the completion). Please reduce the length of the messages or completion.",
        8192,
        9000,
    ),
    (
        "This model's maximum context length is 8192 tokens. However, your messages resulted in 9001 tokens. Please reduce the length of the messages.",
        8192,
        9001,
    ),
    (
        "input length and `max_tokens` exceed context limit: 190000 + 20000 > 200000, decrease input length or `max_tokens` and try again",
        200000,
        210000,
    ),
    ("Input is too long for requested model.", None, None),
    (
        "The input token count (1200000) exceeds the maximum number of tokens allowed (1048576).",
        1048576,
        1200000,
    ),
    (
        {
            "error": {
                "code": 400,
                "message": "the request exceeds the available context size, try increasing it",
                "type": "exceed_context_size_error",
                "n_prompt_tokens": 9211,
                "n_ctx": 4096,
            }
        },
        4096,
        9211,
    ),
    (
        "request (9211 tokens) exceeds the available context size (4096 tokens), try increasing it",
        4096,
        9211,
    ),
    (
        "Input validation error: `inputs` tokens + `max_new_tokens` must be <= 4096. Given: 5000 `inputs` tokens and 20 `max_new_tokens`",
        4096,
        5000,
    ),
    (
        "This model's maximum prompt length is 131072 but the request contains 537812 tokens.",
        131072,
        537812,
    ),
    # Nothing in these says that it is too long: the numbers do.
    ("Input of 52000 tokens cannot be processed, window size 32768", 32768, 52000),
    ("The request has 70000 tokens; this deployment accepts 65536", 65536, 70000),
    ("You have sent 300000 tokens. Limit: 256000.", 256000, 300000),
    ("model context is 16k, prompt needs 20k", 16000, 20000),
    ("KV cache is full: the prompt needs 9000 cells, 8192 available", 8192, 9000),
    ("Context limit reached: 140,512 of 131,072", 131072, 140512),
    ("请求的 token 总数 40000 超过了模型的上下文窗口 32768", 32768, 40000),
    ("Please reduce the length of the messages or completion.", None, None),
    (
        "Prompt contains 33000 tokens and 0 draft tokens, too large for model with 32768 maximum context length",
        32768,
        33000,
    ),
    ("Range of input length should be [1, 30720]", 30720, None),
    ("输入长度超过最大限制 8192 tokens", 8192, None),
    (
        "The number of tokens to keep from the initial prompt is greater than the context length",
        None,
        None,
    ),
    ("input length exceeds maximum context length", None, None),
    (
        "Requested token count exceeds the model's maximum context length of 32768 tokens. You requested a total of 40000 tokens: 39000 tokens from the input messages and 1000 tokens for the completion.",
        32768,
        40000,
    ),
    ("conversation is too long: 250,000 tokens, the limit is 200,000", 200000, 250000),
    ("too many tokens: total of 140000 tokens exceeds 131072", 131072, 140000),
    ("context_length_exceeded", None, None),
    (
        "'max_tokens' or 'max_completion_tokens' is too large: 30000. This model's maximum context length is 32768 tokens and your request has 5000 input tokens (30000 > 32768 - 5000).",
        32768,
        None,
    ),
    (
        {
            "type": "error",
            "error": {
                "type": "invalid_request_error",
                "message": "Bad",
                "details": {"error_code": "context_length_exceeded"},
            },
        },
        None,
        None,
    ),
    ("model_context_window_exceeded", None, None),
    ("The prompt (10240 tokens) does not fit into the context window (8192)", 8192, 10240),
    (
        "Your input exceeds the context window of this model. Please adjust your input and try again.",
        None,
        None,
    ),
    ("tokens in request more than max tokens allowed: 9000 > 8192", 8192, 9000),
    ("Request too large: 9000 tokens, maximum 8192", 8192, 9000),
    ("tokens 数量超限，最大支持 8k", 8000, None),
    ("prompt is too long: 1.2M tokens > 1M maximum", 1_000_000, 1_200_000),
    ("the context window is 200k tokens, the request has 210k tokens", 200_000, 210_000),
    ("This model's maximum context length is 8\u202f192 tokens; your prompt is longer", 8192, None),
    ("`inputs` must have less than 1000 tokens. Given: 1200", 1000, 1200),
    ("prompt too long; exceeded max context length by 2122 tokens", None, None),
    (
        "model_max_prompt_tokens_exceeded: prompt token count of 150000 exceeds the limit of 128000",
        128_000,
        150_000,
    ),
    (
        "The sum of prompt length (30000.0), query length (0) should not exceed max_num_tokens (8192)",
        8192,
        30_000,
    ),
    ("The prompt is too large: 12345 tokens, but only 8192 are available.", 8192, 12345),
    ("prompt tokens (9000) + max_tokens (16384) exceeds 8192 max_model_len", 8192, 9000),
    ("the sum of input length 40000 and max_tokens 16384 is beyond 32768", 32768, 40000),
    ("prompt is too long: only 8192 tokens are available", 8192, None),
    ("prompt is too long: the limit is 16384 tokens", 16384, None),
    ("The prompt is too large: 40000000 bytes, the limit is 33554432 bytes", None, None),
    ({"message": "prompt too long", "context_length": 8192, "requested_tokens": 9000}, 8192, 9000),
    ({"message": "prompt too long", "max_model_len": 8192, "prompt_tokens": 9000}, 8192, 9000),
    (
        {
            "message": "the request exceeds the available context size",
            "prompt_tokens": 9000,
            "max_model_len": 8192,
        },
        8192,
        9000,
    ),
    (
        {"code": "context_length_exceeded", "message": "max_tokens is too large: 30000 > 8192"},
        8192,
        30000,
    ),
]
"""What was said, the window that it names, and how long the request was."""

TOO_LONG_ANSWERS = [
    (
        "max_tokens: 16384 > 8192, which is the maximum allowed number of output tokens for claude-3-5-sonnet",
        8192,
    ),
    (
        "`max_tokens` must be less than or equal to `8192`, the maximum value for `max_tokens` is less than the `context_window` for this model",
        8192,
    ),
    (
        "max_tokens is too large: 16384. This model supports at most 4096 completion tokens, whereas you provided 16384.",
        4096,
    ),
    ("Invalid max_tokens value, the valid range of max_tokens is [1, 8192]", 8192),
    ("Range of max_tokens should be [1, 8192]", 8192),
    (
        "Invalid 'max_tokens': integer above maximum value. Expected a value <= 4096, but got 16384 instead.",
        4096,
    ),
    (
        "The maximum tokens you requested exceeds the model limit of 4096. Try again with a maximum tokens value that is less than 4096.",
        4096,
    ),
    (
        "Unable to submit request because it has a maxOutputTokens value of 16384 but the supported range is from 1 (inclusive) to 8193 (exclusive). Update the value and try again.",
        8192,
    ),
    ("max_tokens must be at most 8192", 8192),
    (
        {
            "detail": [
                {
                    "type": "less_than_equal",
                    "loc": ["body", "max_tokens"],
                    "msg": "Input should be less than or equal to 8192",
                    "input": 16384,
                    "ctx": {"le": 8192},
                }
            ]
        },
        8192,
    ),
    ("max_tokens (16384) exceeds the model's limit of 8192", 8192),
    ("max_tokens: 16,384 > 8,192", 8192),
    ("16384 is above the maximum number of output tokens (8192)", 8192),
    ("max_tokens cannot exceed 8192", 8192),
    ("max_tokens should not be greater than 8192, got 16384", 8192),
    ({"message": "max_tokens is too large", "maximum": 8192}, 8192),
]
OTHER_REFUSALS = [
    "max_tokens must be greater than thinking.budget_tokens",
    "messages.0.content.1.image.source.base64: image exceeds 5 MB maximum: 6000000 bytes > 5242880 bytes",
    "A maximum of 100 PDF pages may be provided.",
    "tools.0.name: String should have at most 64 characters",
    "messages: text content blocks must be non-empty",
    "This request would exceed your organization's rate limit of 30,000 input tokens per minute",
    "Your credit balance is too low to access the Anthropic API.",
    "Could not process image",
    "max_tokens: Field required",
    "max_tokens must be at least 1024",
    "max_completion_tokens (16384) and max_tokens (32000) cannot both be set",
    "This document takes 9000 tokens; 4096 are allowed",
    "Limit 30000 tokens per minute, requested 40000",
    "E5001: 3000 of 2000",
    "max_tokens: Input should be greater than or equal to 1",
    "tool_use ids were found without tool_result blocks",
    "messages.1.content.0.thinking: signature is invalid",
    "no such thing",
    "model: nope",
    "temperature: range: 0..1",
    "system: text content blocks must contain non-whitespace text",
    "messages: roles must alternate between user and assistant",
    "messages: first message must use the user role",
    "prompt_caching: A maximum of 4 blocks with cache_control may be provided. Found 5.",
    "This model does not support assistant message prefill. The conversation must end with a user message.",
]


@pytest.mark.parametrize("status", [400, 413, 422, 500, None])
@pytest.mark.parametrize(("said", "window", "requested"), OVERFLOWS)
def test_an_overflow_is_recognised_by_what_it_means(said, window, requested, status):
    named = limits(said, status=status, asked_for=16384)

    assert named.is_overflow
    assert (named.context_window, named.requested_tokens) == (window, requested)


@pytest.mark.parametrize(("said", "most"), TOO_LONG_ANSWERS)
def test_the_longest_answer_that_is_allowed_is_taken_from_the_words(said, most):
    assert limits(said, status=400, asked_for=16384) == Limits(max_tokens=most)


@pytest.mark.parametrize("said", OTHER_REFUSALS)
def test_what_is_refused_for_other_reasons_names_no_limit(said):
    assert limits(said, status=400, asked_for=16384) == Limits()


@pytest.mark.parametrize(
    "body",
    [
        {"error": {"message": "Bad", "details": {"reason": "prompt is too long: 9 > 8 tokens"}}},
        {"detail": [{"loc": ["body"], "msg": "context length exceeded"}]},
        {"error": "context_length_exceeded"},
        "<html><body>input exceeds the maximum context length</body></html>",
    ],
)
def test_it_may_stand_anywhere_in_the_response(body):
    assert limits(body, status=400).is_overflow


@given(
    words=st.permutations(["granted", "was asked to handle", "tokens", "here", "model"]),
    window=st.integers(256, 2_000_000),
    more=st.integers(1, 2_000_000),
    is_window_first=st.booleans(),
)
def test_two_counts_of_tokens_are_a_window_and_a_longer_request(
    words, window, more, is_window_first
):
    """In whatever words: a refusal of the request names what was sent, and what fits."""
    counts = [str(window), str(window + more)]
    first, second = counts if is_window_first else counts[::-1]
    said = " ".join([*words[:2], first, *words[2:], second])

    found = limits(said, status=400, asked_for=16384)

    assert found == Limits(True, window, window + more)


@pytest.mark.parametrize("status", [401, 403, 404, 429])
@pytest.mark.parametrize(
    "said", ["too many input tokens: the limit is 30000", "40000 tokens came, 30000 are allowed"]
)
def test_a_refusal_of_another_status_is_no_overflow(said, status):
    assert not limits(said, status=status).is_overflow


def test_too_many_bytes_are_too_long_a_request_in_whatever_words():
    assert limits("Payload Too Large", status=413) == Limits(is_overflow=True)


def test_a_limit_of_a_minute_that_no_waiting_raises_is_no_window():
    said = "Request too large on tokens per minute (TPM): Limit 6000, Requested 8000"

    assert limits(said, status=413) == Limits(is_overflow=True)


@pytest.mark.parametrize("number", ["9" * 5000, "9" * 5000 + " + 1"])
def test_a_number_without_measure_is_none(number):
    named = limits(f"prompt is too long: {number} > {number} tokens", status=400, asked_for=9)

    assert named == Limits(is_overflow=True)


def test_a_limit_above_what_was_asked_for_changes_nothing():
    said = "max_tokens must be less than or equal to 32000"

    assert limits(said, status=400, asked_for=16384) == Limits()
