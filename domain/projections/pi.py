"""A conversation as a session of pi, version 3: all of its tree, each entry with its parent. Pure.

What pi has no place for (approvals, queued prompts, digests of requests) is left out.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.messages import result_text

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from datetime import datetime

    from domain.events import Entry, Event, MessageAppended, Version
    from domain.messages import JsonObject

_STOPS = {
    "end_turn": "stop", "stop_sequence": "stop", "max_tokens": "length", "tool_use": "toolUse",
    "failed": "error", "interrupted": "aborted", "refusal": "error",
}  # fmt: skip
_NO_COST = {"input": 0, "output": 0, "cacheRead": 0, "cacheWrite": 0, "total": 0}


def pi_session(stream: Iterable[Event]) -> Iterator[JsonObject]:
    """Yield the lines of the session: its header, then its entries."""
    return _Session().lines(stream)


class _Session:
    """Entries of pi, as events come: each hangs from the one that its parent has become."""

    def __init__(self) -> None:
        self._last: dict[Version, str] = {}  # entry of ours -> the last entry of pi that it became
        self._tools: dict[str, str] = {}
        self._leaf: str | None = None
        self._made: str | None = None

    def lines(self, stream: Iterable[Event]) -> Iterator[JsonObject]:
        """Yield the lines."""
        for event in stream:
            match event:
                case events.Started():
                    yield _header(event)
                case events.Entry():
                    yield from self._entry(event)
                case events.LeafMoved(target=target):
                    self._leaf = None if target is None else self._last.get(target)
                case _:
                    fact = self._fact(event)
                    if fact is not None:
                        yield self._next(event, 0, fact)
        if self._leaf != self._made:  # pi's leaf is its last line
            yield self._next(event, 1, {"type": "custom", "customType": "leftfold/leaf"})

    def _next(self, event: Event, index: int, body: JsonObject) -> JsonObject:
        """Return *body* as the next entry, hung from the leaf."""
        key = _key(event.originator_version, index)
        parent, self._leaf, self._made = self._leaf, key, key
        kind = {
            "type": body["type"],
            "id": key,
            "parentId": parent,
            "timestamp": _time(event.timestamp),
        }
        return kind | body

    def _entry(self, entry: Entry) -> Iterator[JsonObject]:
        self._leaf = None if entry.parent is None else self._last.get(entry.parent, self._leaf)
        for index, body in enumerate(self._bodies(entry)):
            yield self._next(entry, index, body)
        if self._leaf is not None:
            self._last[entry.originator_version] = self._leaf

    def _bodies(self, entry: Entry) -> Iterator[JsonObject]:
        match entry:
            case events.MessageAppended():
                for message in self._messages(entry):
                    told = message | {"timestamp": _unix(entry.timestamp)}
                    yield {"type": "message", "message": told}
            case events.Compacted(summary=summary, first_kept=kept, tokens_before=tokens):
                # One that keeps nothing points at itself.
                first = _key(entry.originator_version if kept is None else kept)
                yield {
                    "type": "compaction",
                    "summary": summary,
                    "firstKeptEntryId": first,
                    "tokensBefore": tokens,
                }
            case events.BranchSummarized(summary=summary, left=left):
                yield {
                    "type": "branch_summary",
                    "summary": summary,
                    "fromId": self._last.get(left, "root"),
                }
            case events.NoteAppended(kind=kind, content=content, visible=True):
                yield {
                    "type": "custom_message",
                    "customType": kind,
                    "content": content,
                    "display": True,
                }
            case events.NoteAppended(kind=kind, content=content):
                yield {"type": "custom", "customType": kind, "data": {"content": content}}

    def _fact(self, event: Event) -> JsonObject | None:
        match event:
            case events.ModelChanged(model=model):
                return {"type": "model_change", "provider": "anthropic", "modelId": model}
            case events.ThinkingLevelChanged(level=level):
                return {"type": "thinking_level_change", "thinkingLevel": level}
            case events.LabelChanged(target=target, label=label) if target in self._last:
                labelled = {"type": "label", "targetId": self._last[target]}
                return labelled if label is None else labelled | {"label": label}
            case events.Renamed(name=name):
                return {"type": "session_info", "name": name or ""}
            case _:
                return None

    # -- messages ----------------------------------------------------------------------------------

    def _messages(self, entry: MessageAppended) -> Iterator[JsonObject]:
        role, blocks, _ = entry.content
        blocks = [block for block in blocks if isinstance(block, dict)]
        if role == "assistant":
            for call in entry.content.tool_uses:
                self._tools[call["id"]] = call["name"]
            yield _answer(entry, blocks)
            return
        for block in entry.content.tool_results:
            call = block["tool_use_id"]
            content = block.get("content")
            said = _said(content) if isinstance(content, list) else [_text(result_text(content))]
            yield {
                "role": "toolResult", "toolCallId": call, "toolName": self._tools.get(call, ""),
                "content": said,
                "isError": block.get("is_error") is True,
            }  # fmt: skip
        rest = [block for block in blocks if block.get("type") != "tool_result"]
        if rest or not blocks:
            yield {"role": "user", "content": _said(rest)}


def _key(version: Version, index: int = 0) -> str:
    """Return the id of the entry of pi that is the one with that *index* of an event."""
    return f"{version:06x}{index:02x}"


def _header(started: events.Started) -> JsonObject:
    return {
        "type": "session", "version": 3, "id": str(started.originator_id),
        "timestamp": _time(started.timestamp), "cwd": started.cwd, "harness": "leftfold",
    }  # fmt: skip


def _answer(entry: MessageAppended, blocks: list[JsonObject]) -> JsonObject:
    usage = entry.usage or {}
    counts = {
        "input": usage.get("input_tokens") or 0,
        "output": usage.get("output_tokens") or 0,
        "cacheRead": usage.get("cache_read_input_tokens") or 0,
        "cacheWrite": usage.get("cache_creation_input_tokens") or 0,
    }
    stop = _STOPS.get(entry.stop_reason or "", "stop")
    message: JsonObject = {
        "role": "assistant", "content": [_of_answer(block) for block in blocks],
        "api": "anthropic-messages", "provider": "anthropic", "model": entry.model or "unknown",
        "usage": counts | {"totalTokens": sum(counts.values()), "cost": _NO_COST},
        "stopReason": stop,
    }  # fmt: skip
    return message | ({"responseId": entry.response_id} if entry.response_id else {})


def _of_answer(block: JsonObject) -> JsonObject:
    match block:
        case {"type": "tool_use", "id": str(call), "name": str(name), "input": dict(arguments)}:
            return {"type": "toolCall", "id": call, "name": name, "arguments": arguments}
        case {"type": "thinking", "thinking": str(text)}:
            return {
                "type": "thinking",
                "thinking": text,
                "thinkingSignature": block.get("signature") or "",
            }
        case {"type": "redacted_thinking", "data": str(data)}:
            return {"type": "thinking", "thinking": "", "thinkingSignature": data, "redacted": True}
        case _:
            return _text(str(block.get("text", f"({block.get('type')})")))


def _said(blocks: list[JsonObject]) -> list[JsonObject]:
    return [_of_user(block) for block in blocks if isinstance(block, dict)]


def _of_user(block: JsonObject) -> JsonObject:
    match block:
        case {"type": "image", "source": {"data": str(data), "media_type": str(kind)}}:
            return {"type": "image", "data": data, "mimeType": kind}
        case _:
            return _text(str(block.get("text", f"({block.get('type')})")))


def _text(text: str) -> JsonObject:
    return {"type": "text", "text": text}


def _time(time: datetime) -> str:
    return time.strftime("%Y-%m-%dT%H:%M:%S.") + f"{time.microsecond // 1000:03}Z"


def _unix(time: datetime) -> int:
    return int(time.timestamp() * 1000)
