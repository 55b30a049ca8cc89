"""The outline: the whole tree as rows, the line to the leaf straight, other branches indented."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from domain import tree
from domain.events import (
    BranchSummarized,
    Compacted,
    Entry,
    MessageAppended,
    NoteAppended,
    Version,
)
from domain.messages import result_text
from domain.projections.context import live_entries

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.conversation import Conversation


class TreeEntry(msgspec.Struct, frozen=True):
    """An entry of the tree."""

    version: Version
    parent: Version | None
    depth: int
    """0 on the line to the leaf, and one more for each branch off it."""
    kind: str
    text: str
    label: str | None
    is_on_path: bool
    is_leaf: bool
    is_compacted: bool
    """It is on the path, but a summary stands for it in the context."""


def outline(conversation: Conversation) -> Iterator[TreeEntry]:
    """Yield a row for every entry, parents before their children."""
    path = conversation.path(conversation.leaf)
    on_path = {entry.originator_version for entry in path}
    live = {entry.originator_version for entry in live_entries(conversation, conversation.leaf)}
    children = tree.children(conversation.parents)
    # Side branches come before the line that goes on: so the outline ends at the leaf.
    waiting = _below(children.get(None, []), 0, on_path)
    while waiting:
        version, depth = waiting.pop()
        kind, text = _gist(conversation.entries[version])
        yield TreeEntry(
            version=version,
            parent=conversation.parents[version],
            depth=depth,
            kind=kind,
            text=text,
            label=conversation.labels.get(version),
            is_on_path=version in on_path,
            is_leaf=version == conversation.leaf,
            is_compacted=version in on_path and version not in live,
        )
        waiting += _below(children.get(version, []), depth, on_path)


def _below(siblings: list[Version], depth: int, on_path: set[Version]) -> list[tuple[Version, int]]:
    """Return *siblings* with their depths, the last to be shown first.

    The line that goes on is the one on the path, or else the newest.
    """
    ordered = sorted(siblings, key=lambda version: (version in on_path, version), reverse=True)
    return [(version, depth + (place > 0)) for place, version in enumerate(ordered)]


def _gist(entry: Entry) -> tuple[str, str]:
    """Return what an entry is and, on one line, what it says."""
    match entry:
        case Compacted(summary=text):
            return "compaction", _one_line(text)
        case BranchSummarized(summary=text):
            return "summary", _one_line(text)
        case NoteAppended(content=text):
            return "note", _one_line(text)
        case MessageAppended():
            return _message_gist(entry)
        case _:
            return entry.TOPIC, ""


def _message_gist(entry: MessageAppended) -> tuple[str, str]:
    texts: list[str] = []
    kind, blocks, _ = entry.content
    for raw in blocks:
        match raw:
            case {"type": "text", "text": str()} if kind == "user" and texts:
                pass  # a file that goes with the prompt
            case {"type": "text", "text": str(text)}:
                texts.append(text)
            case {"type": "tool_use"}:
                arguments = raw.get("input")
                values = arguments.values() if isinstance(arguments, dict) else ()
                texts.append(f"→ {raw.get('name') or '?'} {' '.join(map(str, values))}")
            case {"type": "tool_result", "tool_use_id": str()}:
                kind = "result"
                texts.append(result_text(raw.get("content")))
    return kind, _one_line(" ".join(texts))


def _one_line(text: str) -> str:
    return " ".join(text[:400].split())
