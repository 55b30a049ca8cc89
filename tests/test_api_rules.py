"""Every rule of `api_rules` has a request that breaks it and a request that keeps it."""

import ast
import base64
import copy
import io
from pathlib import Path

import PIL.Image
import pytest

from tests import api_rules
from tests.api_rules import prefix_violations, violations

TOOL = {"name": "bash", "description": "runs", "input_schema": {"type": "object", "properties": {}}}
PNG = {"type": "base64", "media_type": "image/png", "data": "iVBORw0KGgo="}
TEXT = {"type": "text", "text": "x"}
THINKING = {"type": "thinking", "thinking": "", "signature": "s"}
EPHEMERAL = {"type": "ephemeral"}


def user(*content):
    return {"role": "user", "content": list(content)}


def assistant(*content):
    return {"role": "assistant", "content": list(content)}


def use(call_id, **more):
    return {"type": "tool_use", "id": call_id, "name": "bash", "input": {}, **more}


def result(call_id, **more):
    return {"type": "tool_result", "tool_use_id": call_id, **more}


def picture(width):
    data = io.BytesIO()
    PIL.Image.new("1", (width, 1)).save(data, "PNG")
    return base64.b64encode(data.getvalue()).decode()


def image(**source):
    return {"type": "image", "source": {**PNG, **source}}


def document(**source):
    return {"type": "document", "source": source}


def body(*messages, **more):
    return {
        "model": "claude-sonnet-5-5",
        "max_tokens": 4096,
        "messages": list(messages) or [user(TEXT)],
        **more,
    }


def said(*blocks):
    """A conversation in which the assistant said *blocks*."""
    return body(user(TEXT), assistant(*blocks), user(TEXT))


def answered(*results, calls=("a",)):
    """A conversation in which *calls* are answered by a message of *results*."""
    return body(user(TEXT), assistant(*map(use, calls)), user(*results))


def returned(**more):
    """A conversation in which one call has a result of these keys."""
    return answered(result("a", **more))


GOOD = {
    "a prompt": body(),
    "a string as content": body({"role": "user", "content": "hi"}),
    "everything": body(
        user(TEXT, image()),
        assistant(THINKING, {"type": "redacted_thinking", "data": "d"}, TEXT, use("a"), use("b")),
        user(result("a", content="x", is_error=True), result("b", content=[TEXT, image()]), TEXT),
        assistant(TEXT),
        user(TEXT),
        system="be good",
        tools=[TOOL, {"type": "bash_20250124", "name": "bash2"}],
        tool_choice={"type": "auto"},
        thinking={"type": "adaptive", "display": "omitted"},
        output_config={"effort": "max"},
        cache_control={**EPHEMERAL, "ttl": "1h"},
        stream=True,
        metadata={"user_id": "u"},
        stop_sequences=["x"],
    ),
    "system blocks": body(system=[{**TEXT, "cache_control": EPHEMERAL}]),
    "a forced tool": body(tools=[TOOL], tool_choice={"type": "tool", "name": "bash"}),
    "thinking off": body(thinking={"type": "disabled"}),
    "a thinking budget": body(thinking={"type": "enabled", "budget_tokens": 1024}),
    "an empty result": returned(),
    "an empty result text": returned(content=""),
    "a result of blanks": returned(content=[{"type": "text", "text": " \n"}]),
    "three results in call order": answered(*map(result, "cab"), calls="cab"),
    "an unknown block, sent back": said({"type": "hologram", "data": 3}),
    "an unknown key, sent back": said({**TEXT, "shape": "round"}),
    "a null inside a call's input": body(
        user(TEXT), assistant(use("a", input={"x": None, "y": [None]})), user(result("a"))
    ),
    "a tool that is no longer offered": returned(content="x"),
    "an image by url": body(user({"type": "image", "source": {"type": "url", "url": "https://x/y"}})),
    "an image by file": body(user({"type": "image", "source": {"type": "file", "file_id": "f"}})),
    "documents": body(
        user(
            document(type="text", media_type="text/plain", data="x"),
            document(type="base64", media_type="application/pdf", data="aGk="),
            document(type="file"),
        )
    ),
    "an emoji and a line separator": body(user({"type": "text", "text": "\U0001f600\u2028"})),
    "four breakpoints": body(*[user({**TEXT, "cache_control": EPHEMERAL}) for _ in range(1)]
        , system=[{**TEXT, "cache_control": EPHEMERAL}] * 2, cache_control=EPHEMERAL),
    "a long call id": answered(result("a" * 128), calls=["a" * 128]),
}  # fmt: skip

