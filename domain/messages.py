"""The typed view of messages and their content blocks.

A message is stored as plain JSON (`domain.raw_messages`), exactly as it came. The pydantic models
here check what a program relies on, and keep unknown block types and unknown keys verbatim, so
that what a newer model sends goes back out as it came. Nothing that only folds, shows or counts
needs this module, whose models take a sixth of a second to import.
"""

from __future__ import annotations

from typing import Literal, TypeAlias

from pydantic import BaseModel, ConfigDict, Field, ValidationError, field_validator

from domain.raw_messages import (
    Json,
    JsonObject,
    blocks_of,
    result_text,
    tool_result_message,
    user_message,
)

__all__ = [
    "Block",
    "Json",
    "JsonObject",
    "Message",
    "RedactedThinkingBlock",
    "Role",
    "TextBlock",
    "ThinkingBlock",
    "ToolResultBlock",
    "ToolUseBlock",
    "block",
    "blocks_of",
    "tool_result_message",
    "user_message",
]

Role: TypeAlias = Literal["user", "assistant"]


class Block(BaseModel):
    """A content block of any type. Unknown types are instances of this class itself."""

    model_config = ConfigDict(extra="allow", frozen=True)

    type: str


class TextBlock(Block):
    """Plain text."""

    type: Literal["text"] = "text"
    text: str


class ThinkingBlock(Block):
    """A model's reasoning. Byte-exact and signed, or the API refuses it (case C2)."""

    type: Literal["thinking"] = "thinking"
    thinking: str
    signature: str = ""


class RedactedThinkingBlock(Block):
    """Reasoning that only the model can read."""

    type: Literal["redacted_thinking"] = "redacted_thinking"
    data: str


class ToolUseBlock(Block):
    """A call of a tool, asked for by the model."""

    type: Literal["tool_use"] = "tool_use"
    id: str
    name: str
    input: JsonObject


class ToolResultBlock(Block):
    """The answer to one call."""

    type: Literal["tool_result"] = "tool_result"
    tool_use_id: str
    content: str | list[Json] = ""
    is_error: bool = False

    # Whatever its content is, it answers the call: a result that did not count as one would be
    # answered a second time (case A3).
    @field_validator("content", mode="before")
    @classmethod
    def _content(cls, content: Json) -> Json:
        return content if isinstance(content, str | list) else ""

    @field_validator("is_error", mode="before")
    @classmethod
    def _is_error(cls, is_error: Json) -> bool:
        return is_error is True

    @property
    def text(self) -> str:
        """The result's text; blocks that are not text are named in brackets."""
        return result_text(self.content)


_BLOCK_TYPES: dict[str, type[Block]] = {
    "text": TextBlock,
    "thinking": ThinkingBlock,
    "redacted_thinking": RedactedThinkingBlock,
    "tool_use": ToolUseBlock,
    "tool_result": ToolResultBlock,
}


def block(raw: Json) -> Block:
    """Return the typed view of one raw content block.

    A block of an unknown type, or one that does not have the shape of its type (a hand-edited
    log), becomes a plain `Block` that still carries everything.
    """
    if not isinstance(raw, dict):
        return Block(type="unreadable", value=raw)  # type: ignore[call-arg]
    kind = raw.get("type")
    try:
        return _BLOCK_TYPES.get(str(kind), Block).model_validate(raw)
    except ValidationError:
        return Block.model_validate({**raw, "type": str(kind)})


class Message(BaseModel):
    """One message: who speaks, and the blocks of what is said."""

    model_config = ConfigDict(extra="allow", frozen=True)

    role: Role
    content: tuple[Block, ...] = Field(default=())

    @field_validator("content", mode="before")
    @classmethod
    def _typed_blocks(cls, content: Json) -> tuple[Block, ...]:
        return tuple(block(raw) for raw in blocks_of(content))

    @property
    def text(self) -> str:
        """The text blocks, joined by line breaks."""
        return "\n".join(part.text for part in self.content if isinstance(part, TextBlock))

    @property
    def tool_uses(self) -> tuple[ToolUseBlock, ...]:
        """The calls that this message asks for, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolUseBlock))

    @property
    def tool_results(self) -> tuple[ToolResultBlock, ...]:
        """The results that this message carries, in order."""
        return tuple(part for part in self.content if isinstance(part, ToolResultBlock))
