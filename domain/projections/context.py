"""The context: the exact body of the request that the model gets. Path in, Messages API out.

The log is never repaired, this projection is (design, section 3, rule 2). Whatever stands on a
path, what comes out is a request that the API accepts: roles alternate, beginning and ending with
the user; every tool call is answered exactly once, in the next user message, in call order; ids
are valid and unique; nothing is blank; thinking goes back only signed and to the model it came
from. It is pure and deterministic, and on one branch each request extends the one before, block
by block, so that prompt caches hold.

Four passes, in this order: `live_entries` (which entries), `_parts` (what each says),
`Pairing` (calls, results, roles), and `frame`, the body around the messages.
"""

from __future__ import annotations

import base64
import re
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.events import BranchSummarized, Compacted, Entry, MessageAppended, NoteAppended
from domain.raw_messages import blocks_of
from domain.thinking import thinking_parameters

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from domain.conversation import Conversation
    from domain.events import Version
    from domain.raw_messages import JsonObject

PROJECTION = "p1"
"""The version of this projection: requests of logs written under another one may differ."""

INTERRUPTED = "(Your previous answer was interrupted before it was finished.)"
LOST = "(A message is missing here: this part of the conversation was lost.)"
CONTINUE = "(Continue.)"
NO_OUTPUT = "(no output)"

_UNKNOWN_MODEL = "unknown"
_DEFAULT_MAX_TOKENS = 8192
_VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_VALID_NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")
_URL = re.compile(r"https?://\S+")
_IMAGE_TYPES = ("image/jpeg", "image/png", "image/gif", "image/webp")
_THINKING = ("thinking", "redacted_thinking")
_CHECKED_KINDS = ("text", *_THINKING, "tool_use", "tool_result", "image", "document")
_CUT_SHORT = ("interrupted", "failed")


def context(conversation: Conversation, leaf: Version | None) -> JsonObject:
    """Return the request body for the path to *leaf*, with the facts as they are now.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    pairing = Pairing(conversation)
    for entry in live_entries(conversation, leaf):
        pairing.add(entry)
    messages = [*pairing.messages, pairing.last_message()]
    return frame(conversation, messages, may_think=may_think(messages))


def frame(conversation: Conversation, messages: list[JsonObject], *, may_think: bool) -> JsonObject:
    """Return the body around *messages*; *may_think* as `may_think` says of them."""
    model = (conversation.model or "").strip() and conversation.model
    max_tokens = max(conversation.max_tokens or _DEFAULT_MAX_TOKENS, 1)
    body: JsonObject = {
        "model": model or _UNKNOWN_MODEL,
        "max_tokens": max_tokens,
        "messages": messages,
        "stream": True,
    }
    instructions = conversation.instructions
    if instructions is not None:
        if instructions.system.strip():
            body["system"] = instructions.system
        tools = _tools(instructions.tool_definitions)
        if tools:
            body["tools"] = tools
    if conversation.caching:
        body["cache_control"] = {"type": "ephemeral"}
    thinking = thinking_parameters(body["model"], conversation.thinking_level, max_tokens)
    if may_think or "budget_tokens" not in thinking.get("thinking", {}):
        body |= thinking
    return body


def may_think(messages: Sequence[JsonObject]) -> bool:
    """Whether a model that thinks by budget may: not in a tool loop that it began without."""
    results = messages[-1]["content"][0].get("type") == "tool_result"
    if not results or len(messages) == 1:
        return True
    return messages[-2]["content"][0].get("type") in _THINKING


def _tools(definitions: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the definitions that the API takes: well named, each name once, with a schema."""
    tools: dict[str, JsonObject] = {}
    for raw in definitions:
        name, schema = raw.get("name"), raw.get("input_schema")
        custom = raw.get("type", "custom") == "custom"
        described = isinstance(raw.get("description", ""), str)
        has_schema = isinstance(schema, dict) and schema.get("type") == "object"
        if isinstance(name, str) and _is_name(name) and (not custom or (described and has_schema)):
            tools.setdefault(name, _without_breakpoint(raw))
    return list(tools.values())


# -- which entries -----------------------------------------------------------------------------


def live_entries(conversation: Conversation, leaf: Version | None) -> list[Entry]:
    """Return the newest compaction on the path to *leaf*, what it kept, and what came after.

    Without a compaction that is the whole path. Nothing older than what is returned is looked at.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    return list(live_backwards(conversation, leaf))[::-1]


def live_backwards(conversation: Conversation, leaf: Version | None) -> Iterator[Entry]:
    """Yield the `live_entries` from the last to the first, for whoever stops before.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    newest: Compacted | None = None
    first: Version = 0
    for entry in conversation.backwards(leaf):
        if entry.originator_version < first:
            break
        if not isinstance(entry, Compacted):
            yield entry
        elif newest is None:
            newest = entry
            first = entry.originator_version if entry.first_kept is None else entry.first_kept
    if newest is not None:
        yield newest


