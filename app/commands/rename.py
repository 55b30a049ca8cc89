"""``leftfold rename``: give a conversation a name."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.outputs import NameGiven, write
from app.settings import settings


@click.command("rename")
@click.argument("reference", metavar="ID")
@click.argument("name")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(store: str | None, *, reference: str, name: str, as_json: bool) -> None:
    """Name a conversation; an empty NAME takes the name away."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        open_conversation = conversations.open(references.conversation_id(conversations, reference))
        open_conversation.record(lambda conversation: conversation.rename(name))
        if as_json:
            conversation = open_conversation.conversation
            write(
                NameGiven(id=conversation.id, version=conversation.version, name=conversation.name)
            )
