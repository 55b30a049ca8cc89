"""The catalogue: one row per conversation, enough to find it again."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.events import Archived, Event, MessageAppended, ModelChanged, Renamed, Started, Version

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime
    from uuid import UUID

TITLE_LENGTH = 80

CATALOGUED = (Renamed.TOPIC, Archived.TOPIC, ModelChanged.TOPIC)
"""The facts that a row shows: of each, the newest counts, wherever it stands."""


class Row(NamedTuple):
    """What a list shows of one conversation. *events* is the version of its last event."""

    id: UUID
    events: Version
    created: datetime
    updated: datetime
    cwd: str | None
    title: str
    name: str | None
    model: str | None
    archived: bool


def row(events: Sequence[Event]) -> Row:
    """Return the row of a conversation from its first events, the newest facts, the last one."""
    last = events[-1]
    name = cwd = model = None
    archived = False
    prompt = ""
    for event in events:
        match event:
            case Started(cwd=value):
                cwd = value
            case Renamed(name=value):
                name = value
            case ModelChanged(model=value):
                model = value
            case Archived(archived=flag):
                archived = flag
            case MessageAppended() if not prompt:
                content = event.content
                if content.role == "user" and content.is_readable:
                    prompt = " ".join(content.prompt.split())
    return Row(
        id=last.originator_id,
        events=last.originator_version,
        created=events[0].timestamp,
        updated=last.timestamp,
        cwd=cwd,
        title=name or prompt[:TITLE_LENGTH],
        name=name,
        model=model,
        archived=archived,
    )
