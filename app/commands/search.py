"""``leftfold search``: find what was said, called or printed in any conversation."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING

import click

from app import bootstrap
from app.commands.selecting import selects_entries
from app.i18n import _
from app.outputs import Found, utc, write
from app.search import search, wanted_of
from app.selection import Entries, at, is_narrowed, when
from app.settings import settings
from app.view.console import room
from app.view.plain import complain, fitted, one_line
from domain.projections.texts import excerpt

if TYPE_CHECKING:
    from typing import Unpack

    from infrastructure.read_models.texts import Hit
    from infrastructure.read_models.wanted import Wanted

_WIDTH = 160


@click.command("search")
@click.argument("wanted", metavar="TEXT…", nargs=-1, required=True)
@selects_entries
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many to show."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(
    store: str | None,
    *,
    wanted: tuple[str, ...],
    limit: int,
    as_json: bool,
    **selection: Unpack[Entries],
) -> None:
    """Find every TEXT in what was said, called or printed here, the newest first."""
    chosen = settings(store=store)
    times = {"since": when(selection["since"]), "until": when(selection["until"])}
    content = selection["kind"], selection["tool"], selection["failed"]
    meant = wanted_of(wanted, *content, **times)
    with bootstrap.conversations(chosen) as conversations:
        within = None
        if is_narrowed(selection):
            listing = at(conversations, chosen.cwd, selection)
            within = {row.id for row in listing.rows}
            listing.keep()
        hits = search(conversations, meant, within=within, limit=limit + 1)
    for hit in hits[:limit]:
        write(_output(hit, meant)) if as_json else click.echo(_line(hit, meant))
    if as_json:
        return
    if len(hits) > limit:
        complain(_("there is more: --limit shows more than {count}").format(count=limit))
    if not hits:
        nothing = _("nothing is found here (--all searches everywhere)")
        click.echo(_("nothing is found") if selection["everywhere"] else nothing, err=True)


def _line(hit: Hit, wanted: Wanted) -> str:
    when = datetime.fromisoformat(hit.time).astimezone().strftime("%Y-%m-%d %H:%M")
    kind = hit.kind if hit.tool is None else f"{hit.kind} {hit.tool}"
    said = one_line(excerpt(hit.text, wanted.parts[0], _WIDTH), _WIDTH + 2)
    line = f"{hit.conversation}@{hit.version}  {when}  {one_line(kind, 40)}  {said}"
    return fitted(line, room() or len(line) * 2)


def _output(hit: Hit, wanted: Wanted) -> Found:
    return Found(
        id=hit.conversation,
        version=hit.version,
        timestamp=utc(datetime.fromisoformat(hit.time)),
        kind=hit.kind,
        tool=hit.tool,
        failed=hit.failed,
        text=excerpt(hit.text, wanted.parts[0], _WIDTH),
    )
