"""``leftfold search``: find what was said, called or printed in any conversation."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, get_args

import click

from app import bootstrap
from app.i18n import _
from app.outputs import Found, utc, write
from app.search import parts, search
from app.settings import settings
from app.view.console import room
from app.view.plain import complain, fitted, one_line
from domain.projections.texts import excerpt
from domain.projections.transcript import Kind
from domain.text import valid
from infrastructure.read_models.texts import Hit, Wanted

if TYPE_CHECKING:
    from collections.abc import Sequence

_WIDTH = 160
_KINDS = [kind for kind in get_args(Kind) if kind not in ("gap", "other")]


@click.command("search")
@click.argument("wanted", metavar="TEXT…", nargs=-1, required=True)
@click.option("--all", "everywhere", is_flag=True, help="In every directory.")
@click.option("--kind", type=click.Choice(_KINDS), help="Only in what is of this kind.")
@click.option("--tool", metavar="NAME", help="Only in calls of this tool, and in what they gave.")
@click.option("--failed", is_flag=True, help="Only in results that are errors.")
@click.option(
    "--limit", type=click.IntRange(min=1), default=50, show_default=True, help="How many to show."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(
    store: str | None,
    *,
    wanted: Sequence[str],
    everywhere: bool,
    kind: str | None,
    tool: str | None,
    failed: bool,
    limit: int,
    as_json: bool,
) -> None:
    """Find every TEXT in what was said, called or printed here, the newest first."""
    chosen = settings(store=store)
    meant = Wanted(parts([valid(text) for text in wanted]), kind, tool, failed)
    cwd = None if everywhere else valid(chosen.cwd)
    with bootstrap.conversations(chosen) as conversations:
        hits = search(conversations, meant, cwd=cwd, limit=limit + 1)
    for hit in hits[:limit]:
        write(_output(hit, meant)) if as_json else click.echo(_line(hit, meant))
    if as_json:
        return
    if len(hits) > limit:
        complain(_("there is more: --limit shows more than {count}").format(count=limit))
    if not hits:
        nothing = _("nothing is found here (--all searches everywhere)")
        click.echo(_("nothing is found") if everywhere else nothing, err=True)


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
