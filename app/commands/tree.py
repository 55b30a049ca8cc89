"""``leftfold tree``: branches, labels and the leaf of one conversation."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.damage import say_damage
from app.outputs import Damaged, write
from app.settings import settings
from app.view.console import room
from app.view.lines import tree_line
from domain.projections.outline import outline


@click.command("tree")
@click.argument("reference", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON object an entry.")
@click.pass_obj
def command(store: str | None, *, reference: str, as_json: bool) -> None:
    """Show the tree: ● on the way to the leaf, ○ beside it, · summarised, ◀ the leaf."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        conversation = conversations.get(references.conversation_id(conversations, reference))
        damage = say_damage(conversations, conversation.id)
    if damage and as_json:
        write(Damaged(id=conversation.id, damage=damage))
    for row in outline(conversation):
        write(row) if as_json else click.echo(tree_line(row, width=room()))
