"""``leftfold show``: the transcript of a path."""

from __future__ import annotations

import sys

import click

from app import bootstrap, references
from app.damage import say_damage
from app.outputs import Damaged, Shown, utc, write
from app.settings import settings
from domain.projections.transcript import transcript


@click.command("show")
@click.argument("reference", metavar="ID[@ENTRY]")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(store: str | None, *, reference: str, as_json: bool) -> None:
    """Print the transcript up to ENTRY, or up to where the conversation stands."""
    chosen = settings(store=store)
    with bootstrap.conversations(chosen) as conversations:
        conversation_id, entry = references.place(conversations, reference)
        conversation = conversations.get(conversation_id)
        damage = say_damage(conversations, conversation.id)
    items = transcript(conversation, conversation.leaf if entry is None else entry)
    if as_json:
        if damage:
            write(Damaged(id=conversation.id, damage=damage))
        for item in items:
            write(Shown(**item._asdict() | {"timestamp": utc(item.timestamp)}))
        return
    from app.view import colours  # noqa: PLC0415 - not for --json
    from app.view.console import Terminal, console, is_for_people  # noqa: PLC0415
    from app.view.transcript import as_text, show_transcript  # noqa: PLC0415

    if is_for_people():
        colours.choose(chosen.keys.theme)
        show_transcript(console(), items)
    elif text := as_text(items):
        out = Terminal(sys.stdout)
        out.write(f"{text}\n")
        out.flush()
