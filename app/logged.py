"""Events of logs as ``--json`` prints them."""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec.structs import asdict

from app.outputs import LoggedEvent, OrderedEvent
from app.view.lines import state_of
from domain.events import Event, Unrecognised

if TYPE_CHECKING:
    from typing import Any


def as_output(event: Event) -> LoggedEvent:
    """Return an event as ``--json`` prints it."""
    version = event.originator_version
    if isinstance(event, Unrecognised):
        return LoggedEvent(
            version=version,
            v=version,
            topic=event.topic,
            unreadable=event.state.decode("utf-8", "replace"),
            reason=event.reason,
        )
    return LoggedEvent(version=version, v=version, topic=event.TOPIC, state=state_of(event))


def in_order(event: Event, position: int) -> dict[str, Any]:
    """Return what `OrderedEvent` says of an event at *position* in the order of all."""
    return asdict(as_output(event)) | {"position": position, "id": event.originator_id}


def as_ordered(event: Event, position: int) -> OrderedEvent:
    """Return an event at *position* in the order of all as ``--json`` prints it."""
    return OrderedEvent(**in_order(event, position))
