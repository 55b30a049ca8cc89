"""``leftfold trash``: what was deleted, brought back or erased for good."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING

import click

from app import bootstrap, trashed
from app.errors import UsageError
from app.i18n import _
from app.outputs import write
from app.settings import settings
from app.terminal import is_typed_at
from app.view.console import room
from app.view.plain import cells, complain, fitted, one_line, plain
from domain.sizes import size

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.trashed import Item

_UNITS = {"h": "hours", "d": "days", "w": "weeks"}
_WIDEST = 60
_NARROW = 100
"""Cells of a screen that shows the end of an ID only: that is enough to name it."""


@click.group("trash", no_args_is_help=False)
def command() -> None:
    """Show what was deleted, bring it back, or erase it for good."""


@click.command("list")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def list_command(store: str | None, *, as_json: bool) -> None:
    """List what is in the trash: when it was deleted, its name, size and ID."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        found = trashed.items(conversations)
    if as_json:
        for item in found:
            write(item.shown)
        return
    for line in _lines(found):
        click.echo(line)
    if not found:
        click.echo(_("the trash is empty"), err=True)


@click.command("restore")
@click.argument("references", metavar="ID…", nargs=-1, required=True)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def restore_command(store: str | None, *, references: Sequence[str], as_json: bool) -> None:
    """Bring conversations back into the store."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        found = trashed.items(conversations)
        for reference in references:
            restored = trashed.restore(conversations, found, reference)
            write(restored) if as_json else click.echo(plain(restored.path))


def _age(_context: click.Context, _option: click.Parameter, said: str | None) -> timedelta | None:
    """Return how long *said* is: ``30d``."""
    if said is None:
        return None
    match = re.fullmatch(r"([0-9]{1,5})([hdw])", said)
    if match is None:
        raise click.BadParameter(_("30d, 12h or 4w, not {said!r}").format(said=said))
    return timedelta(**{_UNITS[match[2]]: int(match[1])})


@click.command("purge")
@click.argument("references", metavar="[ID…]", nargs=-1)
@click.option(
    "--older-than", metavar="30d", callback=_age, help="Only what was deleted that long ago."
)
@click.option("--yes", is_flag=True, help="Do not ask.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def purge_command(
    store: str | None,
    *,
    references: Sequence[str],
    older_than: timedelta | None,
    yes: bool,
    as_json: bool,
) -> None:
    """Erase for good what is named, or every conversation in the trash that can be read."""
    chosen = settings(store=store)
    with bootstrap.conversations(chosen) as conversations:
        found = trashed.items(conversations)
        marked = _marked(found, references, older_than)
        if not marked:
            click.echo(_("there is nothing to erase"), err=True)
            return
        if not yes:
            _ask(marked)
        for purged in trashed.purge(conversations, chosen.home, marked):
            write(purged) if as_json else click.echo(plain(purged.path))
            if purged.side_files_kept:
                text = _("{id}: whole outputs of its tools stay, another conversation names them")
                complain(text.format(id=purged.id))


def _marked(
    found: Sequence[Item], references: Sequence[str], older_than: timedelta | None
) -> list[Item]:
    """Return what is to be erased, each once."""
    if references:
        marked = [item for wanted in references for item in trashed.meant(found, wanted)]
    else:
        marked = [item for item in found if item.shown.kind == "conversation"]
    before = datetime.now(UTC) - (older_than or timedelta())
    return [item for item in dict.fromkeys(marked) if item.shown.deleted <= before]


def _ask(marked: Sequence[Item]) -> None:
    if not is_typed_at():
        raise UsageError(_("nobody is there to ask: give --yes to erase"))
    for line in _lines(marked):
        click.echo(line, err=True)
    total = size(sum(item.shown.bytes for item in marked))
    text = _("Erase this for good ({count}, {size})?").format(count=len(marked), size=total)
    click.confirm(text, abort=True, err=True)


def _lines(found: Sequence[Item]) -> list[str]:
    """Return an aligned line for each thing, cut to the screen in its name alone."""
    is_narrow = (room() or _NARROW) < _NARROW
    ids = [_id(item, is_narrow=is_narrow) for item in found]
    sizes = [size(item.shown.bytes) for item in found]
    names = [_name(item) for item in found]
    beside = 22 + max(map(len, sizes), default=0) + max(map(len, ids), default=0)
    most = max((room() or _WIDEST + beside) - beside, 1)
    width = min(max(map(cells, names), default=0), most)
    lines = []
    for item, name, bytes_, id_ in zip(found, names, sizes, ids, strict=True):
        when = item.shown.deleted.astimezone().strftime("%Y-%m-%d %H:%M")
        cut = fitted(name, width)
        padding = " " * (width - cells(cut))
        lines.append(f"{when}  {cut}{padding}  {bytes_:>{max(map(len, sizes))}}  {id_}".rstrip())
    return lines


def _id(item: Item, *, is_narrow: bool) -> str:
    if item.shown.id is None:
        return ""
    text = str(item.shown.id)
    return text.rpartition("-")[2] if is_narrow else text


def _name(item: Item) -> str:
    name = one_line(item.shown.title, _WIDEST)
    match item.shown.kind:
        case "damaged":
            return _("damaged: {name}").format(name=name)
        case "foreign":
            return _("no conversation: {name}").format(name=name)
        case _:
            return name or _("(nothing was said)")


for each in (list_command, restore_command, purge_command):
    command.add_command(each)
