"""``leftfold fork``: a copy of a conversation up to an entry, which needs nothing of the first."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.settings import settings


@click.command("fork")
@click.argument("reference", metavar="ID[@ENTRY]")
@click.pass_obj
def command(store: str | None, *, reference: str) -> None:
    """Copy a conversation up to ENTRY (or all of it), and print the id of the copy."""
    wanted, entry = references.split(reference)
    with bootstrap.conversations(settings(store=store)) as conversations:
        source = references.conversation_id(conversations, wanted)
        version = None
        if entry is not None:
            version = references.entry_version(conversations.get(source), entry)
        click.echo(str(conversations.fork(source, version)))
