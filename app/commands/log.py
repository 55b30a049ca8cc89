"""``leftfold log``: the events of one conversation, or of all in one order, one a line."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Final, cast

import click

from app import bootstrap, references
from app.damage import say_damage
from app.errors import UnreadableConversationError, UsageError
from app.i18n import _
from app.leaving import until_left
from app.logged import as_ordered, as_output
from app.outputs import Damaged, write
from app.settings import settings
from app.view.console import room
from app.view.lines import log_line
from infrastructure.following import Following, place_before

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from eventsourcing.persistence import Notification

    from app.application import Conversations
    from domain.events import Event

_SHORT_ID: Final = 8
_BEFORE_LINE: Final = 8 + 2 + _SHORT_ID + 2
"""Cells that the position and the end of the id take."""


@click.command("log")
@click.argument("reference", metavar="[ID]", required=False)
@click.option("--all", "everywhere", is_flag=True, help="Of all conversations, in one order.")
@click.option("--follow", is_flag=True, help="Go on with new events as they are recorded.")
@click.option(
    "--since",
    type=int,
    default=1,
    help="Begin at this version, with --all at this position; -N: at the last N.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(
    store: str | None,
    *,
    reference: str | None,
    everywhere: bool,
    follow: bool,
    since: int,
    as_json: bool,
) -> None:
    """Print the events of a conversation, or of all, one a line."""
    if everywhere == (reference is not None):
        raise UsageError(_("name one conversation, or --all"))
    with bootstrap.conversations(settings(store=store)) as conversations:
        if reference is None:
            _print_all(conversations, since, as_json=as_json, follow=follow)
            return
        conversation_id = references.conversation_id(conversations, reference)
        last = conversations.last_event_of(conversation_id)
        if last is None:
            raise UnreadableConversationError(id=conversation_id)
        damage = say_damage(conversations, conversation_id)
        if damage and as_json:
            write(Damaged(id=conversation_id, damage=damage))
        _print_one(
            conversations,
            conversation_id,
            references.counted(since, last.originator_version),
            as_json=as_json,
            follow=follow,
        )


# -- one conversation ------------------------------------------------------------------------------


def _print_one(
    conversations: Conversations, conversation_id: UUID, since: int, *, as_json: bool, follow: bool
) -> None:
    def show(events: Iterable[Event]) -> None:
        for event in events:
            write(as_output(event)) if as_json else click.echo(log_line(event, room()))

    if not follow:
        show(conversations.events_of(conversation_id, since=since))
        return
    following = _from_here(conversations)
    events = events_as_they_come(conversations, conversation_id, since, following)
    until_left(lambda: show(events), following.stop)


def _from_here(conversations: Conversations) -> Following:
    recorder = conversations.recorder
    return Following(recorder, place_before(recorder, (recorder.max_notification_id() or 0) + 1))


def events_as_they_come(
    conversations: Conversations, conversation_id: UUID, since: int, following: Following
) -> Iterator[Event]:
    """Yield the events from *since* on, then new ones until *following*, from here on, ends."""
    shown = since - 1
    for event in conversations.events_of(conversation_id, since=since):
        shown = event.originator_version
        yield event
    for notice in following:
        if notice.originator_id == conversation_id and notice.originator_version > shown:
            yield _event_of(conversations, notice)


# -- all of them -----------------------------------------------------------------------------------


def _print_all(conversations: Conversations, since: int, *, as_json: bool, follow: bool) -> None:
    recorder = conversations.recorder
    place = place_before(recorder, references.counted(since, recorder.max_notification_id() or 0))
    following = Following(recorder, place, to_the_end=not follow)

    def show() -> None:
        for notice in following:
            event = _event_of(conversations, notice)
            if as_json:
                write(as_ordered(event, notice.id))
            else:
                width = room()
                line = log_line(event, width and max(width - _BEFORE_LINE, 1))
                click.echo(f"{notice.id:8}  {str(event.originator_id)[-_SHORT_ID:]}  {line}")

    until_left(show, following.stop) if follow else show()


def _event_of(conversations: Conversations, notice: Notification) -> Event:
    event: Any = conversations.mapper.to_domain_event(notice)
    return cast("Event", event)
