"""A path as a trajectory of ATIF 1.8, the format that evaluation tools read. Pure.

A step is what somebody says; the results of its calls are the observation of the answer's step.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.messages import result_text

if TYPE_CHECKING:
    from domain.conversation import Conversation
    from domain.events import Entry, MessageAppended, Version
    from domain.messages import JsonObject

VERSION = "ATIF-v1.8"


def trajectory(conversation: Conversation, leaf: Version | None, *, program: str) -> JsonObject:
    """Return the path to *leaf*; *program* is the version of the agent.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    steps: list[JsonObject] = []
    for entry in conversation.path(leaf):
        _add(steps, entry)
    agent: JsonObject = {"name": "leftfold", "version": program}
    if conversation.model is not None:
        agent["model_name"] = conversation.model
    numbered = [{"step_id": number} | step for number, step in enumerate(steps, 1)]
    return {
        "schema_version": VERSION,
        "session_id": str(conversation.id),
        "agent": agent,
        "steps": numbered,
        "final_metrics": {"total_steps": len(steps)} | _totals(steps),
    }


def _add(steps: list[JsonObject], entry: Entry) -> None:
    """Add what *entry* says: a step, or an observation of the answer before it."""
    match entry:
        case events.MessageAppended() if entry.content.role == "assistant":
            steps.append(_step(entry, "agent", "\n".join(entry.content.texts)) | _agent(entry))
        case events.MessageAppended():
            results = [block for block in entry.content.tool_results if _observed(steps, block)]
            said = [
                block
                for block in entry.content.blocks
                if isinstance(block, dict) and block not in results
            ]
            if said or not results:
                steps.append(_step(entry, "user", _content(said)))
        case events.Compacted(summary=text) | events.BranchSummarized(summary=text):
            steps.append(_step(entry, "system", text))
        case events.NoteAppended(content=text, visible=True):
            steps.append(_step(entry, "user", text))


def _step(entry: Entry, source: str, message: str | list[JsonObject]) -> JsonObject:
    time = entry.timestamp.isoformat()
    return {"timestamp": time, "source": source, "message": message}


def _agent(entry: MessageAppended) -> JsonObject:
    """Return what an answer has besides its text."""
    blocks = [block for block in entry.content.blocks if isinstance(block, dict)]
    thoughts = [
        str(b["thinking"]) for b in blocks if b.get("type") == "thinking" and "thinking" in b
    ]
    calls = [
        {"tool_call_id": call["id"], "function_name": call["name"], "arguments": call["input"]}
        for call in entry.content.tool_uses
    ]
    found: JsonObject = {}
    if entry.model is not None:
        found["model_name"] = entry.model
    if any(thoughts):
        found["reasoning_content"] = "\n\n".join(filter(None, thoughts))
    if calls:
        found["tool_calls"] = calls
    if entry.usage is not None:
        found["metrics"] = _metrics(entry.usage)
    return found


def _metrics(usage: JsonObject) -> JsonObject:
    counts = {key: usage.get(key) for key in _COUNTS}
    new, read, written, out = (n if isinstance(n, int) else 0 for n in counts.values())
    return {"prompt_tokens": new + read + written, "cached_tokens": read, "completion_tokens": out}


_COUNTS = (
    "input_tokens", "cache_read_input_tokens", "cache_creation_input_tokens", "output_tokens",
)  # fmt: skip


def _totals(steps: list[JsonObject]) -> JsonObject:
    metrics = [step["metrics"] for step in steps if "metrics" in step]
    return {
        f"total_{key}": sum(each[key] for each in metrics)
        for key in ("prompt_tokens", "completion_tokens", "cached_tokens")
    }


def _observed(steps: list[JsonObject], result: JsonObject) -> bool:
    """Add *result* to the step that asked for it, and say whether there is one."""
    for step in reversed(steps):
        if step["source"] == "agent":
            asked = [call["tool_call_id"] for call in step.get("tool_calls", ())]
            if result["tool_use_id"] not in asked:
                return False
            seen = step.setdefault("observation", {"results": []})
            content = result.get("content")
            parts = _content(content) if isinstance(content, list) else result_text(content)
            seen["results"].append({"source_call_id": result["tool_use_id"], "content": parts})
            return True
    return False


def _content(blocks: list[JsonObject]) -> str | list[JsonObject]:
    """Return what *blocks* say: a text, or parts where there is an image."""
    parts = [_part(block) for block in blocks if isinstance(block, dict)]
    if all(part["type"] == "text" for part in parts):
        return "\n".join(part["text"] for part in parts)
    return parts


def _part(block: JsonObject) -> JsonObject:
    match block:
        case {"type": "text", "text": str(text)}:
            return {"type": "text", "text": text}
        case {"type": "image", "source": {"media_type": str(kind), "data": str(data)}} if (
            kind in _IMAGES
        ):
            source = {"media_type": kind, "path": f"data:{kind};base64,{data}"}
            return {"type": "image", "source": source}
        case _:
            return {"type": "text", "text": f"({block.get('type')})"}


_IMAGES = ("image/jpeg", "image/png", "image/gif", "image/webp")
