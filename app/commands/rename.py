"""``leftfold rename``: give a conversation a name."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.settings import settings


@click.command("rename")
@click.argument("reference", metavar="ID")
@click.argument("name", default="")
@click.pass_obj
def command(store: str | None, *, reference: str, name: str) -> None:
    """Name a conversation; without NAME it has none."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        at_hand = conversations.open(references.conversation_id(conversations, reference))
        at_hand.record(lambda talk: talk.rename(name))