# -- what each entry says ----------------------------------------------------------------------


class _Part(NamedTuple):
    """What one entry says: blocks that the API accepts in a message of that role."""

    role: str
    blocks: list[JsonObject]
    version: Version
    follows_loss: bool = False
    """Whether what came right before it is missing in the log."""


def _parts(conversation: Conversation, entry: Entry) -> list[_Part]:
    version = entry.originator_version
    match entry:
        case MessageAppended():
            lost = not conversation.is_orderly and conversation.parent_of(version) != entry.parent
            return _message_parts(entry, conversation.model, follows_loss=lost)
        case Compacted(summary=summary):
            text = f"Summary of the conversation so far:\n\n{summary}"
            return [_Part("user", _text(text), version)]
        case BranchSummarized(summary=summary):
            text = f"Summary of a branch of this conversation that was left:\n\n{summary}"
            return [_Part("user", _text(text), version)]
        case NoteAppended(visible=True, content=content):
            return [_Part("user", _text(content), version)]
        case _:
            return []


def _message_parts(entry: MessageAppended, model: str | None, *, follows_loss: bool) -> list[_Part]:
    body, version = entry.body, entry.originator_version
    blocks = [raw for raw in blocks_of(body.get("content")) if isinstance(raw, dict)]
    role = body.get("role")
    if role == "user":
        said = [block for raw in blocks if (block := _of_user(raw))]
        return [_Part("user", said, version)]
    if role != "assistant":
        return []
    same_model = entry.model is not None and entry.model == model
    said = [block for raw in blocks if (block := _of_assistant(raw, same_model=same_model))]
    while said and said[-1]["type"] in _THINKING:
        said.pop()  # the API refuses a message that ends in thinking
    parts = [_Part("assistant", said, version, follows_loss)]
    if entry.stop_reason in _CUT_SHORT:
        parts.append(_Part("user", _text(INTERRUPTED), version))
    return parts


def _text(text: str) -> list[JsonObject]:
    return [{"type": "text", "text": text}] if text.strip() else []


def _of_user(raw: JsonObject) -> JsonObject | None:
    """Return *raw* as the API takes it from a user; None for what it would refuse."""
    match raw.get("type"):
        case "text":
            text = raw.get("text")
            good = isinstance(text, str) and text.strip()
            return {"type": "text", "text": text} if good else None
        case "tool_result":
            return raw if isinstance(raw.get("tool_use_id"), str) else None
        case "image" | "document" as kind:
            source = raw.get("source")
            return {"type": kind, "source": source} if _is_source(kind, source) else None
        case _:
            return None


def _of_assistant(raw: JsonObject, *, same_model: bool) -> JsonObject | None:
    """Return *raw*, verbatim if possible, as the API takes it back; None for what it refuses."""
    match raw.get("type"):
        case "text":
            text = raw.get("text")
            return _plain(raw) if isinstance(text, str) and text.strip() else None
        case "tool_use":
            return _call(raw)
        case "thinking":
            is_whole = isinstance(raw.get("thinking"), str) and _is_text(raw.get("signature"))
            return _plain(raw) if same_model and is_whole else None
        case "redacted_thinking":
            return _plain(raw) if same_model and _is_text(raw.get("data")) else None
        case str(kind) if kind not in _CHECKED_KINDS:
            return _without_breakpoint(raw)
        case _:
            return None


def _call(raw: JsonObject) -> JsonObject | None:
    name = raw.get("name")
    if not (isinstance(name, str) and isinstance(raw.get("id"), str)):
        return None
    if not isinstance(raw.get("input"), dict):
        return None
    if _is_name(name):
        return _plain(raw)
    return _plain(raw) | {"name": re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:128] or "unnamed"}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _is_name(name: str) -> bool:
    return _VALID_NAME.fullmatch(name) is not None


def _is_source(kind: str, source: Any) -> bool:
    """Whether the API takes *source* for a block of that *kind*."""
    match source:
        case {"type": "base64", "media_type": str(media_type), "data": str(data)}:
            return (kind == "document" or media_type in _IMAGE_TYPES) and _is_base64(data)
        case {"type": "text", "data": str(data)}:
            return kind == "document" and data.strip() != ""
        case {"type": "url", "url": str(url)}:
            return _URL.fullmatch(url) is not None
        case _:
            return False


