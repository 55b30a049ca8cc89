"""``leftfold list``: the conversations of this directory, or all of them; newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET, UnsetType

from app import bootstrap
from app.catalogue import say_unreadable
from app.commands.selecting import selects_conversations
from app.damage import quickly_read, say_damage_of
from app.i18n import _
from app.outputs import Damage, Listed, utc, write
from app.selection import Selection, select
from app.settings import settings
from app.view.console import room
from app.view.plain import fitted, plain

if TYPE_CHECKING:
    from typing import Unpack

    from app.application import Conversations
    from app.catalogue import Listing
    from domain.projections.catalogue import Row


@click.command("list")
@selects_conversations
@click.option("-l", "--long", "is_long", is_flag=True, help="With figures: tokens, cost and more.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(
    store: str | None, *, is_long: bool, as_json: bool, **selection: Unpack[Selection]
) -> None:
    """List the conversations of this directory, newest first."""
    chosen = settings(store=store)
    with bootstrap.conversations(chosen) as conversations:
        listing = select(conversations, chosen.cwd, selection)
        if is_long or as_json:
            listing.price()
        if as_json:
            _print_json(conversations, listing)
        else:
            _print(conversations, listing, is_long=is_long, has_cwd=selection["everywhere"])
        listing.keep()
    say_unreadable(listing.unreadable, as_json=as_json)
    if not listing.rows and not as_json:
        nothing = _("no conversations here (--all shows all)")
        click.echo(_("no conversations") if selection["everywhere"] else nothing, err=True)


def _print(conversations: Conversations, listing: Listing, *, is_long: bool, has_cwd: bool) -> None:
    """Print the rows for people: many at once, for ten thousand writes take a tenth of a second."""
    looked_at = quickly_read(conversations, (row.id for row in listing.rows))
    width, lines = room(), []
    for row in listing.rows:
        lines.append(_line(row, width, has_cwd=has_cwd))
        if is_long:
            lines.append(_details(row, listing.cost(row.id), width))
        if row.id in looked_at:
            click.echo("\n".join(lines))
            lines.clear()
            say_damage_of(conversations, row.id, listing)
    if lines:
        click.echo("\n".join(lines))


def _print_json(conversations: Conversations, listing: Listing) -> None:
    looked_at = quickly_read(conversations, (row.id for row in listing.rows))
    for row in listing.rows:
        is_looked_at = row.id in looked_at
        damage = say_damage_of(conversations, row.id, listing) if is_looked_at else UNSET
        write(_output(row, listing.cost(row.id), damage))


def _line(row: Row, width: int | None, *, has_cwd: bool) -> str:
    when = row.updated.astimezone().strftime("%Y-%m-%d %H:%M")
    where = f"  {plain(row.cwd or '?')}" if has_cwd else ""
    mark = _("(archived) ") if row.archived else ""
    line = f"{row.id}  {when}  {row.events:5}{where}  {mark}{plain(row.title)}"
    return fitted(line, width or len(line) * 2)


def _details(row: Row, cost: float | None, width: int | None) -> str:
    """Return what else there is to say of a conversation, on one line."""
    tokens = sum(row.tokens.values())
    parts = [
        _("{count:,} messages").format(count=row.messages),
        plain(row.model or "?"),
        _("{count:,} tokens").format(count=tokens),
        _("cost unknown") if cost is None and tokens else f"${cost or 0:.4f}",
    ]
    if row.source_id:
        parts.append(_("a fork of {id}").format(id=row.source_id))
    parts += [plain(f"@{label}") for label in row.labels.values()]
    line = "    " + " · ".join(parts)
    return fitted(line, width or len(line) * 2)


def _output(row: Row, cost: float | None, damage: Damage | UnsetType) -> Listed:
    return Listed(
        id=row.id,
        version=row.events,
        events=row.events,
        messages=row.messages,
        created=utc(row.created),
        updated=utc(row.updated),
        cwd=row.cwd,
        title=row.title,
        name=row.name,
        model=row.model,
        tokens=row.tokens,
        cost=cost,
        source_id=row.source_id,
        labels=tuple(row.labels.values()),
        archived=row.archived,
        damage=damage,
    )
