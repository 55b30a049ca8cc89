"""``leftfold log``: the events of one conversation, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import click

from app import bootstrap, references
from app.damage import say_damage
from app.errors import UnreadableConversationError
from app.outputs import Damaged, LoggedEvent, write
from app.settings import settings
from app.view.console import room
from app.view.lines import log_line, state_of
from domain.events import Event, Unrecognised

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from app.application import Conversations


@click.command("log")
@click.argument("reference", metavar="ID")
@click.option("--follow", is_flag=True, help="Go on with new events as they are recorded.")
@click.option("--since", type=click.IntRange(min=1), default=1, help="Begin at this version.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(store: str | None, *, reference: str, follow: bool, since: int, as_json: bool) -> None:
    """Print the events of a conversation, one a line."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        conversation_id = references.conversation_id(conversations, reference)
        if conversations.last_event_of(conversation_id) is None:
            raise UnreadableConversationError(id=conversation_id)
        damage = say_damage(conversations, conversation_id)
        if damage and as_json:
            write(Damaged(id=conversation_id, damage=damage))
        events = conversations.events_of(conversation_id, since=since)
        if follow:
            events = _following(conversations, conversation_id, since)
        for event in events:
            write(as_output(event)) if as_json else click.echo(log_line(event, room()))


def _following(conversations: Conversations, conversation_id: UUID, since: int) -> Iterator[Event]:
    """Yield the events from *since* on, then new ones for as long as somebody looks."""
    position = conversations.recorder.max_notification_id()
    shown = since - 1
    for event in conversations.events_of(conversation_id, since=since):
        shown = event.originator_version
        yield event
    with conversations.recorder.subscribe(gt=position) as subscription:
        for notice in subscription:
            if notice.originator_id == conversation_id and notice.originator_version > shown:
                found: Any = conversations.mapper.to_domain_event(notice)
                yield found


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
