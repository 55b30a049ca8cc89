"""``leftfold stats``: messages, tokens and cost, per conversation, model and branch."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
import msgspec

from app import bootstrap, references
from app.catalogue import refused, say_unreadable
from app.commands.selecting import selects_conversations
from app.damage import say_damage
from app.errors import AppError, UsageError
from app.figures import statistics, text_of
from app.i18n import _
from app.outputs import write
from app.selection import Selection, is_any, select
from app.settings import settings
from app.view.console import room
from infrastructure.errors import StoreError

if TYPE_CHECKING:
    from typing import Unpack
    from uuid import UUID

    from app.application import Conversations


@click.command("stats")
@click.argument("reference", metavar="[ID]", required=False)
@selects_conversations
@click.option("--json", "as_json", is_flag=True, help="One JSON object a conversation.")
@click.pass_obj
def command(
    store: str | None, *, reference: str | None, as_json: bool, **selection: Unpack[Selection]
) -> None:
    """Show what was spent in one conversation, or in each."""
    chosen = settings(store=store)
    if reference is not None and is_any(selection):
        raise UsageError(_("an ID is one conversation: nothing else can choose"))
    with bootstrap.conversations(chosen) as conversations:
        if reference is not None:
            conversation_id = references.conversation_id(conversations, reference)
            _show(conversations, conversation_id, as_json=as_json)
            return
        listing = select(conversations, chosen.cwd, selection)
        for row in listing.rows:
            try:
                _show(conversations, row.id, as_json=as_json)
            except (StoreError, AppError) as error:
                listing.unreadable.append(refused(row.id, error))
    say_unreadable(listing.unreadable, as_json=as_json)


def _show(conversations: Conversations, conversation_id: UUID, *, as_json: bool) -> None:
    found = statistics(conversations.get(conversation_id))
    if not as_json:
        click.echo(text_of(found, room()))
    damage = say_damage(conversations, conversation_id)
    if as_json:
        write(msgspec.structs.replace(found, damage=damage))
