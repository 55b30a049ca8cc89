"""What ``leftfold hooks --json`` prints, and what a hook reads."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads the annotations
from typing import Any, Literal

from app.outputs import OrderedEvent, Output


class HookEvent(OrderedEvent, frozen=True, kw_only=True):
    """What a hook reads on its standard input; the same `event_id` is always the same event."""

    hook: str
    event_id: str
    attempt: int
    call: dict[str, Any] | None


class HookFailure(Output, frozen=True):
    """What went wrong with the event that a hook is at."""

    event_id: str
    attempts: int
    message: str
    time: datetime


class HookListed(Output, frozen=True):
    """An after-hook, and how far it has come; `behind` events are to come."""

    hook: str
    events: tuple[str, ...]
    tools: tuple[str, ...]
    command: str
    position: int
    behind: int
    is_parked: bool
    is_running: bool
    output: str
    failure: HookFailure | None


class HookRan(Output, frozen=True):
    """A hook was run for an event."""

    hook: str
    event_id: str
    position: int
    topic: str
    attempt: int
    outcome: Literal["done", "failed", "parked"]
    message: str | None
