"""Chats of Gemini CLI: a line of facts, then messages; a message that is told again counts anew.

An older file is one document with the same messages in a list.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from domain.foreign import BEFORE, Told, told_message, told_note
from infrastructure.histories.source import (
    EPOCH,
    Line,
    Origin,
    Source,
    arguments_of,
    blocks_in,
    damage,
    image_block,
    json_block,
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

NAME = "gemini-cli"
_FACTS = "$set"


def origin(source: Source) -> Origin | None:
    """Return of what chat *source* is: its first line, or the document, says so."""
    first = next(_lines(source), None)
    facts = (first.value if first is not None else None) or {}
    session = facts.get("sessionId")
    if not isinstance(session, str) or "startTime" not in facts or "uuid" in facts:
        return None
    return Origin(session, time_of(facts["startTime"], EPOCH))


def told(source: Source, origin: Origin) -> Iterator[Told]:
    """Yield the messages, where they were told first, as they were told last."""
    last = _last_told(source)
    seen: set[str] = set()
    time = origin.started
    for line in _lines(source):
        value = line.value
        if value is None:
            yield damage(line, time)
            continue
        key = text_of(value.get("id"), line.key)
        if key in seen or _is_facts(value):
            continue
        seen.add(key)
        value = last.get(key, value)
        time = time_of(value.get("timestamp"), time)
        yield from _message(key, value, time)


def _lines(source: Source) -> Iterator[Line]:
    """Yield the lines of *source*; of a document its facts, then its messages, as lines."""
    lines = source.lines()
    first = next(lines, None)
    if first is not None and first.value is not None and "messages" not in first.value:
        yield first
        yield from lines
        return
    document = source.document()
    if isinstance(document, dict) and isinstance(document.get("messages"), list):
        source.damaged, source.unfinished = 0, False
        yield Line(1, 0, b"", {key: document[key] for key in document if key != "messages"})
        for number, value in enumerate(objects(document["messages"]), 2):
            yield Line(number, 0, msgspec.json.encode(value), value)


def _last_told(source: Source) -> dict[str, JsonObject]:
    """Return the messages that are told again, by id, as they were told last."""
    found: dict[str, JsonObject] = {}
    once: set[str] = set()
    for line in _lines(source):
        key = (line.value or {}).get("id")
        if isinstance(key, str) and line.value is not None:
            if key in once:
                found[key] = line.value
            once.add(key)
    return found


def _is_facts(value: JsonObject) -> bool:
    return _FACTS in value or ("sessionId" in value and "startTime" in value)


def _message(key: str, value: JsonObject, time: datetime) -> Iterator[Told]:
    match value.get("type"):
        case "user":
            yield told_message(key, time, "user", _blocks(value.get("content")))
        case "gemini":
            yield from _answer(key, value, time)
        case kind:
            yield told_note(key, time, f"{NAME}/{kind}", json_text(value))


def _answer(key: str, value: JsonObject, time: datetime) -> Iterator[Told]:
    """Yield an answer, and the results of its calls, which stand in it."""
    said: list[JsonObject] = [
        {"type": "thinking", "thinking": text, "signature": ""}
        for thought in objects(value.get("thoughts"))
        if (text := _thought(thought))
    ]
    said += [block for block in _blocks(value.get("content")) if block.get("text", " ")]
    calls = [
        call | {"id": text_of(call.get("id"), f"{key}/{number}")}
        for number, call in enumerate(objects(value.get("toolCalls")))
        if isinstance(call.get("name"), str)
    ]
    said += [
        {
            "type": "tool_use", "id": call["id"], "name": call["name"],
            "input": arguments_of(call.get("args")),
        }
        for call in calls
    ]  # fmt: skip
    yield told_message(
        key, time, "assistant", said, model=text_of(value.get("model")) or None,
        stop_reason="tool_use" if calls else "end_turn", usage=_usage(value.get("tokens")),
    )  # fmt: skip
    for number, call in enumerate(calls):
        if "result" not in call and call.get("status") not in ("error", "cancelled"):
            continue  # it was not there yet
        result: JsonObject = {
            "type": "tool_result", "tool_use_id": call["id"], "content": _result(call),
        }  # fmt: skip
        if call.get("status") in ("error", "cancelled"):
            result["is_error"] = True
        done = time_of(call.get("timestamp"), time)
        yield told_message(f"{key}/{number}", done, "user", [result], BEFORE)


def _thought(thought: JsonObject) -> str:
    parts = (text_of(thought.get("subject")), text_of(thought.get("description")))
    return "\n\n".join(filter(None, parts))


def _blocks(content: Any) -> list[JsonObject]:
    if isinstance(content, dict):
        content = [content]
    blocks = []
    for raw in blocks_in(content):
        match raw:
            case {"text": str(text)}:
                blocks.append(text_block(text))
            case {"inlineData": {"mimeType": str(kind), "data": str(data)}} if kind.startswith(
                "image/"
            ):
                blocks.append(image_block(data, kind))
            case _:
                blocks.append(json_block(raw))
    return blocks


def _result(call: JsonObject) -> str:
    """Return what a call gave: the output in its response, else what was shown of it."""
    for part in objects(call.get("result")):
        response = part.get("functionResponse")
        answer = response.get("response") if isinstance(response, dict) else None
        if isinstance(answer, dict):
            said = answer.get("output", answer.get("error"))
            return said if isinstance(said, str) else json_text(answer)
    return text_of(call.get("resultDisplay")) or json_text(call.get("result"))


def _usage(counts: Any) -> JsonObject | None:
    """Return token counts as ours are: what was cached is not in the input; thoughts are output."""
    if not isinstance(counts, dict):
        return None
    cached = number_of(counts.get("cached"))
    output = number_of(counts.get("output")) + number_of(counts.get("thoughts"))
    return usage_of(number_of(counts.get("input")) - cached, output, read=cached)
