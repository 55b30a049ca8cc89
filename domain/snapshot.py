"""A snapshot: a conversation without its past, so that opening one does not replay all of it."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads the annotations

from domain.events import (
    ApprovalDecided,
    Event,
    Forked,
    InstructionsChanged,
    PromptQueued,
    TurnEnded,
    Version,
)
from domain.limits import Limits  # noqa: TC001 - the same


class ConversationSnapshot(Event, frozen=True, kw_only=True):
    """What `Conversation.fold` made of the events up to this version, but their `History`.

    The number in the topic is that of the fold. It is counted up with each change of what the fold
    makes of recorded events, and older snapshots are no longer read.

    *messages* counts those on the path to the leaf. A snapshot without a *seal* of ours is not
    used: it could claim what the log does not say.
    """

    TOPIC = "ConversationSnapshot/4"
    created_on: datetime
    cwd: str | None
    cwd_seal: str
    name: str | None
    archived: bool
    model: str | None
    max_tokens: int | None
    caching: bool
    thinking_level: str | None
    instructions: InstructionsChanged | None
    origin: Forked | None
    leaf: Version | None
    labels: dict[Version, str]
    queued: list[PromptQueued]
    allowed: list[ApprovalDecided]
    limits: dict[str, Limits]
    withheld: list[tuple[str, Version, str]]
    last_turn: TurnEnded | None
    messages: int
    seal: str = ""


FACTS = (
    "cwd", "cwd_seal", "name", "archived", "model", "max_tokens", "caching", "thinking_level",
    "instructions", "origin", "last_turn", "labels", "allowed", "limits",
)  # fmt: skip
"""The fields that a snapshot and a conversation have alike."""
