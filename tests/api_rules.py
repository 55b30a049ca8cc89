"""The rules of the Messages API, as strictly as we know them, written from the API's side.

Shares no line with the product and imports nothing of it: two readings of the same rules, or a
test proves nothing. Rules marked (ours) are stricter than the API, because the product keeps them.
"""

import base64
import binascii
import contextlib
import io
import json
import math
import re

import PIL.Image

CALL_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")  # the length is ours
TOOL_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
EFFORTS = ("low", "medium", "high", "xhigh", "max")
KEYS = {
    "model", "max_tokens", "messages", "system", "tools", "tool_choice", "thinking",
    "output_config", "cache_control", "stream", "metadata", "stop_sequences",
}  # fmt: skip
# The keys of what we write ourselves. Blocks of an assistant are the API's own, sent back verbatim.
USER_BLOCKS = {
    "text": {"type", "text", "cache_control", "citations"},
    "image": {"type", "source", "cache_control", "transformations"},
    "document": {"type", "source", "cache_control", "title", "context", "citations"},
    "search_result": {"type", "source", "title", "content", "cache_control", "citations"},
    "container_upload": {"type", "file_id", "cache_control"},
    "tool_result": {"type", "tool_use_id", "content", "is_error", "cache_control", "toolset_name"},
}
RESULT_BLOCKS = ("text", "image", "document", "search_result", "tool_reference", "browser_state")
MAX_BREAKPOINTS = 4
MIN_BUDGET = 1024
MOST_PIXELS, MANY, MANY_PIXELS = 8000, 20, 2000


def violations(request):
    """Return one line for every rule that *request* breaks, each beginning with where."""
    if not isinstance(request, dict):
        return ["request: is not an object"]
    return [
        f"{where}: {what}"
        for rule in (
            _top_level, _values, _system, _tools, _tool_choice, _thinking_parameter, _output_config,
            _cache_control, _roles, _contents, _call_ids, _pairing, _media,
        )
        for where, what in rule(request)
    ]  # fmt: skip


def prefix_violations(previous, request):
    """Return why *request* does not extend *previous*, block by block, by appending alone.

    Where messages are cut, and where cache breakpoints stand, does not matter: the API's prefix
    cache does not see them. Everything else does, the order of keys too.
    """
    found = [
        f"{key}: differs from the previous request"
        for key in ("system", "tools")
        if _plain(previous.get(key)) != _plain(request.get(key))
    ]
    old, new = _flat(previous), _flat(request)
    for number, (before, after) in enumerate(zip(old, new, strict=False)):
        if before != after:
            return [*found, f"block {number}: was {_short(before)}, is {_short(after)}"]
    if len(new) < len(old):
        found.append(f"blocks: {len(old)} became {len(new)}; {_short(old[len(new)])} is missing")
    return found


def _flat(request):
    return [
        (message["role"], _plain(block))
        for message in request["messages"]
        for block in _blocks(message)
    ]


def _plain(value):
    if isinstance(value, dict):
        value = {key: item for key, item in value.items() if key != "cache_control"}
    if isinstance(value, list):
        return "[" + ",".join(map(_plain, value)) + "]"
    return json.dumps(value)


def _short(pair):
    role, text = pair
    return f"{role} {text if len(text) <= 300 else text[:300] + '…'}"


# The request.


def _top_level(request):
    for key in request.keys() - KEYS:
        yield key, "unknown parameter"
    if not isinstance(request.get("model"), str) or not request["model"].strip():
        yield "model", "is not a non-empty string"
    if not _is_int(request.get("max_tokens")) or request["max_tokens"] < 1:
        yield "max_tokens", "is not an integer of 1 or more"
    if "stream" in request and not isinstance(request["stream"], bool):
        yield "stream", "is not a boolean"
    if "metadata" in request and not isinstance(request["metadata"], dict):
        yield "metadata", "is not an object"
    stops = request.get("stop_sequences", [])
    if not isinstance(stops, list) or any(_blank(stop) for stop in stops):
        yield "stop_sequences", "is not a list of non-blank strings"