BAD = [
    # The request.
    ("is not an object", []),
    ("temperature: unknown parameter", body(temperature=1)),
    ("model", body(model="")),
    ("model", body(model=None)),
    ("model", body(model=" ")),
    ("max_tokens", body(max_tokens=0)),
    ("max_tokens", body(max_tokens=1.0)),
    ("max_tokens", body(max_tokens=True)),
    ("stream", body(stream="yes")),
    ("metadata", body(metadata="me")),
    ("stop_sequences", body(stop_sequences="x")),
    ("stop_sequences", body(stop_sequences=[" "])),
    # Values.
    ("lone surrogate", body({"role": "user", "content": "\ud83d"})),
    ("lone surrogate", said(use("a", input={"x": ["\udc00"]}))),
    ("lone surrogate", said(use("a", input={"\udc00": 1}))),
    ("lone surrogate", said({**THINKING, "thinking": "\ud83d"})),
    ("lone surrogate", body(system="\ud83d")),
    ("which JSON does not have", said(use("a", input={"x": float("nan")}))),
    ("which JSON does not have", said(use("a", input={"x": [float("-inf")]}))),
    ("which JSON does not have", said(use("a", input={"x": b"bytes"}))),
    ("which JSON does not have", said(use("a", input={"x": (1, 2)}))),
    ("is not a string", said(use("a", input={1: 2}))),
    # System and tools.
    ("system: is blank", body(system="")),
    ("system: is blank", body(system=" \n")),
    ("system", body(system=None)),
    ("system", body(system=[])),
    ("system.0", body(system=["x"])),
    ("system.0", body(system=[image()])),
    ("system.0.text: is blank", body(system=[{"type": "text", "text": ""}])),
    ("tools: is not a list", body(tools=TOOL)),
    ("tools.0", body(tools=["bash"])),
    ("tools.0.name", body(tools=[{**TOOL, "name": "a b"}])),
    ("tools.0.name", body(tools=[{**TOOL, "name": "a" * 129}])),
    ("tools.0.name", body(tools=[{**TOOL, "name": None}])),
    ("tools.1.name: 'bash' is not unique", body(tools=[TOOL, TOOL])),
    ("tools.0.input_schema", body(tools=[{"name": "bash"}])),
    ("tools.0.input_schema", body(tools=[{**TOOL, "input_schema": {"type": "array"}}])),
    ("tools.0.description", body(tools=[{**TOOL, "description": 1}])),
    ("tool_choice", body(tools=[TOOL], tool_choice="auto")),
    ("tool_choice", body(tools=[TOOL], tool_choice={"type": "some"})),
    ("along with tools", body(tool_choice={"type": "auto"})),
    ("not offered", body(tools=[TOOL], tool_choice={"type": "tool", "name": "x"})),
    (
        "forces a tool",
        body(
            tools=[TOOL],
            tool_choice={"type": "any"},
            thinking={"type": "enabled", "budget_tokens": 1024},
        ),
    ),
    # Thinking and effort.
    ("thinking", body(thinking=None)),
    ("thinking", body(thinking={"type": "on"})),
    ("thinking.budget_tokens", body(thinking={"type": "enabled"})),
    ("thinking.budget_tokens", body(thinking={"type": "enabled", "budget_tokens": 1023})),
    ("thinking.budget_tokens", body(thinking={"type": "enabled", "budget_tokens": 4096})),
    ("thinking.budget_tokens", body(thinking={"type": "adaptive", "budget_tokens": 2000})),
    ("thinking.display", body(thinking={"type": "adaptive", "display": "loud"})),
    ("output_config", body(output_config="high")),
    ("output_config.effort", body(output_config={"effort": "minimal"})),
    ("output_config.effort", body(output_config={"effort": None})),
    ("output_config.speed", body(output_config={"speed": 1})),
    # Cache breakpoints.
    ("5 breakpoints", body(user(*[{**TEXT, "cache_control": EPHEMERAL}] * 5))),
    ("cache_control", body(cache_control={"type": "eternal"})),
    ("cache_control", body(cache_control={**EPHEMERAL, "ttl": "2h"})),
    ("cache_control", body(tools=[{**TOOL, "cache_control": {**EPHEMERAL, "x": 1}}])),
    ("on a thinking block", said({**THINKING, "cache_control": EPHEMERAL}, TEXT)),
    ("cache_control", returned(content=[{**TEXT, "cache_control": "x"}])),
    # Messages and roles.
    ("messages: is not a non-empty list", {**body(), "messages": []}),
    ("messages: is not a non-empty list", {**body(), "messages": None}),
    ("messages.0: is not an object", {**body(), "messages": ["hi"]}),
    ("unknown key", body({"role": "user", "content": "hi", "id": 1})),
    ("neither user nor assistant", body(user(TEXT), {"role": "system", "content": "x"}, user(TEXT))),
    ("the first message is not the user's", body(assistant(TEXT), user(TEXT))),
    ("two user messages in a row", body(user(TEXT), user(TEXT))),
    ("two assistant messages in a row", body(user(TEXT), assistant(TEXT), assistant(TEXT), user(TEXT))),
    ("the last message is not the user's", body(user(TEXT), assistant(TEXT))),
    # Content.
    ("the content is blank", body({"role": "user", "content": ""})),
    ("the content is blank", body({"role": "user", "content": " \n"})),
    ("the content is neither", body({"role": "user"})),
    ("the content is neither", body({"role": "user", "content": None})),
    ("the content is neither", body(user())),
    ("the content is neither", said()),
    ("is not an object with a type", body(user("hi"))),
    ("is not an object with a type", body(user({"text": "hi"}))),
    ("0.0.text: is blank", body(user({"type": "text", "text": ""}))),
    ("1.0.text: is blank", said({"type": "text", "text": "\n\n"})),
    ("0.0.text: is not a string", body(user({"type": "text"}))),
    ("is null", said({**TEXT, "citations": None})),
    ("is null", body(user(TEXT), assistant(use("a", caller=None)), user(result("a")))),
    ("a hologram block in a user message", body(user({"type": "hologram"}))),
    ("a tool_use block in a user message", body(user(use("a")))),
    ("a thinking block in a user message", body(user(THINKING, TEXT))),
    ("a tool_result block in an assistant message", said(result("a"), TEXT)),
    ("a image block in an assistant message", said(image())),
    ("is unknown in a text block", body(user({**TEXT, "id": 1}))),
    ("is unknown in a tool_result block", returned(tool_name="bash")),
    ("nothing but thinking", said(THINKING)),
    ("nothing but thinking", said(THINKING, {"type": "redacted_thinking", "data": "d"})),
    ("signature", said({**THINKING, "signature": ""}, TEXT)),
    ("signature", said({"type": "thinking", "thinking": "x"}, TEXT)),
    ("thinking: is not a string", said({"type": "thinking", "signature": "s"}, TEXT)),
    ("data", said({"type": "redacted_thinking", "data": ""}, TEXT)),
    # Images and documents.
    ("'image/bmp' is none of", body(user(image(media_type="image/bmp")))),
    ("not base64", body(user(image(data="no base64!")))),
    ("not base64", body(user(image(data="é")))),
    ("not base64", body(user(image(data="")))),
    ("not base64", body(user(image(data="abc")))),
    ("not base64", returned(content=[image(data=None)])),
    ("the url is none", body(user(image(type="url", url="file:///x")))),
    ("no source of an image", body(user({"type": "image"}))),
    ("no source of an image", body(user(image(type="disk")))),
    ("has more than 5 MB", body(user(image(data="AAAA" * (5 * 2**18 + 1))))),
    ("is larger than 8000 pixels", body(user(image(data=picture(8001))))),
    ("larger than 2000 pixels, with 21", body(user(*[image(data=picture(2001))] * 21))),
    ("larger than 8000 pixels", returned(content=[image(data=picture(8001))])),
    ("101 media, at most 100", body(user(*[image()] * 101))),
    ("is no PDF", body(user(document(type="base64", media_type="text/html", data="aGk=")))),
    ("has not the keys", body(user(document(type="text", data="x")))),
    ("citations: is not a list", said({**TEXT, "citations": 5})),
    ("caller: is not an object", said({**use("a"), "caller": 5})),
    ("name: is missing", said({"type": "server_tool_use", "id": "s", "input": {}})),
    ("content: is missing", said({"type": "web_search_tool_result", "tool_use_id": "s"})),
    ("id: is not of type str", said({"type": "hologram", "id": 5})),
    ("no source of a document", body(user(document(type="disk")))),
    ("not base64", body(user(document(type="base64", data="!")))),
    ("the data is blank", returned(content=[document(type="text", data=" ")])),
    # Calls.
    ("'functions.bash:0' does not match", answered(result("functions.bash:0"), calls=["functions.bash:0"])),
    ("does not match", answered(result("a\n"), calls=["a\n"])),
    ("does not match", answered(result(""), calls=[""])),
    ("does not match", answered(result("a" * 129), calls=["a" * 129])),
    ("name", body(user(TEXT), assistant(use("a", name="a b")), user(result("a")))),
    ("input: is not an object", body(user(TEXT), assistant(use("a", input="{}")), user(result("a")))),
    ("is not unique", answered(result("a"), calls="aa")),
    (
        "is not unique",
        body(*(message for _ in "12" for message in (*answered(result("a"))["messages"], assistant(TEXT))), user(TEXT)),
    ),
    # Results.
    ("is_error", returned(is_error="yes")),
    ("is_error", returned(is_error=None)),
    ("is empty although is_error", returned(is_error=True)),
    ("is empty although is_error", returned(is_error=True, content="")),
    ("neither a string nor", returned(content=[])),
    ("neither a string nor", returned(content={"type": "text"})),
    ("no block that a tool result may hold", returned(content=["x"])),
    ("no block that a tool result may hold", returned(content=[THINKING])),
    ("0.text: is not a non-empty string", returned(content=[{"type": "text", "text": ""}])),
    # Pairs.
    ("the call 'a' has no result", answered(TEXT)),
    ("the call 'b' has no result", answered(result("a"), calls="ab")),
    ("the call 'a' has no result", body(user(TEXT), assistant(use("a")))),
    ("the call 'a' has no result", body(user(TEXT), assistant(use("a")), assistant(TEXT), user(result("a")))),
    ("the call 'a' has no result", body(user(TEXT), assistant(use("a")), user(TEXT), assistant(TEXT), user(result("a")))),
    ("answers no call", body(user(result("a")))),
    ("answers no call", answered(result("a"), result("b"))),
    ("answers no call", body(*answered(result("a"))["messages"], assistant(TEXT), user(result("a")))),
    ("answered more than once", answered(result("a"), result("a"))),
    ("do not come first", answered(TEXT, result("a"))),
    ("do not come first", answered(result("a"), TEXT, result("b"), calls="ab")),
    ("not in call order", answered(result("b"), result("a"), calls="ab")),
]  # fmt: skip


