"""``leftfold log``: the events of one conversation, one a line."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click
import msgspec

from app import bootstrap, references
from app.damage import say_damage
from app.errors import UnreadableConversationError
from app.outputs import Damaged, LoggedEvent, utc, write
from app.settings import settings
from app.view.console import room
from app.view.plain import fitted, plain
from domain.events import Event, MessageAppended, Unrecognised
from domain.raw_messages import result_text
from domain.text import decoded

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from app.application import Conversations

_LONGEST = 2_000
"""Cells of a line that nobody sees on a screen: what a tool printed may be long."""


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
            raise UnreadableConversationError(conversation_id)
        damage = say_damage(conversations, conversation_id)
        if damage and as_json:
            write(Damaged(id=conversation_id, damage=damage))
        events = conversations.events_of(conversation_id, since=since)
        if follow:
            events = _following(conversations, conversation_id, since)
        for event in events:
            write(as_output(event)) if as_json else click.echo(as_line(event, room()))


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
    return LoggedEvent(version=version, v=version, topic=event.TOPIC, state=_state(event))


def _state(event: Event) -> dict[str, Any]:
    """Return the data of an event, without what the envelope says."""
    event = msgspec.structs.replace(event, timestamp=utc(event.timestamp))
    state: dict[str, Any] = decoded(msgspec.json.encode(event))
    del state["originator_id"], state["originator_version"]
    return state


def as_line(event: Event, width: int | None = None) -> str:
    """Return an event as one line for people, of *width* cells at most: when, what, the gist."""
    when = event.timestamp.astimezone().strftime("%H:%M:%S")
    topic = event.topic if isinstance(event, Unrecognised) else event.TOPIC
    line = f"{event.originator_version:6}  {when}  {topic:20}  {_gist(event)}"
    return fitted(" ".join(plain(line).splitlines()).expandtabs(1), width or _LONGEST)


def _gist(event: Event) -> str:
    match event:
        case Unrecognised(reason=reason):
            return f"({reason})"
        case MessageAppended():
            said = event.said
            calls = [
                f"{call['name']} {json.dumps(call['input'], ensure_ascii=False)}"
                for call in said.tool_uses
            ]
            results = [f"→ {result_text(found.get('content'))}" for found in said.tool_results]
            return f"{said.role}: " + " · ".join([said.text, *calls, *results]).strip(" ·")
        case _:
            state = _state(event)
            state.pop("timestamp", None)
            return json.dumps(state, ensure_ascii=False)
