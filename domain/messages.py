"""Messages as they are stored and sent: plain JSON, in the form of the Messages API.

Blocks are kept exactly as they came, also those of types that are not known here, and go back out
verbatim. The one reading of a recorded message is `MessageContent`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

if TYPE_CHECKING:
    from collections.abc import Iterable

Json: TypeAlias = Any
JsonObject: TypeAlias = dict[str, Any]

ROLES = ("user", "assistant")


class ToolUseBlock(NamedTuple):
    """A call that can be run: its block has an id, the name of a tool, and an input."""

    raw: JsonObject

    @property
    def id(self) -> str:
        """The id that its result will name."""
        return str(self.raw["id"])

    @property
    def name(self) -> str:
        """The tool."""
        return str(self.raw["name"])

    @property
    def input(self) -> JsonObject:
        """The arguments, as the model wrote them."""
        arguments: JsonObject = self.raw["input"]
        return arguments


class MessageContent(NamedTuple):
    """Who speaks (user or assistant), and the blocks of what is said, raw.

    A block without the shape of its type is neither a text nor a call nor a result. A message that
    makes no sense (a hand edit) is not readable: its bytes stand as a text in its place.
    """

    role: str
    blocks: list[Json]
    is_readable: bool = True

    @property
    def texts(self) -> list[str]:
        """The text blocks, in order."""
        texts = []
        for raw in self.blocks:
            match raw:
                case {"type": "text", "text": str(text)}:
                    texts.append(text)
        return texts

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks."""
        return "\n".join(self.texts)

    @property
    def prompt(self) -> str:
        """What the user typed: the first text, without the files that go with it."""
        return next(iter(self.texts), "")

    @property
    def tool_uses(self) -> list[JsonObject]:
        """The calls that this message asks for, in order."""
        calls = []
        for raw in self.blocks:
            match raw:
                case {"type": "tool_use", "id": str(), "name": str(), "input": dict()}:
                    calls.append(raw)
        return calls

    @property
    def tool_results(self) -> list[JsonObject]:
        """The results that this message carries, in order."""
        results = []
        for raw in self.blocks:
            match raw:
                case {"type": "tool_result", "tool_use_id": str()}:
                    results.append(raw)
        return results


def blocks_of(content: Json) -> list[Json]:
    """Return *content*, which the API allows to be a string, as a list of raw blocks."""
    if isinstance(content, list):
        return content
    return [{"type": "text", "text": content}] if isinstance(content, str) else []


def result_text(content: Json) -> str:
    """Return the text of a result's *content*; blocks that are not text are named in brackets."""
    if isinstance(content, str):
        return content
    parts = [part for part in blocks_of(content) if isinstance(part, dict)]
    return "\n".join(str(part.get("text", f"[{part.get('type')}]")) for part in parts)


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
