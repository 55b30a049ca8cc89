"""``leftfold archive``: put a conversation away, or bring it back."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.outputs import PutAway, write
from app.settings import settings


@click.command("archive")
@click.argument("reference", metavar="ID")
@click.option("--undo", is_flag=True, help="Bring it back.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(store: str | None, *, reference: str, undo: bool, as_json: bool) -> None:
    """Leave a conversation out of lists; nothing is deleted."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        at_hand = conversations.open(references.conversation_id(conversations, reference))
        at_hand.record(lambda talk: talk.archive(archived=not undo))
        if as_json:
            talk = at_hand.conversation
            write(PutAway(id=talk.id, version=talk.version, archived=not undo))
