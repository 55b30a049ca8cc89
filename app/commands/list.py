"""``leftfold list``: the conversations of this directory, or all of them; newest first."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import click

from app import bootstrap
from app.damage import QUICK, say_damage
from app.errors import UnreadableConversationError
from app.i18n import _
from app.repl.plain import plain
from app.settings import settings
from domain.projections.catalogue import row
from infrastructure.errors import StoreError

if TYPE_CHECKING:
    from app.application import Conversations
    from domain.projections.catalogue import Row


def rows(
    conversations: Conversations,
    *,
    cwd: str | None = None,
    search: str | None = None,
    archived: bool = True,
) -> list[Row]:
    """Return a row per conversation, the last used first; of the directory *cwd*, or of all."""
    found = []
    for conversation_id in conversations.ids():
        try:
            events = conversations.glance(conversation_id)
            if not events:
                raise UnreadableConversationError(conversation_id)
            found.append(row(events))
        except (StoreError, UnreadableConversationError) as error:
            # One log that cannot be read (of a newer format, say) does not hide the others.
            click.echo(f"leftfold: {plain(str(error))}", err=True)
    if cwd is not None:
        found = [each for each in found if each.cwd == cwd]
    if not archived:
        found = [each for each in found if not each.archived]
    if search is not None:
        found = [each for each in found if search.casefold() in each.title.casefold()]
    return sorted(found, key=lambda each: each.updated, reverse=True)


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Of every directory.")
@click.option("--archived", is_flag=True, help="Also those that were put away.")
@click.option("--search", metavar="TEXT", help="Only those with TEXT in the title.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(
    store: str | None, *, everywhere: bool, archived: bool, search: str | None, as_json: bool
) -> None:
    """List the conversations of this directory, newest first."""
    chosen = settings(store=store)
    with bootstrap.conversations(chosen) as conversations:
        cwd = None if everywhere else chosen.cwd
        found = rows(conversations, cwd=cwd, search=search, archived=archived)
        for each in found:
            click.echo(json.dumps(_object(each)) if as_json else _line(each, everywhere=everywhere))
            say_damage(conversations, each.id, most_bytes=QUICK)
    if not found and not as_json:
        nothing = (
            _("no conversations") if everywhere else _("no conversations here (--all shows all)")
        )
        click.echo(nothing, err=True)


def _line(each: Row, *, everywhere: bool) -> str:
    when = each.updated.astimezone().strftime("%Y-%m-%d %H:%M")
    where = f"  {plain(each.cwd or '?')}" if everywhere else ""
    return f"{each.id}  {when}  {each.events:5}{where}  {plain(each.title)}"


def _object(each: Row) -> dict[str, Any]:
    times = {"created": each.created.isoformat(), "updated": each.updated.isoformat()}
    return each._asdict() | {"id": str(each.id)} | times
