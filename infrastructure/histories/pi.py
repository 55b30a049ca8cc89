"""Sessions of pi, versions 1 to 3: a header, then entries that name their parents."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.foreign import BEFORE, Told, told_message, told_note
from infrastructure.histories.source import (
    EPOCH,
    Line,
    Origin,
    Source,
    blocks_in,
    damage,
    image_block,
    json_block,
    number_of,
    text_block,
    text_of,
    time_of,
    usage_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from domain.messages import JsonObject

NAME = "pi"
NEWEST = 3
_HEAD = 50
_STOPS = {
    "stop": "end_turn", "length": "max_tokens", "toolUse": "tool_use", "error": "failed",
    "aborted": "interrupted",
}  # fmt: skip
_MAX_TOKENS = 8192
"""What an answer may have, where the history does not say it: the projection's own default."""

_LEVELS = {"minimal": "low"}


def origin(source: Source) -> Origin | None:
    """Return of what session *source* is: its header says so."""
    for line in source.lines(_HEAD):
        header = line.value or {}
        if header.get("type") == "session" and isinstance(header.get("id"), str):
            parent = header.get("parentSession") or header.get("branchedFrom")
            return Origin(
                header["id"],
                time_of(header.get("timestamp"), EPOCH),
                text_of(header.get("cwd")) or None,
                str(header.get("version", 1)),
                text_of(parent) or None,
            )
        if line.value is not None:
            return None
    return None


def told(source: Source, origin: Origin) -> Iterator[Told]:
    """Yield the entries, each hung from the one that it names."""
    time, index = origin.started, -1
    for line in source.lines():
        entry = line.value
        if entry is None:
            yield damage(line, time)
            continue
        if entry.get("type") == "session":
            continue
        index += 1
        time = time_of(entry.get("timestamp"), time)
        # Version 1 has no ids: there each hangs from the one before, and a compaction counts them.
        key = text_of(entry.get("id"), f"entry {index}")
        parent = entry.get("parentId", BEFORE)
        yield from _entry(line, entry, key, parent if isinstance(parent, str) else None, time)


def _entry(
    line: Line, entry: JsonObject, key: str, parent: str | None, time: datetime
) -> Iterator[Told]:
    match entry:
        case {"type": "message", "message": dict(message)}:
            yield _message(line, message, key, parent, time)
        case {"type": "compaction", "summary": str(summary)} if summary.strip():
            kept = entry.get("firstKeptEntryId", entry.get("firstKeptEntryIndex"))
            kept = f"entry {kept}" if isinstance(kept, int) else kept
            event: events.Event = events.Compacted(
                timestamp=time, parent=None, summary=summary, first_kept=None,
                tokens_before=number_of(entry.get("tokensBefore")), reason="imported",
            )  # fmt: skip
            names = {"first_kept": kept} if isinstance(kept, str) and kept != key else {}
            yield Told(key, event, parent, names)
        case {"type": "branch_summary", "summary": str(summary)} if summary.strip():
            event = events.BranchSummarized(timestamp=time, parent=None, left=0, summary=summary)
            yield Told(key, event, parent, {"left": text_of(entry.get("fromId"), BEFORE)})
        case {"type": "label", "targetId": str(target)} if not _is_number(entry.get("label")):
            label = " ".join(text_of(entry.get("label")).split()) or None
            event = events.LabelChanged(timestamp=time, target=0, label=label)
            yield Told(key, event, parent, {"target": target})
        case {"type": "session_info", "name": str(name)}:
            yield Told(key, events.Renamed(timestamp=time, name=name.strip() or None), parent)
        case {"type": "model_change", "provider": "anthropic", "modelId": str(model)}:
            changed = events.ModelChanged(timestamp=time, model=model, max_tokens=_MAX_TOKENS)
            yield Told(key, changed, parent)
        case {"type": "thinking_level_change", "thinkingLevel": str(level)}:
            level = _LEVELS.get(level, level)
            yield Told(key, events.ThinkingLevelChanged(timestamp=time, level=level), parent)
        case {"type": "custom_message", "content": _, "customType": str()}:
            yield _of_extension(line, entry, key, parent, time)
        case _:
            yield told_note(key, time, f"pi/{entry.get('type')}", line.text, parent)


