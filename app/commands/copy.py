"""``leftfold copy``: conversations into another store, or another persistence module, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from eventsourcing.persistence import IntegrityError

from app import bootstrap, references
from app.catalogue import refused, say_unreadable
from app.elsewhere import Elsewhere
from app.errors import AppError, UsageError
from app.i18n import _
from app.moving import copy
from app.outputs import Unreadable, write
from app.settings import settings
from infrastructure.errors import StoreError, WriteError

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations
    from app.moving import Copied


@click.command("copy")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--all", "everything", is_flag=True, help="Every conversation.")
@click.option("--to", "to", metavar="FOLDER", help="Into the store, or the home, FOLDER.")
@click.option("--to-module", metavar="MODULE", help="Into this persistence module.")
@click.option("--from", "from_", metavar="FOLDER", help="From the store, or the home, FOLDER.")
@click.option("--from-module", metavar="MODULE", help="From this persistence module.")
@click.option("--fork", is_flag=True, help="Where the two have parted, copy as a fork.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_obj
def command(
    store: str | None,
    *,
    ids: tuple[str, ...],
    everything: bool,
    to: str | None,
    to_module: str | None,
    from_: str | None,
    from_module: str | None,
    fork: bool,
    as_json: bool,
) -> None:
    """Copy conversations into another store, or what is new of them; nothing is overwritten.

    What the variables of the other side are, if they are not those of this one: the same with TO_
    or FROM_ before them (TO_POSTGRES_DBNAME, FROM_CIPHER_KEY).
    """
    if bool(ids) == everything:
        raise UsageError(_("name conversations, or give --all"))
    chosen = settings(store=store)
    source = Elsewhere(prefix="FROM", folder=from_, module=from_module)
    target = Elsewhere(prefix="TO", folder=to, module=to_module)
    if not (source.is_named or target.is_named):
        raise UsageError(_("where to? Give --to FOLDER or --to-module MODULE"))
    with (
        bootstrap.conversations(chosen, source) as from_there,
        bootstrap.conversations(chosen, target) as to_there,
    ):
        _require_two(from_there, to_there)
        wanted = [references.conversation_id(from_there, each) for each in ids]
        failed = 0
        for each in wanted or list(from_there.ids()):
            row = _copied(from_there, to_there, each, fork=fork)
            if isinstance(row, Unreadable):
                failed += 1
                say_unreadable([row], as_json=as_json)
            else:
                write(row) if as_json else click.echo(_text(row))
    raise SystemExit(1 if failed else 0)


def _require_two(source: Conversations, target: Conversations) -> None:
    if source.store is not None and target.store is not None:
        path = target.store.path
        if path.resolve() == source.store.path.resolve():
            raise UsageError(
                _("{folder} is the store itself: name another one").format(folder=path)
            )


def _copied(
    source: Conversations, target: Conversations, conversation_id: UUID, *, fork: bool
) -> Copied | Unreadable:
    try:
        return copy(source, target, conversation_id, fork=fork)
    except WriteError:
        raise
    except (AppError, StoreError, IntegrityError) as error:
        return refused(conversation_id, error)


def _text(row: Copied) -> str:
    match row.outcome:
        case "copied":
            done = _("copied, {events} events")
        case "continued":
            done = _("continued by {events} events, {version} in all")
        case "forked":
            done = _("another one there from version {parted} on: copied as {fork}")
        case _:
            done = _("there already, {version} events")
    said = done.format(events=row.events, version=row.version, parted=row.parted, fork=row.fork)
    return f"{row.id}  {said}"