def _values(request):
    """Only what JSON in UTF-8 can carry."""
    todo = [("request", request)]
    while todo:
        where, value = todo.pop()
        if isinstance(value, dict):
            todo.extend((f"{where}.{key}", item) for key, item in value.items())
            for key in value:
                what = _unsendable(key) if isinstance(key, str) else "is not a string"
                if what:
                    yield f"{where}: the key {key!r}", what
        elif isinstance(value, list):
            todo.extend((f"{where}.{index}", item) for index, item in enumerate(value))
        elif what := _unsendable(value):
            yield where, what


def _unsendable(value):
    if isinstance(value, str):
        lone = not value.isascii() and any("\ud800" <= char <= "\udfff" for char in value)
        return "has a lone surrogate" if lone else None
    if isinstance(value, float):
        return None if math.isfinite(value) else f"is {value}, which JSON does not have"
    if value is None or isinstance(value, int):
        return None
    return f"is a {type(value).__name__}, which JSON does not have"


def _system(request):
    if "system" not in request:
        return
    system = request["system"]
    if isinstance(system, str):
        if _blank(system):
            yield "system", "is blank"
    elif not isinstance(system, list) or not system:
        yield "system", "is neither a string nor a non-empty list"
    else:
        for index, block in enumerate(system):
            where = f"system.{index}"
            if not isinstance(block, dict) or block.get("type") != "text":
                yield where, "is not a text block"
            else:
                yield from _text_block(where, block)


def _tools(request):
    tools = request.get("tools", [])
    if not isinstance(tools, list):
        yield "tools", "is not a list"
        return
    names = set()
    for index, tool in enumerate(tools):
        where = f"tools.{index}"
        if not isinstance(tool, dict):
            yield where, "is not an object"
            continue
        name = tool.get("name")
        if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
            yield f"{where}.name", f"{name!r} does not match {TOOL_NAME.pattern}"
        elif name in names:
            yield f"{where}.name", f"{name!r} is not unique"
        else:
            names.add(name)
        schema = tool.get("input_schema")
        custom = tool.get("type", "custom") == "custom"
        if custom and (not isinstance(schema, dict) or schema.get("type") != "object"):
            yield f"{where}.input_schema", "is not a schema of type object"
        if custom and not isinstance(tool.get("description", ""), str):
            yield f"{where}.description", "is not a string"


def _tool_choice(request):
    if "tool_choice" not in request:
        return
    choice = request["tool_choice"]
    kind = choice.get("type") if isinstance(choice, dict) else None
    if kind not in ("auto", "any", "none", "tool"):
        yield "tool_choice", "has no type of auto, any, none or tool"
        return
    if not request.get("tools"):
        yield "tool_choice", "may only be given along with tools"
    if kind == "tool" and choice.get("name") not in [
        tool.get("name") for tool in request.get("tools") or () if isinstance(tool, dict)
    ]:
        yield "tool_choice", f"names the tool {choice.get('name')!r}, which is not offered"
    thinking = request.get("thinking")
    if kind in ("any", "tool") and isinstance(thinking, dict) and thinking.get("type") == "enabled":
        yield "tool_choice", "forces a tool while thinking is enabled"


def _thinking_parameter(request):
    if "thinking" not in request:
        return
    thinking = request["thinking"]
    kind = thinking.get("type") if isinstance(thinking, dict) else None
    known = {
        "adaptive": {"type", "display"},
        "disabled": {"type"},
        "enabled": {"type", "budget_tokens", "display"},
    }
    if not isinstance(kind, str) or kind not in known:
        yield "thinking", "has no type of adaptive, disabled or enabled"
        return
    for key in thinking.keys() - known[kind]:
        yield f"thinking.{key}", f"is unknown for type {kind}"
    if thinking.get("display", "omitted") not in ("summarized", "omitted"):
        yield "thinking.display", "is neither summarized nor omitted"
    if kind == "enabled":
        budget, limit = thinking.get("budget_tokens"), request.get("max_tokens")
        if not _is_int(budget) or budget < MIN_BUDGET:
            yield "thinking.budget_tokens", f"is not an integer of {MIN_BUDGET} or more"
        elif _is_int(limit) and budget >= limit:
            yield "thinking.budget_tokens", "is not less than max_tokens"


def _output_config(request):
    if "output_config" not in request:
        return
    config = request["output_config"]
    if not isinstance(config, dict):
        yield "output_config", "is not an object"
        return
    for key in config.keys() - {"effort", "format"}:
        yield f"output_config.{key}", "unknown parameter"
    if "effort" in config and config["effort"] not in EFFORTS:
        yield "output_config.effort", f"{config['effort']!r} is none of {EFFORTS}"


