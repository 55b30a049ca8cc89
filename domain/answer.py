"""An answer as it arrives: a left fold over the raw stream events of the Messages API.

The SDK's own accumulation re-parses a tool's whole input at each delta, turns unknown block types
into text and drops what it does not know (facts.md, 1); this fold keeps blocks as they came.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from domain.block_shapes import in_shape

if TYPE_CHECKING:
    from domain.messages import JsonObject

_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}
UNPARSED = "unparsed"
"""The only key of a call's input that is no JSON object: what came in its place."""

_THINKING = ("thinking", "redacted_thinking")

_MOST_TOKENS = 10**9
"""No answer and no window has more; a count that says so is none."""

_Key = tuple[int, int]


class Answer:
    """What the model has said so far, why it stopped, and what that used.

    Whatever a server sends is folded: what has not the shape of an event changes nothing.
    """

    def __init__(self) -> None:
        self.response_id: str | None = None
        self.stop_reason: str | None = None
        self.stop_details: JsonObject = {}
        self.usage: JsonObject = {}
        self._blocks: dict[_Key, JsonObject] = {}
        self._pieces: dict[_Key, dict[str, list[str]]] = {}
        self._ended: set[_Key] = set()
        self._latest: dict[int, _Key] = {}

    def apply(self, event: JsonObject) -> None:
        """Fold one raw stream event in; types that are not known here change nothing."""
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.response_id = _text_or_none(message.get("id"))
                self.usage.update(_counts(message.get("usage")))
            case {"type": "content_block_start", "index": int(index), "content_block": dict(raw)}:
                self._begin(index, raw)
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                if index in self._latest:
                    self._add_delta(self._latest[index], delta)
            case {"type": "content_block_stop", "index": int(index)} if index in self._latest:
                self._ended.add(self._latest[index])
            case {"type": "message_delta", "delta": dict(delta)}:
                self.stop_reason = _text_or_none(delta.get("stop_reason")) or self.stop_reason
                details = delta.get("stop_details")
                self.stop_details = details if isinstance(details, dict) else self.stop_details
                counts = _counts(event.get("usage"))
                self.usage.update({k: v for k, v in counts.items() if v is not None})

    def _begin(self, index: int, raw: JsonObject) -> None:
        """Begin a block. One more of the same index is another one: nothing that came is lost."""
        if not isinstance(raw.get("type"), str):
            return
        key = (index, len(self._blocks))
        self._latest[index] = key
        self._blocks[key] = dict(raw)
        self._pieces[key] = {}

    def _add_delta(self, key: _Key, delta: JsonObject) -> None:
        kind = str(delta.get("type"))
        pieces = self._pieces[key]
        if kind in _DELTA_FIELDS:
            field = _DELTA_FIELDS[kind]
            piece = delta.get(field)
            pieces.setdefault(field, []).append(piece if isinstance(piece, str) else "")
        elif kind == "input_json_delta":
            pieces.setdefault("input", []).append(str(delta.get("partial_json") or ""))
        elif kind == "citations_delta":
            raw = self._blocks[key]
            earlier = raw.get("citations")
            cited = earlier if isinstance(earlier, list) else []
            raw["citations"] = [*cited, delta.get("citation")]

    @property
    def calls_are_whole(self) -> bool:
        """Whether every call has come to its end, and its input is one."""
        return all(
            key in self._ended and UNPARSED not in self._block(key)["input"]
            for key, raw in self._blocks.items()
            if raw["type"] == "tool_use"
        )

    @property
    def says_something(self) -> bool:
        """Whether there is more in it than thinking and blank text."""
        return any(
            raw["text"].strip() if raw["type"] == "text" else True
            for raw in self.content
            if raw["type"] not in _THINKING
        )

    @property
    def content(self) -> list[JsonObject]:
        """The blocks as they came, in order."""
        return [self._block(key) for key in sorted(self._blocks)]

    @property
    def kept_if_cut_short(self) -> list[JsonObject]:
        """What is worth keeping of an answer that was cut short.

        Text that is not blank, and thinking that is whole and signed (case C1). Calls are left
        out: they never ran, and an input that was cut off must never be believed (trap 2).
        """
        kept = []
        for key in sorted(self._blocks):
            raw = self._block(key)
            match raw.get("type"):
                case "text" if raw["text"].strip():
                    kept.append(raw)
                case "thinking" if raw.get("signature") and key in self._ended:
                    kept.append(raw)
                case "redacted_thinking" if key in self._ended:
                    kept.append(raw)
        return kept if any(raw["type"] == "text" for raw in kept) else []

    def _block(self, key: _Key) -> JsonObject:
        raw = dict(self._blocks[key])
        for field, pieces in self._pieces[key].items():
            text = "".join(pieces)
            if field == "input":
                raw[field] = _parsed(text)
            else:
                began = raw.get(field)
                raw[field] = (began if isinstance(began, str) else "") + text
        if raw["type"] == "tool_use" and not isinstance(raw.get("input"), dict):
            raw["input"] = {UNPARSED: raw.get("input")}
        return in_shape(raw)


def _text_or_none(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _counts(usage: object) -> JsonObject:
    """Return *usage* without counts that are none: no number, below zero, beyond all measure."""
    if not isinstance(usage, dict):
        return {}
    return {
        kind: count
        for kind, count in usage.items()
        if not str(kind).endswith("_tokens")
        or count is None
        or (type(count) is int and 0 <= count <= _MOST_TOKENS)
    }


def _parsed(text: str) -> JsonObject:
    """Return a tool's input; no JSON object is kept as ``{"unparsed": …}``, which no tool takes.

    The standard library's parser reads what models write (lone surrogates, NaN); the text is made
    valid when it is recorded.
    """
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, dict) else {UNPARSED: text}
