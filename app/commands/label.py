"""``leftfold label``: give an entry a name of its own."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.errors import UsageError
from app.i18n import _
from app.outputs import LabelGiven, write
from app.settings import settings


@click.command("label")
@click.argument("reference", metavar="ID@ENTRY")
@click.argument("text", default="")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(store: str | None, *, reference: str, text: str, as_json: bool) -> None:
    """Label an entry; without TEXT the label is taken away."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        conversation_id, target = references.place(conversations, reference)
        if target is None:
            raise UsageError(_("say which entry: ID@ENTRY"))
        open_conversation = conversations.open(conversation_id)
        open_conversation.record(lambda conversation: conversation.label(target, text))
        if as_json:
            conversation = open_conversation.conversation
            label = conversation.labels.get(target)
            write(
                LabelGiven(
                    id=conversation.id, version=conversation.version, target=target, label=label
                )
            )