def _cache_control(request):
    """At most four breakpoints, well formed, and none on thinking."""
    places = [("request", request)]
    for key in ("system", "tools"):
        if isinstance(request.get(key), list):
            places.extend((f"{key}.{index}", item) for index, item in enumerate(request[key]))
    for where, _, block in _all_blocks(request):
        places.append((where, block))
        if isinstance(block.get("content"), list):
            places.extend((f"{where}.content", part) for part in block["content"])
    marked = [
        (where, item)
        for where, item in places
        if isinstance(item, dict) and "cache_control" in item
    ]
    if len(marked) > MAX_BREAKPOINTS:
        yield "cache_control", f"{len(marked)} breakpoints, at most {MAX_BREAKPOINTS} are allowed"
    for where, item in marked:
        control = item["cache_control"]
        if not isinstance(control, dict) or control.get("type") != "ephemeral":
            yield f"{where}.cache_control", "is not of type ephemeral"
        elif control.keys() - {"type", "ttl"} or control.get("ttl", "5m") not in ("5m", "1h"):
            yield f"{where}.cache_control", "has more than a ttl of 5m or 1h"
        if item.get("type") in ("thinking", "redacted_thinking"):
            yield f"{where}.cache_control", "is on a thinking block"


# The messages.


def _roles(request):
    messages = request.get("messages")
    if not isinstance(messages, list) or not messages:
        yield "messages", "is not a non-empty list"
        return
    previous = None
    for index, message in enumerate(messages):
        where = f"messages.{index}"
        if not isinstance(message, dict):
            yield where, "is not an object"
            continue
        for key in message.keys() - {"role", "content"}:
            yield f"{where}.{key}", "unknown key"
        role = message.get("role")
        if role not in ("user", "assistant"):
            yield f"{where}.role", f"{role!r} is neither user nor assistant"
        elif index == 0 and role != "user":
            yield where, "the first message is not the user's"
        elif role == previous:
            yield where, f"two {role} messages in a row (ours)"
        previous = role
    if isinstance(messages[-1], dict) and messages[-1].get("role") != "user":
        yield f"messages.{len(messages) - 1}", "the last message is not the user's"


def _contents(request):
    for where, message in _messages(request):
        content, role = message.get("content"), message.get("role")
        if isinstance(content, str):
            if _blank(content):
                yield where, "the content is blank"
            continue
        if not isinstance(content, list) or not content:
            yield where, "the content is neither a string nor a non-empty list"
            continue
        kinds = [block.get("type") for block in content if isinstance(block, dict)]
        thought = all(kind in ("thinking", "redacted_thinking") for kind in kinds)
        if role == "assistant" and thought:
            yield where, "an assistant message of nothing but thinking"
        for index, block in enumerate(content):
            place = f"{where}.{index}"
            if not isinstance(block, dict) or not isinstance(block.get("type"), str):
                yield place, "is not an object with a type"
                continue
            yield from _block(place, role, block)


_KNOWN_KINDS = (
    "text", "thinking", "redacted_thinking", "tool_use", "tool_result", "image", "document"
)  # fmt: skip


def _block(where, role, block):
    kind = block["type"]
    # A block of a kind that nobody here knows came from the API and goes back verbatim.
    known = kind in _KNOWN_KINDS or role == "user"
    for key in [key for key, value in block.items() if value is None and known]:
        yield f"{where}.{key}", "is null"
    if role == "user":
        if kind not in USER_BLOCKS:
            yield where, f"a {kind} block in a user message"
            return
        for key in block.keys() - USER_BLOCKS[kind]:
            yield f"{where}.{key}", f"is unknown in a {kind} block"
    elif kind in ("tool_result", "image", "document"):
        yield where, f"a {kind} block in an assistant message"
    check = {
        "text": _text_block,
        "image": _image_block,
        "document": _document_block,
        "tool_use": _tool_use_block,
        "tool_result": _tool_result_block,
        "thinking": _thinking_block,
        "redacted_thinking": _redacted_block,
    }.get(kind, _server_block)
    yield from check(where, block)
    if kind in ("image", "document") and isinstance(block.get("source"), dict):
        yield from _source_keys(where, block["source"])


