"""``leftfold delete``: move a conversation into the trash folder of the store."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.errors import AppError, UsageError
from app.i18n import _
from app.outputs import Deleted, write
from app.settings import settings
from app.terminal import is_typed_at
from app.view.plain import plain
from domain.projections.catalogue import row
from infrastructure.jsonl import trash


@click.command("delete")
@click.argument("reference", metavar="ID")
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(store: str | None, *, reference: str, yes: bool, as_json: bool) -> None:
    """Move a conversation into the trash, and say where it is; nothing is erased."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        conversation_id = references.conversation_id(conversations, reference)
        if conversations.store is None:
            raise AppError(_("this persistence module has no trash: nothing was deleted"))
        if not yes:
            if not is_typed_at():
                raise UsageError(_("nobody is there to ask: give --yes to delete"))
            events = conversations.summary_events(conversation_id)
            title = plain(row(events).title) if events else ""
            click.confirm(
                _("Move {id} ({title}) to the trash?").format(id=conversation_id, title=title),
                abort=True,
                err=True,
            )
        path = str(trash.put(conversations.store, conversation_id))
    if as_json:
        write(Deleted(id=conversation_id, path=path))
    else:
        click.echo(plain(path))
