"""The context: the exact body of the request that the model gets. Path in, Messages API out.

The log is never repaired, this projection is (design, section 3, rule 2). Whatever stands on a
path, what comes out is a request that the API accepts: roles alternate, beginning and ending with
the user; every tool call is answered exactly once, in the next user message, in call order; ids
are valid and unique; nothing is blank; thinking goes back only signed and to the model it came
from. It is pure and deterministic, and on one branch each request extends the one before, block
by block, so that prompt caches hold.

Four passes, in this order: `live_entries` (which entries), `parts` (what each says),
`message_builder` (calls, results, roles), and `request_fields`, what is around the messages.
`domain.plain` says which messages go past all that, as they stand in the log, and `media` which
images and documents fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.block_shapes import is_name
from domain.events import Compacted, Entry, MessageAppended, Version
from domain.projections.message_builder import MessageBuilder
from domain.projections.parts import without_breakpoint
from domain.request import Request
from domain.thinking import thinking_parameters
from domain.unread import Run

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from domain.conversation import Conversation
    from domain.messages import JsonObject

PROJECTION = "p2"
"""The version of this projection: requests of logs written under another one may differ."""

_UNKNOWN_MODEL = "unknown"
_DEFAULT_MAX_TOKENS = 8192


def context(conversation: Conversation, leaf: Version | None) -> JsonObject:
    """Return the request body for the path to *leaf*, with the facts as they are now.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    return request_of(conversation, leaf).content


def request_of(conversation: Conversation, leaf: Version | None) -> Request:
    """Return the request for the path to *leaf* as it is sent, with the facts as they are now.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    builder = build_messages(conversation, live_unread(conversation, leaf))
    fields = request_fields(conversation, may_think=builder.may_think)
    return Request.of(fields, [*builder.pieces, builder.last_message()])


def build_messages(conversation: Conversation, entries: Sequence[Entry | Run]) -> MessageBuilder:
    """Return *entries*, those of a path from its beginning, as messages."""
    builder = MessageBuilder(conversation)
    for entry in entries:
        builder.add(entry)
    if builder.media.is_as_planned:
        return builder
    builder = MessageBuilder(conversation, builder.media.plan)  # there are more media than fit
    for entry in entries:
        builder.add(entry)
    return builder


def request_fields(conversation: Conversation, *, may_think: bool) -> JsonObject:
    """Return all of the body but its messages; *may_think* as their `MessageBuilder` says."""
    model = (conversation.model or "").strip() and conversation.model
    max_tokens = conversation.known_limits.answer(conversation.max_tokens or _DEFAULT_MAX_TOKENS)
    fields: JsonObject = {
        "model": model or _UNKNOWN_MODEL,
        "max_tokens": max_tokens,
        "stream": True,
    }
    instructions = conversation.instructions
    if instructions is not None:
        if instructions.system.strip():
            fields["system"] = instructions.system
        tools = _tools(instructions.tool_definitions)
        if tools:
            fields["tools"] = tools
    if conversation.caching:
        fields["cache_control"] = {"type": "ephemeral"}
    thinking = thinking_parameters(fields["model"], conversation.thinking_level, max_tokens)
    if may_think or "budget_tokens" not in thinking.get("thinking", {}):
        fields |= thinking
    return fields


def _tools(definitions: Sequence[JsonObject]) -> list[JsonObject]:
    """Return the definitions that the API takes: well named, each name once, with a schema."""
    tools: dict[str, JsonObject] = {}
    for raw in definitions:
        name, schema = raw.get("name"), raw.get("input_schema")
        custom = raw.get("type", "custom") == "custom"
        described = isinstance(raw.get("description", ""), str)
        has_schema = isinstance(schema, dict) and schema.get("type") == "object"
        if isinstance(name, str) and is_name(name) and (not custom or (described and has_schema)):
            tools.setdefault(name, without_breakpoint(raw))
    return list(tools.values())


# -- which entries -----------------------------------------------------------------------------


def live_entries(conversation: Conversation, leaf: Version | None) -> list[Entry]:
    """Return the newest compaction on the path to *leaf*, what it kept, and what came after.

    Without a compaction that is the whole path. Nothing older is read.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    return list(live_backwards(conversation, leaf))[::-1]


def live_backwards(conversation: Conversation, leaf: Version | None) -> Iterator[Entry]:
    """Yield the `live_entries` from the last to the first, read as they are taken.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    return conversation.read_known(_live(conversation.known_backwards(leaf)))


def live_unread(conversation: Conversation, leaf: Version | None) -> list[Entry | Run]:
    """Return the `live_entries`; messages that are unread come as runs.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    return list(_live(conversation.known_backwards(leaf)))[::-1]


def _live(backwards: Iterator[Entry | Run]) -> Iterator[Entry | Run]:
    newest: Compacted | None = None
    first: Version = 0
    for entry in backwards:
        if entry.originator_version < first:
            if isinstance(entry, Run) and (kept := entry.within(first, entry.last_version)):
                yield kept
            break
        if not isinstance(entry, Compacted):
            yield entry
        elif newest is None:
            newest = entry
            first = entry.originator_version if entry.first_kept is None else entry.first_kept
    if newest is not None:
        yield newest


def seen(conversation: Conversation, leaf: Version | None) -> dict[str, str]:
    """Return each file that the context of *leaf* holds whole, with its newest digest there.

    A file may only be replaced as the model knows it (case R12). One that was read before a
    compaction, or on another branch, is not known.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    files: dict[str, str] = {}
    for entry in live_backwards(conversation, leaf):
        if isinstance(entry, MessageAppended):
            for path, digest in entry.seen.items():
                files.setdefault(path, digest)
    return files
