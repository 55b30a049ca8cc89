"""Sessions of Claude Code: lines with a uuid that name their parents.

An answer is written block by block, each in a line with the same ``message.id``: they are put
together where the first one stands, with the usage of the last. The results of calls that ran at
once hang from different lines of one answer; here each hangs from the result before it.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

import msgspec

from domain import events
from domain.foreign import BEFORE, Told, told_message, told_note
from domain.messages import ROLES, blocks_of
from infrastructure.histories.source import (
    EPOCH,
    Line,
    Origin,
    Source,
    blocks_in,
    damage,
    nameless,
    number_of,
    text_of,
    time_of,
)

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from domain.messages import JsonObject

NAME = "claude-code"
_HEAD = 200
_KINDS = ("user", "assistant", "system", "attachment", "progress", "summary")
_NOWHERE = (None, BEFORE)
_TITLES = {"summary": "summary", "ai-title": "aiTitle", "custom-title": "customTitle"}


def origin(source: Source) -> Origin | None:
    """Return of what session *source* is: its lines say so, and where it worked."""
    for line in source.lines(_HEAD):
        value = line.value or {}
        session, kind = value.get("sessionId"), value.get("type")
        if not isinstance(session, str) or kind not in _KINDS or "uuid" not in value:
            continue
        agent = value.get("agentId")
        is_inner = value.get("isSidechain") is True and isinstance(agent, str)
        return Origin(
            f"{session}/{agent}" if is_inner else session,
            time_of(value.get("timestamp"), EPOCH),
            text_of(value.get("cwd")) or None,
            text_of(value.get("version")),
            session if is_inner else None,
        )
    for line in source.lines(_HEAD):
        if line.value is not None and _is_message(line.value):
            began = time_of(line.value.get("timestamp"), EPOCH)
            cwd = text_of(line.value.get("cwd")) or None
            return Origin(nameless(source, line.value), began, cwd)
    return None


def told(source: Source, origin: Origin) -> Iterator[Told]:
    """Yield the messages of the session; lines of other kinds are notes."""
    return _Session(source, origin).told()


class _Session:
    """One reading of a session."""

    def __init__(self, source: Source, origin: Origin) -> None:
        self._source = source
        self._time = origin.started
        self._answers = _lines_of_answers(source)
        self._written: dict[str, str] = {}  # of each answer, the key of what hangs last from it
        self._tips: dict[str, str] = {}  # key of an answer -> its last result so far
        self._same: dict[str, str] = {}  # uuid of a further line of an answer -> its key
        self._boundaries: dict[str, JsonObject] = {}
        self._is_inner = origin.parent is not None

    def told(self) -> Iterator[Told]:
        for line in self._source.lines():
            if line.value is None:
                yield damage(line, self._time)
                continue
            # In one file with the session, an inner agent's lines are a tree of their own.
            is_aside = line.value.get("isSidechain") is True and not self._is_inner
            for told in self._line(line, line.value):
                yield told._replace(is_aside=is_aside)

    def _line(self, line: Line, value: JsonObject) -> Iterator[Told]:
        self._time = time = time_of(value.get("timestamp"), self._time)
        kind = value.get("type")
        key = text_of(value.get("uuid"), line.key)
        title = value.get(_TITLES.get(str(kind), ""))
        if isinstance(title, str) and title.strip():
            yield Told(key, events.Renamed(timestamp=time, name=" ".join(title.split())))
            return
        if "uuid" not in value and not _is_message(value):  # it belongs to no branch
            yield told_note(key, time, f"{NAME}/{kind}", line.text)
            return
        parent = self._parent(value) if "uuid" in value else BEFORE
        if kind == "system" and value.get("subtype") == "compact_boundary":
            self._boundaries[key] = value
            yield Told(key, None, self._known(text_of(value.get("logicalParentUuid"))) or parent)
        elif _is_message(value):
            yield from self._message(value, value["message"], key, parent, time)
        elif prompt := _queued(value):
            yield told_message(key, time, "user", blocks_of(prompt), parent)
        else:
            yield told_note(key, time, f"{NAME}/{kind}", line.text, parent)

    def _parent(self, value: JsonObject) -> str | None:
        parent = value.get("parentUuid")
        return self._known(parent) if isinstance(parent, str) else None

    def _known(self, uuid: str) -> str:
        return self._same.get(uuid, uuid)

    def _message(
        self, value: JsonObject, message: JsonObject, key: str, parent: str | None, time: datetime
    ) -> Iterator[Told]:
        if value["type"] == "assistant":
            yield from self._answer(message, key, parent, time)
            return
        content = blocks_in(message["content"])
        boundary = self._boundaries.pop(parent or "", None)
        if value.get("isCompactSummary") is True and boundary is not None:
            yield _compacted(boundary, content, key, parent, time)
            return
        if any(block.get("type") == "tool_result" for block in content) and parent not in _NOWHERE:
            root = parent
            parent = self._tips.get(root, root)
            self._tips[root] = key
            self._tips[key] = key
        yield told_message(key, time, "user", content, parent)

    def _answer(
        self, message: JsonObject, key: str, parent: str | None, time: datetime
    ) -> Iterator[Told]:
        name = text_of(message.get("id"))
        if name in self._written:
            self._same[key] = self._written[name]
            return
        if name:
            self._written[name] = key
        parts = [message]
        for offset, length in self._answers.get(name, ())[1:]:
            further = self._source.value_at(offset, length).get("message")
            parts += [further] if isinstance(further, dict) else []
        last = parts[-1]
        yield told_message(
            key, time, "assistant", _blocks(parts), self._after_results(parent), **_facts(last)
        )

    def _after_results(self, parent: str | None) -> str | None:
        """Return the last result that hangs from *parent*: what follows one result follows all."""
        return None if parent is None else self._tips.get(parent, parent)


class _Named(msgspec.Struct, frozen=True):
    """What an answer is called."""

    id: str = ""


class _Answer(msgspec.Struct, frozen=True):
    """What is looked at of each line beforehand."""

    type: str = ""
    message: _Named = _Named()


_answer = msgspec.json.Decoder(_Answer).decode


def _lines_of_answers(source: Source) -> dict[str, list[tuple[int, int]]]:
    """Return where the lines of each answer are that has several."""
    found: dict[str, list[tuple[int, int]]] = {}
    for offset, raw in source.places():
        with suppress(msgspec.MsgspecError, UnicodeError):
            line = _answer(raw)
            if line.type == "assistant" and line.message.id:
                found.setdefault(line.message.id, []).append((offset, len(raw)))
    return {name: places for name, places in found.items() if len(places) > 1}


def _is_message(value: JsonObject) -> bool:
    message = value.get("message")
    return value.get("type") in ROLES and isinstance(message, dict) and "content" in message


def _blocks(parts: list[JsonObject]) -> list[JsonObject]:
    """Return the blocks of all lines of an answer, each once: some write all so far again."""
    blocks: list[JsonObject] = []
    for part in parts:
        for block in blocks_in(part.get("content")):
            if block not in blocks:
                blocks.append(block)
    return blocks


def _facts(message: JsonObject) -> JsonObject:
    facts: JsonObject = {"stop_reason": text_of(message.get("stop_reason")) or None}
    if isinstance(message.get("model"), str):
        facts["model"] = message["model"]
    if isinstance(message.get("id"), str):
        facts["response_id"] = message["id"]
    if isinstance(message.get("usage"), dict):
        facts["usage"] = message["usage"]
    return facts


def _compacted(
    boundary: JsonObject, content: list[JsonObject], key: str, parent: str | None, time: datetime
) -> Told:
    summary = "\n".join(text_of(block.get("text")) for block in content).strip() or "(no summary)"
    metadata = boundary.get("compactMetadata")
    before = metadata.get("preTokens") if isinstance(metadata, dict) else 0
    event = events.Compacted(
        timestamp=time, parent=None, summary=summary, first_kept=None,
        tokens_before=number_of(before), reason="imported",
    )  # fmt: skip
    return Told(key, event, parent)


def _queued(value: JsonObject) -> str:
    """Return the prompt that was typed while the agent worked, if the line is one."""
    attachment = value.get("attachment")
    if isinstance(attachment, dict) and attachment.get("type") == "queued_command":
        return text_of(attachment.get("prompt"))
    return ""
