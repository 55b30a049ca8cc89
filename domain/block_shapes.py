"""The shape of the blocks that a server sends: the API takes back no others.

Servers that only resemble the API send ``"text": 5``, citations that are no list, calls of their
own without an id. Unknown keys and unknown types stay as they came: a newer API knows them.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

from domain.canonical import canonical
from domain.text import valid_json

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.messages import Json, JsonObject

_TYPES: dict[str, type | tuple[type, ...]] = {
    "id": str, "tool_use_id": str, "name": str, "server_name": str, "file_id": str,
    "toolset_name": str, "input": dict, "caller": dict, "citations": list,
}  # fmt: skip
_REQUIRED = {"_tool_use": ("id", "name", "input"), "_tool_result": ("tool_use_id", "content")}
"""The fields of calls, and of their results, that a server makes and answers itself."""
NAME = re.compile(r"[a-zA-Z0-9_-]{1,128}")


def is_name(name: str) -> bool:
    """Whether the API takes *name* for a tool, or for the id of a call."""
    return NAME.fullmatch(name) is not None


def in_shape(raw: JsonObject) -> JsonObject:
    """Return the block *raw* with texts that are texts, and citations that are some.

    Thinking that came as anything else loses its signature: it must never go back.
    """
    match raw.get("type"):
        case "text":
            return _cited(raw | {"text": _as_text(raw.get("text"))})
        case "thinking":
            texts = raw.get("thinking"), raw.get("signature")
            if all(isinstance(text, str) for text in texts):
                return raw
            return raw | {"thinking": _as_text(texts[0]), "signature": ""}
        case _:
            return raw


def of_call(raw: JsonObject) -> JsonObject:
    """Return a call without optional fields of wrong types; the others are `MessageBuilder`'s."""
    wrong = [key for key in ("caller", "toolset_name") if _is_wrong(raw, key)]
    return {key: value for key, value in raw.items() if key not in wrong} if wrong else raw


def misshapen(blocks: Sequence[Json]) -> dict[int, str]:
    """Return which of an answer's *blocks* the API would refuse, by index, and for which field.

    That is for kinds which only servers know. A result goes with the call that it belongs to.
    """
    found: dict[int, str] = {}
    gone: set[Any] = set()
    for index, raw in enumerate(blocks):
        kind = raw.get("type") if isinstance(raw, dict) else None
        if not isinstance(kind, str) or kind in ("tool_use", "text"):
            continue
        required = next((keys for end, keys in _REQUIRED.items() if kind.endswith(end)), ())
        fields = [key for key in required if raw.get(key) is None]
        fields += [key for key in _TYPES if _is_wrong(raw, key)]
        if not fields and raw.get("tool_use_id") in gone:
            fields = ["tool_use_id"]
        if fields:
            found[index] = fields[0]
            gone |= {value for value in (raw.get("id"),) if isinstance(value, str)}
    return found


def _is_wrong(raw: JsonObject, key: str) -> bool:
    return raw.get(key) is not None and not isinstance(raw[key], _TYPES[key])


def _cited(raw: JsonObject) -> JsonObject:
    cited = raw.get("citations")
    if cited is None or (isinstance(cited, list) and all(isinstance(c, dict) for c in cited)):
        return raw
    good = [item for item in cited if isinstance(item, dict)] if isinstance(cited, list) else []
    return {key: value for key, value in raw.items() if key != "citations"} | (
        {"citations": good} if good else {}
    )


def _as_text(value: Json) -> str:
    if value is None or isinstance(value, str):
        return value or ""
    return canonical(valid_json(value)).decode()