def _message(line: Line, message: JsonObject, key: str, parent: str | None, time: datetime) -> Told:
    time = time_of(message.get("timestamp"), time)
    match message:
        case {"role": "user", "content": content}:
            return told_message(key, time, "user", _blocks(content), parent)
        case {"role": "assistant"}:
            return told_message(
                key, time, "assistant", _said(message.get("content")), parent, **_facts(message)
            )
        case {"role": "toolResult", "toolCallId": str(call)}:
            result: JsonObject = {
                "type": "tool_result",
                "tool_use_id": call,
                "content": _blocks(message.get("content")),
            }
            if message.get("isError") is True:
                result["is_error"] = True
            return told_message(key, time, "user", [result], parent)
        case {"role": "bashExecution", "command": str(command)}:
            output = text_of(message.get("output")).strip()
            content = f"(The user ran this command: $ {command}\n{output}\n)"
            visible = message.get("excludeFromContext") is not True
            return told_note(key, time, "shell", content, parent, visible=visible)
        case _:
            return told_note(key, time, f"pi/{message.get('role')}", line.text, parent)


def _of_extension(
    line: Line, entry: JsonObject, key: str, parent: str | None, time: datetime
) -> Told:
    kind, blocks = entry["customType"], _blocks(entry["content"])
    if not blocks:
        return told_note(key, time, f"pi/{kind}", line.text, parent)
    if all(block["type"] == "text" for block in blocks):
        text = "\n".join(block["text"] for block in blocks)
        return told_note(key, time, kind, text, parent, visible=True)
    return told_message(key, time, "user", blocks, parent)


def _blocks(content: object) -> list[JsonObject]:
    """Return what a user, or a tool, says."""
    blocks = []
    for raw in blocks_in(content):
        match raw:
            case {"type": "text", "text": str(text)}:
                blocks.append(text_block(text))
            case {"type": "image", "data": str(data), "mimeType": str(media_type)}:
                blocks.append(image_block(data, media_type))
            case _:
                blocks.append(json_block(raw))
    return blocks


def _said(content: object) -> list[JsonObject]:
    """Return what the model says."""
    blocks: list[JsonObject] = []
    for raw in blocks_in(content):
        match raw:
            case {"type": "text", "text": str(text)}:
                blocks.append(text_block(text))
            case {"type": "thinking", "redacted": True}:
                data = text_of(raw.get("thinkingSignature"))
                blocks.append({"type": "redacted_thinking", "data": data})
            case {"type": "thinking", "thinking": str(text)}:
                signature = text_of(raw.get("thinkingSignature"))
                blocks.append({"type": "thinking", "thinking": text, "signature": signature})
            case {"type": "toolCall", "id": str(call), "name": str(name), "arguments": dict(given)}:
                blocks.append({"type": "tool_use", "id": call, "name": name, "input": given})
            case _:
                blocks.append(json_block(raw))
    return blocks


def _is_number(label: object) -> bool:
    """Whether *label* would be read as the number of an entry: no label here may be one."""
    return isinstance(label, str) and label.strip().lstrip("-").isdigit()


def _facts(message: JsonObject) -> JsonObject:
    stop = text_of(message.get("stopReason"))
    facts: JsonObject = {"stop_reason": _STOPS.get(stop, stop) or None}
    if isinstance(message.get("model"), str):
        facts["model"] = message["model"]
    if isinstance(message.get("responseId"), str):
        facts["response_id"] = message["responseId"]
    usage = message.get("usage")
    if isinstance(usage, dict):
        facts["usage"] = usage_of(
            usage.get("input"),
            number_of(usage.get("output")),
            read=usage.get("cacheRead"),
            written=usage.get("cacheWrite"),
        )
    return facts
