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
        at_hand = conversations.open(references.conversation_id(conversations, reference))
        at_hand.record(lambda talk: talk.rename(name))
        if as_json:
            talk = at_hand.conversation
            write(NameGiven(id=talk.id, version=talk.version, name=talk.name))
