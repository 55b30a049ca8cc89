"""What ``opencode export`` prints: one document, ``{info, messages: [{info, parts}]}``.

A message of the model holds several steps, each a request: here each is an answer of its own, with
the results of its calls after it.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.foreign import Told, told_message, told_note
from infrastructure.histories.source import (
    EPOCH,
    Origin,
    Source,
    arguments_of,
    image_of,
    json_text,
    number_of,
    objects,
    text_block,
    text_of,
    time_of,
    usage_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from domain.messages import JsonObject

NAME = "opencode"
_STEPS = ("step-start", "step-finish")


def origin(source: Source) -> Origin | None:
    """Return of what session *source* is: its ``info`` says so."""
    document = _document(source)
    if document is None:
        return None
    info = document["info"]
    return Origin(
        info["id"],
        _began(info, EPOCH),
        text_of(info.get("directory")) or None,
        text_of(info.get("version")),
        text_of(info.get("parentID")) or None,
    )


def told(source: Source, origin: Origin) -> Iterator[Told]:
    """Yield the messages; parts of other kinds are notes."""
    document = _document(source)
    if document is None:
        return
    title = text_of(document["info"].get("title")).strip()
    if title:
        yield Told("title", events.Renamed(timestamp=origin.started, name=title))
    time = origin.started
    for number, message in enumerate(objects(document["messages"]), 1):
        info = message.get("info")
        if not isinstance(info, dict):
            yield told_note(f"message {number}", time, f"{NAME}/message", json_text(message))
            continue
        time = _began(info, time)
        key = text_of(info.get("id"), f"message {number}")
        parts = objects(message.get("parts"))
        if info.get("role") == "user":
            yield from _prompt(key, parts, time)
        else:
            yield from _answers(key, info, parts, time)


def _document(source: Source) -> JsonObject | None:
    match source.document():
        case {"info": {"id": str()}, "messages": list()} as document:
            return dict(document)
        case _:
            return None


def _began(info: JsonObject, otherwise: datetime) -> datetime:
    time = info.get("time")
    return time_of(time.get("created"), otherwise) if isinstance(time, dict) else otherwise


def _prompt(key: str, parts: list[JsonObject], time: datetime) -> Iterator[Told]:
    said = [block for part in parts if (block := _of_user(part))]
    yield told_message(key, time, "user", said)
    yield from _notes(key, [part for part in parts if not _of_user(part)], time)


def _of_user(part: JsonObject) -> JsonObject | None:
    match part:
        case {"type": "text", "text": str(text)}:
            return text_block(text)
        case {"type": "file", "url": str(url)}:
            return image_of(url)
        case _:
            return None


def _answers(key: str, info: JsonObject, parts: list[JsonObject], time: datetime) -> Iterator[Told]:
    """Yield an answer for each step, each with the results of its calls."""
    others = [
        part for part in parts if part.get("type") not in (*_STEPS, "text", "reasoning", "tool")
    ]
    steps = _steps(parts)
    for number, step in enumerate(steps):
        said = [block for part in step if (block := _of_answer(part))]
        calls = [part for part in step if _is_call(part)]
        is_last = number == len(steps) - 1
        failed = is_last and isinstance(info.get("error"), dict)
        yield told_message(
            f"{key}/{number}", time, "assistant", said,
            model=text_of(info.get("modelID")) or None,
            stop_reason="failed" if failed else "tool_use" if calls else "end_turn",
            usage=_usage(next((p for p in step if p.get("type") == "step-finish"), {})),
        )  # fmt: skip
        for call in calls:
            if call["state"].get("status") in ("completed", "error"):
                yield told_message(f"{key}/{call['callID']}", time, "user", [_result(call)])
    yield from _notes(key, others, time)


def _steps(parts: list[JsonObject]) -> list[list[JsonObject]]:
    steps: list[list[JsonObject]] = [[]]
    for part in parts:
        if part.get("type") == "step-start" and steps[-1]:
            steps.append([])
        steps[-1].append(part)
    return [step for step in steps if any(_of_answer(part) for part in step)]


def _is_call(part: JsonObject) -> bool:
    match part:
        case {"type": "tool", "callID": str(), "tool": str(), "state": dict()}:
            return True
        case _:
            return False


def _of_answer(part: JsonObject) -> JsonObject | None:
    match part:
        case {"type": "text", "text": str(text)} if text:
            return text_block(text)
        case {"type": "reasoning", "text": str(text)} if text:
            return {"type": "thinking", "thinking": text, "signature": _signature(part)}
        case {"callID": str(call), "tool": str(name), "state": dict(state)} if _is_call(part):
            return {
                "type": "tool_use", "id": call, "name": name,
                "input": arguments_of(state.get("input", {})),
            }  # fmt: skip
        case _:
            return None


def _signature(part: JsonObject) -> str:
    match part.get("metadata"):
        case {"anthropic": {"signature": str(signature)}}:
            return signature
        case _:
            return ""


def _result(call: JsonObject) -> JsonObject:
    state = call["state"]
    is_error = state.get("status") == "error"
    result: JsonObject = {
        "type": "tool_result",
        "tool_use_id": call["callID"],
        "content": text_of(state.get("error" if is_error else "output")),
    }
    return result | ({"is_error": True} if is_error else {})


def _notes(key: str, parts: list[JsonObject], time: datetime) -> Iterator[Told]:
    for number, part in enumerate(parts):
        kind = f"{NAME}/{part.get('type')}"
        yield told_note(f"{key}/note {number}", time, kind, json_text(part))


def _usage(finish: JsonObject) -> JsonObject | None:
    counts = finish.get("tokens")
    if not isinstance(counts, dict):
        return None
    cache = counts.get("cache")
    cache = cache if isinstance(cache, dict) else {}
    output = number_of(counts.get("output")) + number_of(counts.get("reasoning"))
    return usage_of(counts.get("input"), output, read=cache.get("read"), written=cache.get("write"))