@pytest.mark.parametrize("request_", GOOD.values(), ids=GOOD)
def test_a_request_that_keeps_the_rules(request_):
    before = copy.deepcopy(request_)

    assert violations(request_) == []
    assert request_ == before


@pytest.mark.parametrize(
    ("words", "request_"), BAD, ids=[f"{n}-{words}" for n, (words, _) in enumerate(BAD)]
)
def test_a_request_that_breaks_a_rule(words, request_):
    assert any(words in violation for violation in violations(request_)), violations(request_)


@pytest.mark.parametrize(
    "junk", [None, 1, "x", [], {}, [None], {"type": None}, {"content": [None, {}]}]
)
def test_no_junk_makes_the_rules_themselves_fail(junk):
    for key in (
        "model",
        "messages",
        "system",
        "tools",
        "tool_choice",
        "thinking",
        "output_config",
        "cache_control",
    ):
        violations({**body(), key: junk})
    violations(
        {
            **body(),
            "messages": [junk, {"role": "user", "content": junk}, user(junk), assistant(junk)],
        }
    )
    for key in (
        "type",
        "text",
        "id",
        "tool_use_id",
        "content",
        "source",
        "cache_control",
        "input",
        "name",
    ):
        for block in (TEXT, use("a"), result("a"), image(), THINKING):
            violations(said({**block, key: junk}))
            violations(body(user({**block, key: junk})))


