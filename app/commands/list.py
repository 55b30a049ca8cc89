"""``leftfold list``: the conversations of this directory, or all of them; newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from msgspec import UNSET, UnsetType

from app import bootstrap
from app.catalogue import Selection, say_unreadable, select
from app.damage import quickly_read, say_damage_of
from app.i18n import _
from app.outputs import Damage, Listed, utc, write
from app.settings import settings
from app.view.console import room
from app.view.plain import fitted, plain

if TYPE_CHECKING:
    from typing import Unpack

    from domain.projections.catalogue import Row


@click.command("list")
@click.option("--all", "everywhere", is_flag=True, help="Of every directory.")
@click.option("--archived", is_flag=True, help="Also those that were put away.")
@click.option("--search", metavar="TEXT", help="Only those with TEXT in the title.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(store: str | None, *, as_json: bool, **selection: Unpack[Selection]) -> None:
    """List the conversations of this directory, newest first."""
    chosen = settings(store=store)
    with bootstrap.conversations(chosen) as conversations:
        listing = select(conversations, chosen.cwd, **selection)
        looked_at = quickly_read(conversations, (row.id for row in listing.rows))
        for row in listing.rows:
            if not as_json:
                click.echo(_line(row, everywhere=selection["everywhere"]))
            is_looked_at = row.id in looked_at
            damage = say_damage_of(conversations, row.id, listing) if is_looked_at else UNSET
            if as_json:
                write(_output(row, damage))
        listing.keep()
    say_unreadable(listing.unreadable, as_json=as_json)
    if not listing.rows and not as_json:
        nothing = _("no conversations here (--all shows all)")
        click.echo(_("no conversations") if selection["everywhere"] else nothing, err=True)


def _line(row: Row, *, everywhere: bool) -> str:
    when = row.updated.astimezone().strftime("%Y-%m-%d %H:%M")
    where = f"  {plain(row.cwd or '?')}" if everywhere else ""
    line = f"{row.id}  {when}  {row.events:5}{where}  {plain(row.title)}"
    return fitted(line, room() or len(line) * 2)


def _output(row: Row, damage: Damage | UnsetType) -> Listed:
    times = {"created": utc(row.created), "updated": utc(row.updated)}
    return Listed(**row._asdict() | times, version=row.events, damage=damage)
