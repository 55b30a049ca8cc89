"""Messages of the Messages API, one a line, or in a list: the lesson's ``session.jsonl``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from domain.foreign import Told, told_message, told_note
from domain.messages import ROLES
from infrastructure.histories.source import (
    EPOCH,
    Line,
    Origin,
    Source,
    blocks_in,
    damage,
    nameless,
    objects,
)

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.messages import JsonObject

NAME = "messages"


def origin(source: Source) -> Origin | None:
    """Return of what conversation *source* is: its place and its beginning, for it has no name."""
    first = next(_messages(source), None)
    if first is None or first.value is None or not _is_message(first.value):
        return None
    return Origin(nameless(source, first.value), is_timed=False)


def told(source: Source, origin: Origin) -> Iterator[Told]:  # noqa: ARG001
    """Yield the messages; a system prompt, and what is no message, are notes."""
    for line in _messages(source):
        value = line.value
        if value is None:
            yield damage(line, EPOCH)
        elif _is_message(value):
            yield told_message(
                line.key,
                EPOCH,
                value["role"],
                blocks_in(value["content"]),
                **_facts(value),
            )
        else:
            yield told_note(line.key, EPOCH, f"{NAME}/{value.get('role', 'line')}", line.text)


def _messages(source: Source) -> Iterator[Line]:
    """Yield the lines of *source*, or the messages in it, if it is one document."""
    lines = source.lines()
    first = next(lines, None)
    if first is None or (first.value is not None and "messages" not in first.value):
        if first is not None:
            yield first
            yield from lines
        return
    document: Any = source.document()
    found = document.get("messages") if isinstance(document, dict) else document
    if isinstance(found, list):
        source.damaged = 0
        source.unfinished = False
        for number, value in enumerate(objects(found), 1):
            yield Line(number, 0, msgspec.json.encode(value), value)
        return
    yield from source.lines()


def _is_message(value: JsonObject) -> bool:
    return value.get("role") in ROLES and isinstance(value.get("content"), str | list)


def _facts(value: JsonObject) -> JsonObject:
    """Return what a whole answer of the API says besides its content."""
    if value["role"] == "user":
        return {}
    texts = {"model": "model", "stop_reason": "stop_reason", "id": "response_id"}
    facts: JsonObject = {
        ours: value[theirs] for theirs, ours in texts.items() if isinstance(value.get(theirs), str)
    }
    if isinstance(value.get("usage"), dict):
        facts["usage"] = value["usage"]
    return facts
