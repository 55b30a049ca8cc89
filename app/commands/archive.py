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
        open_conversation = conversations.open(references.conversation_id(conversations, reference))
        open_conversation.record(lambda conversation: conversation.archive(archived=not undo))
        if as_json:
            conversation = open_conversation.conversation
            write(PutAway(id=conversation.id, version=conversation.version, archived=not undo))
