"""A snapshot: a conversation without its past, so that opening one does not replay all of it."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads the annotations

from domain.events import Event, Forked, InstructionsChanged, TurnEnded, Version
from domain.limits import Limits  # noqa: TC001 - the same


class ConversationSnapshot(Event, frozen=True, kw_only=True):
    """What `Conversation.fold` made of the events up to this version, but their `History`.

    The number in the topic is that of the fold: whoever changes what the fold makes of recorded
    events counts it up, and snapshots of before are no longer read.

    *messages* counts those on the path to the leaf.
    """

    TOPIC = "ConversationSnapshot/2"
    created_on: datetime
    cwd: str | None
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
    queue: dict[Version, str]
    allowed: list[tuple[str, str | None]]
    limits: dict[str, Limits]
    withheld: list[tuple[str, Version, str]]
    last_turn: TurnEnded | None
    messages: int


FACTS = (
    "cwd", "name", "archived", "model", "max_tokens", "caching", "thinking_level",
    "instructions", "origin", "leaf", "last_turn",
)  # fmt: skip
"""The fields that a snapshot and a conversation have alike, with values that never change."""
