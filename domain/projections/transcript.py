"""The transcript: a path as people read it, gaps and damage included."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple, TypeAlias

from domain.calls import calls_of
from domain.events import BranchSummarized, Compacted, Entry, MessageAppended, NoteAppended, Version
from domain.messages import JsonObject, result_text

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from datetime import datetime

    from domain.conversation import Conversation
    from domain.tree import Gap

Kind: TypeAlias = Literal[
    "user", "assistant", "thinking", "tool_use", "tool_result", "summary", "note", "gap", "other"
]


class Item(NamedTuple):
    """One thing that was said, done or lost.

    *version* is the entry's; *data* the raw block where there is more than text in it.
    """

    kind: Kind
    version: Version
    timestamp: datetime
    text: str
    data: JsonObject
    label: str | None = None


def transcript(conversation: Conversation, leaf: Version | None) -> tuple[Item, ...]:
    """Return what is on the path to *leaf*, in order.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    items = _gap_items(conversation, None, conversation.created_on)
    for entry in conversation.path(leaf):
        items += _entry_items(conversation, entry)
    return tuple(items)


def recent(conversation: Conversation, count: int) -> tuple[tuple[Item, ...], int]:
    """Return about the last *count* items before the leaf, and how many messages came before.

    They never begin with the result of a call that is left out (case A10). Older entries are not
    read.
    """
    pieces: list[list[Item]] = []
    found = messages = 0
    for entry in conversation.backwards(conversation.leaf):
        pieces.append(_entry_items(conversation, entry))
        messages += isinstance(entry, MessageAppended)
        found += len(pieces[-1])
        if found >= count and all(item.kind != "tool_result" for item in pieces[-1]):
            break
    else:
        pieces.append(_gap_items(conversation, None, conversation.created_on))
    items = [item for piece in reversed(pieces) for item in piece]
    return tuple(items), conversation.message_count() - messages


def last_exchange(items: Sequence[Item]) -> Sequence[Item]:
    """Return *items* from the last thing that a person said on; all if there is none."""
    last = max((n for n, item in enumerate(items) if item.kind == "user"), default=0)
    return items[last:]


def _entry_items(conversation: Conversation, entry: Entry) -> list[Item]:
    version = entry.originator_version
    label = conversation.labels.get(version)
    items = [item._replace(label=label) for item in items_of(entry)]
    return items + _gap_items(conversation, version, entry.timestamp)


def _gap_items(conversation: Conversation, leaf: Version | None, time: datetime) -> list[Item]:
    """Return what was lost, or is unreadable, right after the entry *leaf*."""
    items = []
    for gap in conversation.gaps:
        if gap.leaf == leaf:
            data = {"first": gap.first, "last": gap.last, "unreadable": gap.unreadable}
            items.append(Item("gap", gap.first, time, _gap_text(gap), data))
    return items


def _gap_text(gap: Gap) -> str:
    if gap.unreadable:
        return f"1 event that this version cannot read ({gap.first})"
    lost = gap.last - gap.first + 1
    return f"{lost} event{'s' if lost > 1 else ''} lost here ({gap.first}-{gap.last})"


def items_of(entry: Entry) -> Iterator[Item]:
    """Yield what *entry* says, by itself."""
    version, time = entry.originator_version, entry.timestamp
    match entry:
        case MessageAppended():
            role, blocks, _ = entry.content
            faults = {id(call.raw): call.fault for call in calls_of(blocks) if call.fault}
            for raw in blocks:
                block = raw if isinstance(raw, dict) else {"type": "unreadable", "value": raw}
                kind, text, data = _block(role, block)
                if id(raw) in faults:  # it has no result but this
                    kind, text = "other", f"({raw.get('name') or 'tool_use'}: {faults[id(raw)]})"
                yield Item(kind, version, time, text, data)
        case Compacted(summary=summary) | BranchSummarized(summary=summary):
            yield Item("summary", version, time, summary, {})
        case NoteAppended(content=content, kind=kind, visible=visible):
            yield Item("note", version, time, content, {"kind": kind, "visible": visible})


def _block(role: str, raw: JsonObject) -> tuple[Kind, str, JsonObject]:
    match raw:
        case {"type": "text", "text": str(text)}:
            return "assistant" if role == "assistant" else "user", text, {}
        case {"type": "thinking", "thinking": str(text)}:
            return "thinking", text, {}
        case {"type": "redacted_thinking"}:
            return "thinking", "(redacted)", {}
        case {"type": "tool_use", "id": str(), "name": str(name), "input": dict()}:
            return "tool_use", name, raw
        case {"type": "tool_result", "tool_use_id": str()}:
            return "tool_result", result_text(raw.get("content")), raw
        case _:
            return "other", f"({raw.get('type')})", raw