def _text_block(where, block):
    if not isinstance(block.get("text"), str):
        yield f"{where}.text", "is not a string"
    elif _blank(block["text"]):
        yield f"{where}.text", "is blank"
    cited = block.get("citations") or []
    if not isinstance(cited, list) or not all(isinstance(item, dict) for item in cited):
        yield f"{where}.citations", "is not a list of objects"


def _server_block(where, block):
    """A call that the API makes and answers itself, or its result."""
    kind, types = block["type"], {"name": str, "input": dict, "tool_use_id": str, "id": str}
    required = ("id", "name", "input") if kind.endswith("_tool_use") else ()
    required = ("tool_use_id", "content") if kind.endswith("_tool_result") else required
    for key in required:
        if block.get(key) is None:
            yield f"{where}.{key}", "is missing"
    for key in types.keys() & block.keys():
        if block[key] is not None and not isinstance(block[key], types[key]):
            yield f"{where}.{key}", f"is not of type {types[key].__name__}"


def _source_keys(where, source):
    keys = {"base64": {"media_type", "data"}, "text": {"media_type", "data"}, "url": {"url"}}
    expected = keys.get(source.get("type"))
    if expected is not None and source.keys() - {"type"} != expected:
        yield f"{where}.source", f"has not the keys {expected}"


def _image_block(where, block):
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    if kind == "base64":
        if source.get("media_type") not in IMAGE_TYPES:
            yield (
                f"{where}.source",
                f"{source.get('media_type')!r} is none of {IMAGE_TYPES}",
            )
        if not _is_base64(source.get("data")):
            yield f"{where}.source", "the data is not base64"
    elif kind == "url":
        if not re.match(r"https?://\S", str(source.get("url"))):
            yield f"{where}.source", "the url is none"
    elif kind != "file" or not isinstance(source.get("file_id"), str):
        yield f"{where}.source", "is no source of an image"


def _document_block(where, block):
    source = block.get("source")
    kind = source.get("type") if isinstance(source, dict) else None
    if kind not in ("base64", "text", "content", "url", "file"):
        yield f"{where}.source", "is no source of a document"
    elif kind == "base64" and not _is_base64(source.get("data")):
        yield f"{where}.source", "the data is not base64"
    elif kind == "base64" and source.get("media_type") != "application/pdf":
        yield f"{where}.source", "is no PDF"
    elif kind == "text" and _blank(source.get("data")):
        yield f"{where}.source", "the data is blank"


def _tool_use_block(where, block):
    identity, name = block.get("id"), block.get("name")
    if not isinstance(identity, str) or not CALL_ID.fullmatch(identity):
        yield f"{where}.id", f"{identity!r} does not match {CALL_ID.pattern}"
    if not isinstance(name, str) or not TOOL_NAME.fullmatch(name):
        yield f"{where}.name", f"{name!r} does not match {TOOL_NAME.pattern}"
    if not isinstance(block.get("input"), dict):
        yield f"{where}.input", "is not an object"
    if not isinstance(block.get("caller") or {}, dict):
        yield f"{where}.caller", "is not an object"


def _tool_result_block(where, block):
    if "is_error" in block and not isinstance(block["is_error"], bool):
        yield f"{where}.is_error", "is not a boolean"
    content = block.get("content", "")
    if content == "" and block.get("is_error") is True:
        yield f"{where}.content", "is empty although is_error is true"
    if isinstance(content, str):
        return
    if not isinstance(content, list) or not content:
        yield f"{where}.content", "is neither a string nor a non-empty list"
        return
    for index, part in enumerate(content):
        place = f"{where}.content.{index}"
        if not isinstance(part, dict) or part.get("type") not in RESULT_BLOCKS:
            yield place, "is no block that a tool result may hold"
        elif part["type"] == "text" and not (isinstance(part.get("text"), str) and part["text"]):
            yield f"{place}.text", "is not a non-empty string"
        elif part["type"] == "image":
            yield from _image_block(place, part)
        elif part["type"] == "document":
            yield from _document_block(place, part)


def _thinking_block(where, block):
    if not isinstance(block.get("thinking"), str):
        yield f"{where}.thinking", "is not a string"
    if not isinstance(block.get("signature"), str) or not block["signature"]:
        yield f"{where}.signature", "is not a non-empty string"