def test_the_rules_import_nothing_of_the_product():
    tree = ast.parse(Path(api_rules.__file__).read_text(encoding="utf-8"))
    imported = {
        name.split(".")[0]
        for node in ast.walk(tree)
        if isinstance(node, ast.Import | ast.ImportFrom)
        for name in (
            [node.module]
            if isinstance(node, ast.ImportFrom)
            else [alias.name for alias in node.names]
        )
    }

    assert imported == {
        "PIL", "base64", "binascii", "contextlib", "io", "json", "math", "re",
    }  # fmt: skip


# Prefixes.


def test_a_request_that_appends_extends():
    before = body({"role": "user", "content": "hi"}, system="s", tools=[TOOL])
    marked = {"type": "text", "text": "hi", "cache_control": EPHEMERAL}

    for messages in (
        [user(marked)],
        [user(marked, TEXT)],
        [user(marked), assistant(TEXT), user(TEXT)],
    ):
        assert (
            prefix_violations(
                before, body(*messages, system="s", tools=[{**TOOL, "cache_control": EPHEMERAL}])
            )
            == []
        )


@pytest.mark.parametrize(
    ("words", "after"),
    [
        ("block 0", body(user({"type": "text", "text": "y"}), assistant(TEXT), user(TEXT))),
        ("block 1", body(user(TEXT, TEXT))),
        ("block 1", body(user(TEXT), assistant(use("a", input={"y": 1, "x": 1})))),
        ("block 1", body(user(TEXT), assistant(use("a", input={"x": True, "y": 1})))),
        ("blocks: 2 became 1", body(user(TEXT))),
        ("system: differs", body(user(TEXT), assistant(use("a", input={"x": 1, "y": 1})), system="s")),
        ("tools: differs", body(user(TEXT), assistant(use("a", input={"x": 1, "y": 1})), tools=[TOOL])),
    ],
)  # fmt: skip
def test_a_request_that_changes_the_past_does_not_extend(words, after):
    before = body(user(TEXT), assistant(use("a", input={"x": 1, "y": 1})))

    (violation,) = prefix_violations(before, after)

    assert violation.startswith(words)
