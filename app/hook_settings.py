"""After-hooks, as the user's own settings.toml names them: ``[[hooks]]``."""

from __future__ import annotations

from collections import Counter
from typing import Annotated, Any

import msgspec
from msgspec import Meta

from app.errors import UsageError
from app.i18n import _
from app.suggestions import suggestion

ABOUT_TOOLS = ("ApprovalDecided", "MessageAppended", "ToolStarted")
"""Events that may be about a call of a tool."""


class Hook(msgspec.Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A *command* that is run after each of the *events*.

    With *tools*, only for events about calls of these; a message counts if it is a result of one.
    It is killed after *timeout* seconds. *foreign*: also for conversations that were begun
    elsewhere.
    """

    name: Annotated[str, Meta(pattern=r"\A[a-z0-9][a-z0-9_-]{0,31}\Z")]
    events: Annotated[tuple[str, ...], Meta(min_length=1)]
    command: Annotated[str, Meta(min_length=1)]
    tools: tuple[str, ...] = ()
    timeout: Annotated[float, Meta(gt=0, le=86_400)] = 60.0
    foreign: bool = False


def checked(value: Any, place: str) -> tuple[Hook, ...]:
    """Return the hooks that a settings file names; *place* is where it does.

    Raises:
        UsageError: one of them makes no sense.
    """
    from domain.events import TOPICS  # noqa: PLC0415 - few people have hooks

    try:
        hooks = msgspec.convert(value, tuple[Hook, ...])
    except msgspec.ValidationError as error:
        raise UsageError(f"{place}: {error}") from error
    for name, count in Counter(hook.name for hook in hooks).items():
        if count > 1:
            raise UsageError(
                _("{place}: two hooks are named {name!r}").format(place=place, name=name)
            )
    for hook in hooks:
        for topic in hook.events:
            if topic not in TOPICS:
                raise UsageError(
                    _("{place}: {hook}: there is no event {topic!r}; {near}").format(
                        place=place,
                        hook=hook.name,
                        topic=topic,
                        near=suggestion(topic, tuple(TOPICS)),
                    )
                )
        if hook.tools and not set(hook.events) & set(ABOUT_TOOLS):
            raise UsageError(
                _(
                    "{place}: {hook}: none of its events is about a tool; these are: {topics}"
                ).format(place=place, hook=hook.name, topics=", ".join(ABOUT_TOOLS))
            )
    return hooks