def _is_base64(data: str) -> bool:
    try:
        return base64.b64decode(data, validate=True) != b""
    except ValueError:
        return False


def _plain(raw: JsonObject) -> JsonObject:
    """Return *raw* without breakpoints and without the nulls that dumping models adds (Z15)."""
    if "cache_control" not in raw and None not in raw.values():
        return raw
    return {k: item for k, item in _without_breakpoint(raw).items() if item is not None}


def _without_breakpoint(raw: JsonObject) -> JsonObject:
    return {k: item for k, item in raw.items() if k != "cache_control"}


# -- calls, results, roles ---------------------------------------------------------------------


class Pairing:
    """Lays entries out as messages: alternating roles, every call answered once, in call order.

    Attributes:
        messages: The messages that are whole: whatever is added, they stay as they are.
        presumed: Calls among them without a result: id, version of the entry, what is known.
    """

    def __init__(self, conversation: Conversation) -> None:
        self.messages: list[JsonObject] = []
        self.presumed: list[tuple[str, Version, str]] = []
        self._conversation = conversation
        self._used_ids: set[str] = set()
        self._calls: dict[str, str] = {}  # id in the log -> id in the request
        self._asked_at: Version = 0
        self._results: dict[str, JsonObject] = {}
        self._said: list[JsonObject] = []

    def add(self, entry: Entry) -> None:
        """Add what *entry*, the next one of the path, says."""
        for part in _parts(self._conversation, entry):
            self._add(part)

    def last_message(self, *, otherwise: str = CONTINUE) -> JsonObject:
        """Return the message with which the user's turn would end now; nothing changes."""
        content = [self._answer(tool_use_id) for tool_use_id in self._calls]
        content += self._said or ([] if content else _text(otherwise))
        return {"role": "user", "content": content}

    def _add(self, part: _Part) -> None:
        if part.role == "assistant":
            if part.blocks:
                # Two answers in a row, and nothing lost: the second was asked for like this.
                self._end_user_message(otherwise=LOST if part.follows_loss else CONTINUE)
                self._begin_assistant_message(part)
            return
        for raw in part.blocks:
            if raw.get("type") != "tool_result":
                self._said.append(raw)
            elif raw["tool_use_id"] in self._calls:
                self._results.setdefault(raw["tool_use_id"], raw)

    def _begin_assistant_message(self, part: _Part) -> None:
        self._calls, self._results, self._asked_at = {}, {}, part.version
        content: list[JsonObject] = []
        for raw in part.blocks:
            if raw.get("type") != "tool_use":
                content.append(raw)
            elif raw["id"] not in self._calls:
                unique = self._calls[raw["id"]] = self._unique_id(raw["id"])
                content.append(raw if unique == raw["id"] else raw | {"id": unique})
        self.messages.append({"role": "assistant", "content": content})

    def _end_user_message(self, *, otherwise: str) -> None:
        self.messages.append(self.last_message(otherwise=otherwise))
        for call in self._calls.keys() - self._results.keys():
            known = self._conversation.outcome_of(call, asked_at=self._asked_at)
            self.presumed.append((call, self._asked_at, known))
        self._calls, self._said = {}, []

    def _answer(self, tool_use_id: str) -> JsonObject:
        result = self._results.get(tool_use_id)
        if result is None:
            text = self._conversation.outcome_of(tool_use_id, asked_at=self._asked_at)
            result = {"content": text, "is_error": True}
        answer: JsonObject = {
            "type": "tool_result",
            "tool_use_id": self._calls[tool_use_id],
            "content": _result_content(result.get("content")),
        }
        return answer | {"is_error": True} if result.get("is_error") is True else answer

    def _unique_id(self, tool_use_id: str) -> str:
        """Return a valid id that no other call of the request has; a good one stays (case L1)."""
        base = tool_use_id
        if _VALID_ID.fullmatch(base) is None:
            base = re.sub(r"[^a-zA-Z0-9_-]", "_", tool_use_id)[:100] or "call"
        unique, count = base, 1
        while unique in self._used_ids:
            count += 1
            unique = f"{base[:100]}_{count}"
        self._used_ids.add(unique)
        return unique


def _result_content(content: Any) -> str | list[JsonObject]:
    if isinstance(content, str):
        return content if content.strip() else NO_OUTPUT
    if not isinstance(content, list):
        return NO_OUTPUT
    parts = (_of_user(raw) for raw in content if isinstance(raw, dict))
    return [part for part in parts if part and part["type"] != "tool_result"] or NO_OUTPUT
