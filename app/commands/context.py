"""``leftfold context``: the request body, rebuilt by replay; for an answer, the one behind it."""

from __future__ import annotations

import json

import click

from app import bootstrap, references
from app.damage import say_damage
from app.i18n import _
from app.requests import Rebuilt, requests_for
from app.settings import settings
from app.terminal import is_looked_at
from app.view.plain import complain, plain
from domain.request import in_form


@click.command("context")
@click.argument("reference", metavar="ID[@ENTRY]")
@click.option("--json", "as_json", is_flag=True, help="The bytes that are sent, on one line.")
@click.pass_obj
def command(store: str | None, *, reference: str, as_json: bool) -> None:
    """Print the request body that the model gets: for the next prompt, or behind an answer."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        conversation_id, version = references.place(conversations, reference)
        conversation = conversations.get(conversation_id)
        requests = requests_for(conversations, conversation, version)
        say_damage(conversations, conversation_id)
    for request in requests:
        _print(request, as_json=as_json)
    if not all(request.is_as_sent for request in requests):
        complain(_("this is NOT the request that was sent: its digest differs"))
        raise SystemExit(1)


def _print(rebuilt: Rebuilt, *, as_json: bool) -> None:
    if not as_json:
        click.echo(plain(json.dumps(rebuilt.request.content, ensure_ascii=False, indent=2)))
        return
    line = in_form(rebuilt.form, rebuilt.request.body)
    # Byte for byte for programs; a person's terminal gets no control characters.
    click.echo(plain(line.decode()) if is_looked_at() else line)
