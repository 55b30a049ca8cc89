"""``leftfold tree``: branches, labels and the leaf of one conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click

from app import bootstrap, references
from app.damage import say_damage
from app.i18n import _
from app.outputs import Damaged, TreeEntry, write
from app.settings import settings
from app.view.console import room
from app.view.plain import cells, fitted, plain
from domain.projections.outline import outline

if TYPE_CHECKING:
    from domain.projections.outline import Row

_DEEPEST = 12


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
        write(TreeEntry(**row._asdict())) if as_json else click.echo(line(row, width=room()))


def line(row: Row, note: str = "", *, width: int | None = None) -> str:
    """Return one row for people, of *width* cells at most: a *note* stands before the words."""
    mark = "·" if row.is_compacted else "●" if row.is_on_path else "○"
    indent = "│ " * min(row.depth, _DEEPEST)
    label = f" [{row.label}]" if row.label else ""
    leaf = _(" ◀ leaf") if row.is_leaf else ""
    text = f"{row.version:6} {indent}{mark} {row.kind:10}{plain(label)}{note} {plain(row.text)}"
    return (text if width is None else fitted(text, width - cells(leaf))) + leaf
