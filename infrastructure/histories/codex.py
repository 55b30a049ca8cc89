"""Rollouts of Codex: items of the Responses API, in lines with a time, a type and a payload.

An answer is what the model says up to the next thing that somebody else does.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.foreign import Told, told_message, told_note
from domain.text import decoded
from infrastructure.histories.source import (
    EPOCH,
    Line,
    Origin,
    Source,
    arguments_of,
    blocks_in,
    damage,
    image_of,
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

    from domain.messages import JsonObject

NAME = "codex"
_HEAD = 5
_TEXTS = {
    "user_message": "message",
    "agent_message": "message",
    "agent_reasoning": "text",
    "agent_reasoning_raw_content": "text",
}
"""Kinds of ``event_msg`` that say what most often an item says as well, and where."""


def origin(source: Source) -> Origin | None:
    """Return of what session *source* is: its first line says so, in 2025 without a type."""
    for line in source.lines(_HEAD):
        match line.value:
            case {"id": str(session), "timestamp": str(began), "instructions": _, **others} if (
                "type" not in others
            ):
                return Origin(session, time_of(began, EPOCH))
            case {"type": "session_meta", "payload": {"id": str(session)} as meta}:
                started = meta.get("timestamp") or (line.value or {}).get("timestamp")
                return Origin(
                    session,
                    time_of(started, EPOCH),
                    text_of(meta.get("cwd")) or None,
                    text_of(meta.get("cli_version")),
                    text_of(meta.get("forked_from_id")) or None,
                )
    return None


def told(source: Source, origin: Origin) -> Iterator[Told]:
    """Yield the messages of the rollout; items of other kinds are notes."""
    return _Rollout(source, origin).told()


class _Rollout:
    """One reading of a rollout, with the answer that is not whole yet."""

    def __init__(self, source: Source, origin: Origin) -> None:
        self._source = source
        self._time = origin.started
        self._model: str | None = None
        self._key = ""
        self._said: list[JsonObject] = []
        self._said_at = origin.started
        self._usage: JsonObject | None = None
        self._notes: list[Told] = []
        self._texts = _texts_of_items(source)

    def told(self) -> Iterator[Told]:
        for line in self._source.lines():
            if line.value is None:
                yield from self._whole_answer()
                yield damage(line, self._time)
                continue
            kind, payload = _payload(line.value)
            if payload is not None:
                self._time = time_of(line.value.get("timestamp"), self._time)
                yield from self._line(line, kind, payload)
            else:
                yield from self._whole_answer()
                yield told_note(line.key, self._time, f"{NAME}/{kind}", line.text)
        yield from self._whole_answer()

    def _line(self, line: Line, kind: object, payload: JsonObject) -> Iterator[Told]:
        match kind, payload:
            case "response_item", _:
                yield from self._item(line, payload)
            case "turn_context", {"model": str(model)}:
                self._model = model
            case "event_msg", {"type": "token_count", "info": dict(info)} if self._said:
                self._usage = _usage(info.get("last_token_usage")) or self._usage
            case "event_msg", {"type": "turn_aborted"}:
                yield from self._whole_answer()
                ended = events.TurnEnded(timestamp=self._time, outcome="interrupted")
                yield Told(line.key, ended)
            case "event_msg", {"type": "token_count"}:
                pass
            case "event_msg", {"type": str(said)} if self._is_said(said, payload):
                pass
            case "compacted", {"message": str(summary)} if summary.strip():
                yield from self._whole_answer()
                event = events.Compacted(
                    timestamp=self._time, parent=None, summary=summary, first_kept=None,
                    reason="imported",
                )  # fmt: skip
                yield Told(line.key, event)
            case _:
                # Between the items of one answer it would part them.
                note = told_note(line.key, self._time, f"{NAME}/{kind}", line.text)
                self._notes.append(note)
                if not self._said:
                    yield from self._whole_answer()

    def _is_said(self, kind: str, event: JsonObject) -> bool:
        """Whether an item tells the text of the event."""
        return kind in _TEXTS and hash(text_of(event.get(_TEXTS[kind]))) in self._texts

    def _item(self, line: Line, item: JsonObject) -> Iterator[Told]:
        said = _said(item)
        if said is not None:
            if not self._said:
                self._key, self._said_at = line.key, self._time
            self._said += said
            if item.get("encrypted_content"):
                self._notes.append(
                    told_note(f"{line.key} as it is", self._time, f"{NAME}/reasoning", line.text)
                )
            return
        yield from self._whole_answer()
        match item:
            case {"role": "user", "content": content}:
                yield told_message(line.key, self._time, "user", _blocks(content))
            case {"type": str(kind), "call_id": str(call)} if kind.endswith("_output"):
                result: JsonObject = {
                    "type": "tool_result", "tool_use_id": call, "content": _output(item),
                }  # fmt: skip
                yield told_message(line.key, self._time, "user", [result])
            case _:
                what = item.get("role") or item.get("type")
                yield told_note(line.key, self._time, f"{NAME}/{what}", line.text)

    def _whole_answer(self) -> Iterator[Told]:
        """Yield the answer, now that it is whole, and what stood between its items."""
        said, self._said = self._said, []
        if said:
            stop = "tool_use" if said[-1]["type"] == "tool_use" else "end_turn"
            yield told_message(
                self._key, self._said_at, "assistant", said,
                model=self._model, stop_reason=stop, usage=self._usage,
            )  # fmt: skip
            self._usage = None
        notes, self._notes = self._notes, []
        yield from notes


def _payload(line: JsonObject) -> tuple[object, JsonObject | None]:
    """Return the type of a line and what it carries; in 2025 an item was a line of its own."""
    if "payload" not in line and isinstance(line.get("type"), str):
        return "response_item", line
    payload = line.get("payload")
    return line.get("type"), payload if isinstance(payload, dict) else None


def _texts_of_items(source: Source) -> set[int]:
    """Return hashes of the texts of all items: an event may tell one before its item does."""
    hashes: set[int] = set()
    for _, raw in source.places():
        if b'"response_item"' in raw:
            line = decoded(raw)
            item = line.get("payload") if isinstance(line, dict) else None
            hashes.update(map(hash, _texts(item) if isinstance(item, dict) else ()))
    return hashes


def _texts(item: JsonObject) -> list[str]:
    parts = objects(item.get("summary")) + objects(item.get("content"))
    return [text for part in parts if (text := text_of(part.get("text")))]


def _said(item: JsonObject) -> list[JsonObject] | None:
    """Return what the model says in *item*; None if it is not the model's."""
    match item:
        case {"role": "assistant", "content": content}:
            return _blocks(content)
        case {"type": "reasoning"}:
            text = "\n\n".join(_texts(item))
            return [{"type": "thinking", "thinking": text, "signature": ""}] if text else []
        case {"type": "function_call", "call_id": str(call), "name": str(name)}:
            return [_call(call, name, arguments_of(item.get("arguments")))]
        case {"type": "custom_tool_call", "call_id": str(call), "name": str(name)}:
            return [_call(call, name, {"input": item.get("input")})]
        case {"type": "local_shell_call", "call_id": str(call), "action": dict(action)}:
            return [_call(call, "local_shell", action)]
        case _:
            return None


def _call(call: str, name: str, arguments: JsonObject) -> JsonObject:
    return {"type": "tool_use", "id": call, "name": name, "input": arguments}


def _blocks(content: object) -> list[JsonObject]:
    blocks = []
    for raw in blocks_in(content):
        match raw:
            case {"type": "input_text" | "output_text" | "text", "text": str(text)}:
                blocks.append(text_block(text))
            case {"type": "input_image", "image_url": str(url)} if image := image_of(url):
                blocks.append(image)
            case _:
                blocks.append(json_block(raw))
    return blocks


def _output(item: JsonObject) -> str | list[JsonObject]:
    match item.get("output"):
        case str(text):
            return text
        case list(parts):
            return _blocks(parts)
        case {"content": str(text)}:
            return text
        case other:
            return json_text(other)


def _usage(counts: object) -> JsonObject | None:
    """Return token counts as ours are: what was cached is not in the input."""
    if not isinstance(counts, dict):
        return None
    cached = number_of(counts.get("cached_input_tokens"))
    new = number_of(counts.get("input_tokens")) - cached
    return usage_of(new, number_of(counts.get("output_tokens")), read=cached)
