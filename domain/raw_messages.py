"""Messages as they are stored and sent: plain JSON, in the form of the Messages API.

What is here needs no pydantic: folding a log and projecting a context cost no more than parsing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]


def blocks_of(content: Json) -> list[Json]:
    """Return *content*, which the API allows to be a string, as a list of raw blocks."""
    if isinstance(content, str):
        return [{"type": "text", "text": content}]
    return list(content) if isinstance(content, list | tuple) else []


def user_message(text: str, attachments: Iterable[JsonObject] = ()) -> JsonObject:
    """Return the raw message in which a user says *text*; *attachments* are blocks after it."""
    return {"role": "user", "content": [{"type": "text", "text": text}, *attachments]}


def tool_result_message(
    tool_use_id: str, content: str | list[JsonObject], *, is_error: bool
) -> JsonObject:
    """Return the raw message that answers one tool call."""
    result: JsonObject = {"type": "tool_result", "tool_use_id": tool_use_id, "content": content}
    if is_error:
        result["is_error"] = True
    return {"role": "user", "content": [result]}