def _redacted_block(where, block):
    if not isinstance(block.get("data"), str) or not block["data"]:
        yield f"{where}.data", "is not a non-empty string"


# Calls and results.


def _call_ids(request):
    seen = set()
    for where, _, block in _all_blocks(request):
        if block.get("type") == "tool_use" and isinstance(block.get("id"), str):
            if block["id"] in seen:
                yield f"{where}.id", f"the call id {block['id']!r} is not unique"
            seen.add(block["id"])


def _pairing(request):
    """Every call is answered once, in the next message, first thing, and in call order."""
    calls = []
    for where, message in _messages(request):
        blocks = _blocks(message)
        if message.get("role") == "assistant":
            yield from _unanswered(where, calls)
            calls = [block.get("id") for block in blocks if block.get("type") == "tool_use"]
            continue
        results = [
            block.get("tool_use_id") for block in blocks if block.get("type") == "tool_result"
        ]
        kinds = [block.get("type") == "tool_result" for block in blocks]
        if kinds != sorted(kinds, reverse=True):
            yield where, "tool results do not come first"
        for result in results:
            if result not in calls:
                yield where, f"the result for {result!r} answers no call of the message before"
        for index, result in enumerate(results):
            if result in results[:index]:
                yield where, f"the call {result!r} is answered more than once"
        yield from _unanswered(where, [call for call in calls if call not in results])
        if sorted(map(str, results)) == sorted(map(str, calls)) and results != calls:
            yield where, "the results are not in call order (ours)"
        calls = []
    yield from _unanswered("messages", calls)


def _unanswered(where, calls):
    for call in calls:
        yield where, f"the call {call!r} has no result in the next message"


# Images and documents: https://docs.claude.com/en/docs/build-with-claude/vision and …/pdf-support


def _media(request):
    """What the API publishes about single media, and about all of them together."""
    media = list(_all_media(request))
    images = [block for _, block in media if block.get("type") == "image"]
    largest = MANY_PIXELS if len(images) > MANY else MOST_PIXELS
    pages = total = 0
    for where, block in media:
        data = _decoded(block)
        total += len(data) * 4 // 3
        if block.get("type") == "document":
            pages += len(re.findall(rb"/Type\s*/Page\b", data)) if data[:4] == b"%PDF" else 0
        elif len(data) * 4 // 3 > 5 * 2**20:
            yield where, "has more than 5 MB"
        elif max(_pixels(data)) > largest:
            yield where, f"is larger than {largest} pixels, with {len(images)} images in all"
    for what, count, most in (("media", len(media), 100), ("pages", pages, 100)):
        if count > most:
            yield "messages", f"{count} {what}, at most {most} are allowed"
    if total > 30 * 2**20:
        yield "messages", f"{total} bytes of media: a request may have 32 MB"


def _all_media(request):
    for where, _, block in _all_blocks(request):
        content = block.get("content")
        parts = content if isinstance(content, list) else []
        for part in [block, *parts]:
            if isinstance(part, dict) and part.get("type") in ("image", "document"):
                yield where, part


def _decoded(block):
    source = block.get("source")
    data = source.get("data", "") if isinstance(source, dict) else ""
    is_coded = isinstance(source, dict) and source.get("type") == "base64"
    return base64.b64decode(data) if is_coded and _is_base64(data) else str(data).encode()


def _pixels(data):
    with contextlib.suppress(OSError, PIL.Image.DecompressionBombError):
        return PIL.Image.open(io.BytesIO(data)).size
    return (0, 0)


# Small things.


def _messages(request):
    messages = request.get("messages")
    for index, message in enumerate(messages if isinstance(messages, list) else ()):
        if isinstance(message, dict):
            yield f"messages.{index}", message


def _blocks(message):
    content = message.get("content")
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    blocks = content if isinstance(content, list) else ()
    return [block for block in blocks if isinstance(block, dict)]


def _all_blocks(request):
    for where, message in _messages(request):
        for index, block in enumerate(_blocks(message)):
            yield f"{where}.{index}", message.get("role"), block


def _blank(text):
    return not isinstance(text, str) or not text.strip()


def _is_int(value):
    return isinstance(value, int) and not isinstance(value, bool)


def _is_base64(data):
    try:
        return isinstance(data, str) and bool(base64.b64decode(data, validate=True))
    except (binascii.Error, ValueError):
        return False
