"""``leftfold delete``: move a conversation into the trash folder of the store."""

from __future__ import annotations

import sys

import click

from app import bootstrap, references
from app.commands.list import HEAD
from app.errors import AppError, UsageError
from app.i18n import _
from app.repl.plain import plain
from app.settings import settings
from domain.projections.catalogue import row


@click.command("delete")
@click.argument("reference", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.pass_obj
def command(store: str | None, *, reference: str, yes: bool) -> None:
    """Move a conversation into the trash, and say where it is; nothing is erased."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        conversation_id = references.conversation_id(conversations, reference)
        if conversations.store is None:
            raise AppError("this persistence module has no trash: nothing was deleted")
        last = conversations.last_event_of(conversation_id)
        if not yes:
            if sys.stdin is None or not sys.stdin.isatty():
                raise UsageError(_("nobody is there to ask: give --yes to delete"))
            head = conversations.events_of(conversation_id, until=HEAD)
            title = plain(row(head, last).title) if last else ""
            click.confirm(
                _("Move {id} ({title}) to the trash?").format(id=conversation_id, title=title),
                abort=True,
                err=True,
            )
        click.echo(plain(str(conversations.store.trash(conversation_id))))
