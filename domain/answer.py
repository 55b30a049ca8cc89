"""An answer as it arrives: a left fold over the raw stream events of the Messages API.

The SDK's own accumulation re-parses a tool's whole input at each delta, turns unknown block types
into text and drops what it does not know (facts.md, 1); this fold keeps blocks as they came.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from domain.messages import JsonObject

_DELTA_FIELDS = {
    "text_delta": "text",
    "thinking_delta": "thinking",
    "signature_delta": "signature",
}


class Answer:
    """What the model has said so far, and whether it is all."""

    def __init__(self) -> None:
        self.response_id: str | None = None
        self.stop_reason: str | None = None
        self.usage: JsonObject = {}
        self._blocks: dict[int, JsonObject] = {}
        self._pieces: dict[int, dict[str, list[str]]] = {}
        self._ended: set[int] = set()

    def apply(self, event: JsonObject) -> None:
        """Fold one raw stream event in; types that are not known here change nothing."""
        match event:
            case {"type": "message_start", "message": dict(message)}:
                self.response_id = message.get("id")
                self.usage.update(message.get("usage") or {})
            case {"type": "content_block_start", "index": int(index), "content_block": dict(raw)}:
                self._blocks[index] = dict(raw)
                self._pieces[index] = {}
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                self._add_delta(index, delta)
            case {"type": "content_block_stop", "index": int(index)}:
                self._ended.add(index)
            case {"type": "message_delta", "delta": dict(delta)}:
                self.stop_reason = delta.get("stop_reason") or self.stop_reason
                usage = event.get("usage") or {}
                self.usage.update({k: v for k, v in usage.items() if v is not None})

    def _add_delta(self, index: int, delta: JsonObject) -> None:
        if index not in self._blocks:
            return
        kind = str(delta.get("type"))
        pieces = self._pieces[index]
        if kind in _DELTA_FIELDS:
            field = _DELTA_FIELDS[kind]
            pieces.setdefault(field, []).append(str(delta.get(field) or ""))
        elif kind == "input_json_delta":
            pieces.setdefault("input", []).append(str(delta.get("partial_json") or ""))
        elif kind == "citations_delta":
            raw = self._blocks[index]
            raw["citations"] = [*(raw.get("citations") or []), delta.get("citation")]

    @property
    def is_complete(self) -> bool:
        """Whether the API said why the model stopped. A stream may end without (trap 1)."""
        return self.stop_reason is not None

    @property
    def content(self) -> list[JsonObject]:
        """The blocks as they came, in order."""
        return [self._block(index) for index in sorted(self._blocks)]

    @property
    def kept_if_cut_short(self) -> list[JsonObject]:
        """What is worth keeping of an answer that was cut short.

        Text that is not blank, and thinking that is whole and signed (case C1). Calls are left
        out: they never ran, and an input that was cut off must never be believed (trap 2).
        """
        kept = []
        for index in sorted(self._blocks):
            raw = self._block(index)
            match raw.get("type"):
                case "text" if str(raw.get("text", "")).strip():
                    kept.append(raw)
                case "thinking" if raw.get("signature") and index in self._ended:
                    kept.append(raw)
                case "redacted_thinking" if index in self._ended:
                    kept.append(raw)
        return kept if any(raw["type"] == "text" for raw in kept) else []

    def _block(self, index: int) -> JsonObject:
        raw = dict(self._blocks[index])
        for field, pieces in self._pieces[index].items():
            text = "".join(pieces)
            raw[field] = _parsed(text) if field == "input" else str(raw.get(field) or "") + text
        return raw


def _parsed(text: str) -> JsonObject:
    """Return a tool's input; no JSON object is kept as ``{"unparsed": …}``, which no tool takes.

    The standard library's parser reads what models write (lone surrogates, NaN); the text is made
    valid when it is recorded.
    """
    try:
        parsed = json.loads(text or "{}")
    except (ValueError, RecursionError):
        parsed = None
    return parsed if isinstance(parsed, dict) else {"unparsed": text}
