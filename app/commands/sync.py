"""``leftfold sync``: this store and another one brought in step, both ways."""

from __future__ import annotations

import os
from collections import Counter
from typing import TYPE_CHECKING

import click

from app import bootstrap
from app.catalogue import say_unreadable
from app.elsewhere import Elsewhere
from app.errors import AppError
from app.i18n import _
from app.outputs import Unreadable, write
from app.settings import settings
from app.syncing import sync
from app.view.plain import plain

if TYPE_CHECKING:
    from app.syncing import Synced


@click.command("sync")
@click.argument("folder", metavar="FOLDER")
@click.option("--dry-run", is_flag=True, help="Only say what would be done.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(store: str | None, *, folder: str, dry_run: bool, as_json: bool) -> None:
    """Bring this store and the one in FOLDER in step: each gets what the other one has more.

    What went on in both is kept twice, one of them as a fork. Deleting does not travel.
    """
    chosen = settings(store=store)
    other = Elsewhere(prefix="TO", folder=folder)
    count: Counter[str] = Counter()
    with (
        bootstrap.conversations(chosen) as here,
        bootstrap.conversations(chosen, other) as there,
    ):
        assert there.store is not None
        path = there.store.path
        if path.is_dir() and not os.access(path, os.W_OK):
            told = _("{folder} cannot be written to; `leftfold copy --all --from` takes from it")
            raise AppError(told.format(folder=path))
        for row in sync(here, there, dry_run=dry_run):
            if isinstance(row, Unreadable):
                count["left"] += 1
                say_unreadable([row], as_json=as_json)
                continue
            count[row.to or "same"] += 1
            if as_json:
                write(row)
            elif row.outcome != "same":
                click.echo(_text(row, str(path)))
    if not as_json:
        click.echo(_summary(count, dry_run=dry_run))
    raise SystemExit(1 if count["left"] else 0)


def _text(row: Synced, folder: str) -> str:
    match row.outcome:
        case "copied":
            done = _("copied to {to}, {events} events")
        case "continued":
            done = _("continued in {to} by {events} events")
        case "merged":
            done = _("named or archived in both: {to} has both now")
        case "deleted":
            done = _("deleted in {to}: left there as it is")
        case _:
            done = _("went on in both from version {parted} on: the line of {to} is {fork} now")
    to = _("this store") if row.to == "here" else folder
    return plain(
        f"{row.id}  {done.format(to=to, events=row.events, parted=row.parted, fork=row.fork)}"
    )


def _summary(count: Counter[str], *, dry_run: bool) -> str:
    said = _("{there} to the other store, {here} from it, {same} in step, {left} left alone")
    text = said.format(
        there=count["there"], here=count["here"], same=count["same"], left=count["left"]
    )
    return _("nothing was written; it would be: {what}").format(what=text) if dry_run else text
