"""What a hook is told: which events it is for, the call that they are about, where it runs."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from app.hooks.outputs import HookEvent
from app.logged import in_order
from domain.events import (
    ApprovalDecided,
    Event,
    Forked,
    MessageAppended,
    Started,
    ToolStarted,
    Unrecognised,
)
from domain.seals import is_sealed

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from app.application import Conversations
    from app.hook_settings import Hook
    from domain.messages import JsonObject

_LOOKED_BACK = 200
"""Events before one in which the call that it is about is looked for."""


class Origin(NamedTuple):
    """Where a conversation is from: events up to *copied* are another's; a *cwd* is trusted."""

    copied: int
    is_own: bool
    cwd: str | None


class Told:
    """Chooses what *hook* is told."""

    def __init__(self, hook: Hook, conversations: Conversations) -> None:
        self._hook = hook
        self._conversations = conversations
        self._origins: dict[UUID, Origin] = {}

    def of(self, event: Event, position: int) -> HookEvent | None:
        """Return what the hook is told of *event*; None if it is not for it."""
        hook = self._hook
        if (event.topic if isinstance(event, Unrecognised) else event.TOPIC) not in hook.events:
            return None
        origin = self.origin(event.originator_id)
        if event.originator_version <= origin.copied or not (origin.is_own or hook.foreign):
            return None
        calls = [self._call(event, id_) for id_ in _calls_of(event)]
        if hook.tools and not any(call and call["name"] in hook.tools for call in calls):
            return None
        return HookEvent(
            **in_order(event, position),
            hook=hook.name,
            event_id=f"{event.originator_id}@{event.originator_version}",
            attempt=1,
            call=calls[0] if calls else None,
        )

    def cwd(self, conversation_id: UUID) -> Path:
        """Return where the hook runs: in the conversation's directory, if it was begun here."""
        cwd = self.origin(conversation_id).cwd
        return Path(cwd) if cwd is not None and Path(cwd).is_dir() else Path.home()

    def origin(self, conversation_id: UUID) -> Origin:
        """Return where a conversation is from."""
        if conversation_id not in self._origins:
            first = next(iter(self._conversations.events_of(conversation_id, limit=1)), None)
            forked = self._conversations.events.newest_of(conversation_id, [Forked.TOPIC])
            copied = forked[0].source_version if forked and isinstance(forked[0], Forked) else 0
            is_own = isinstance(first, Started) and is_sealed(first, self._conversations.seals)
            cwd = first.cwd if is_own and isinstance(first, Started) else None
            self._origins[conversation_id] = Origin(copied, is_own, cwd)
        return self._origins[conversation_id]

    def _call(self, event: Event, tool_use_id: str) -> JsonObject | None:
        """Return the call *tool_use_id*, which was asked for before *event*."""
        before = self._conversations.events.get(
            event.originator_id, lte=event.originator_version, desc=True, limit=_LOOKED_BACK
        )
        for earlier in before:
            if isinstance(earlier, MessageAppended) and earlier.model is not None:
                for call in earlier.content.tool_uses:
                    if call.get("id") == tool_use_id:
                        return {name: call.get(name) for name in ("id", "name", "input")}
        return None


def _calls_of(event: Event) -> Iterable[str]:
    """Return the ids of the calls that *event* is about: those of a message that has results."""
    if isinstance(event, ApprovalDecided | ToolStarted):
        return [event.tool_use_id]
    if isinstance(event, MessageAppended) and event.model is None:
        return [str(result.get("tool_use_id")) for result in event.content.tool_results]
    return []
