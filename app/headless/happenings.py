"""The lines of ``--output json`` and ``--output stream-json``, as types.

What is printed comes from these, and so do the schemas; docs/scripting.md tells the story.
"""

from __future__ import annotations

from typing import Any, Literal
from uuid import UUID  # noqa: TC003 - msgspec reads the annotations

import msgspec

from app.outputs import Damage, Problem, Version  # noqa: TC001


class Happening(msgspec.Struct, frozen=True, tag_field="type"):
    """A line that is printed; its `type` says what happened."""


class Began(Happening, frozen=True, tag="conversation"):
    """The conversation that this is; the first line."""

    id: UUID
    cwd: str | None
    model: str | None
    restored: int
    damage: Damage | msgspec.UnsetType = msgspec.UNSET


class Streamed(Happening, frozen=True, tag="stream"):
    """A stream event of the Messages API, as it came, or a `retry` of ours."""

    event: dict[str, Any]


class Compacting(Happening, frozen=True, tag="compacting"):
    """A context of about so many tokens is about to be summarised."""

    tokens: int


class Compacted(Happening, frozen=True, tag="compacted"):
    """The context is summarised; it has about so many tokens now."""

    tokens: int


class ToolStarted(Happening, frozen=True, tag="tool_started"):
    """A call begins to run."""

    call: dict[str, Any]
    summary: str


class ToolPrinted(Happening, frozen=True, tag="tool_output"):
    """A running tool printed something."""

    tool_use_id: str
    text: str


class ToolResult(Happening, frozen=True, tag="tool_result"):
    """A call has its result in the log, whether it ran, was refused or was stopped."""

    tool_use_id: str
    content: str | list[Any]
    is_error: bool


class ApprovalNeeded(Happening, frozen=True, tag="approval_needed"):
    """The turn waits for an `approve`."""

    tool_use_id: str
    tool: str
    input: dict[str, Any]
    summary: str


class Queued(Happening, frozen=True, tag="queued"):
    """A prompt is in the log, and waits for its turn."""

    version: Version
    text: str


class Complaint(Happening, frozen=True, tag="error"):
    """A line of the input made no sense, or what it asked for failed; nothing else happened."""

    line: int
    message: str


class Result(Happening, frozen=True, tag="result"):
    """What came of a turn, or of a run that failed before there was one; the last line of it."""

    id: UUID | None
    version: Version | None
    outcome: Literal["done", "interrupted", "failed"]
    text: str
    stop_reason: str | None
    usage: dict[str, int]
    error: Problem | msgspec.UnsetType = msgspec.UNSET
    damage: Damage | msgspec.UnsetType = msgspec.UNSET
