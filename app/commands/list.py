"""``leftfold list``: the conversations of this directory, or all of them; newest first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

import click
from msgspec import UNSET

from app import bootstrap
from app.damage import quickly_read, say_damage
from app.errors import UnreadableConversationError, kind_of
from app.i18n import _
from app.outputs import Listed, Problem, Unreadable, utc, write
from app.settings import settings
from app.view.console import room
from app.view.plain import fitted, plain
from domain.projections.catalogue import row as row_of
from domain.text import valid
from infrastructure.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from typing import Unpack
    from uuid import UUID

    from msgspec import UnsetType

    from app.application import Conversations
    from app.outputs import Damage
    from domain.projections.catalogue import Row


class Selection(TypedDict):
    """Which conversations: what the options of `list` and `stats` say."""

    everywhere: bool
    archived: bool
    search: str | None


def select(
    conversations: Conversations, cwd: str, *, everywhere: bool, archived: bool, search: str | None
) -> tuple[list[Row], list[Unreadable]]:
    """Return a row for each conversation of the directory *cwd*, or of all, the last used first.

    One that cannot be read hides none of the others, and is there whatever is looked for: nobody
    knows of which directory it is, nor what it says.
    """
    found, unreadable = _all_rows(conversations)
    if not everywhere:
        found = [row for row in found if row.cwd in (valid(cwd), None)]
    if not archived:
        found = [row for row in found if not row.archived]
    if search is not None:
        found = [row for row in found if search.casefold() in row.title.casefold()]
    return found, unreadable


def rows(conversations: Conversations, *, cwd: str | None = None) -> list[Row]:
    """Return the rows to go on with, the last used first; of the directory *cwd*, or of all."""
    found, unreadable = _all_rows(conversations)
    say_unreadable(unreadable)
    return [row for row in found if cwd is None or row.cwd == valid(cwd)]


def _all_rows(conversations: Conversations) -> tuple[list[Row], list[Unreadable]]:
    found, unreadable = [], []
    for conversation_id in conversations.ids():
        try:
            events = conversations.summary_events(conversation_id)
            if not events:
                raise UnreadableConversationError(conversation_id)
            found.append(row_of(events))
        except (StoreError, UnreadableConversationError) as error:
            unreadable.append(refused(conversation_id, error))
    return sorted(found, key=lambda row: row.updated, reverse=True), unreadable


def refused(conversation_id: UUID, error: Exception) -> Unreadable:
    """Return what a command over many prints of a conversation that it cannot read."""
    return Unreadable(id=conversation_id, error=Problem(type=kind_of(error), message=str(error)))


def say_unreadable(unreadable: Iterable[Unreadable], *, as_json: bool = False) -> None:
    """Say on stderr which conversations cannot be read; print them as well, for ``--json``."""
    for row in unreadable:
        click.echo(f"leftfold: {plain(row.error.message)}", err=True)
        if as_json:
            write(row)


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
        found, unreadable = select(conversations, chosen.cwd, **selection)
        looked_at = quickly_read(conversations, (row.id for row in found))
        for row in found:
            if not as_json:
                click.echo(_line(row, everywhere=selection["everywhere"]))
            damage = say_damage(conversations, row.id) if row.id in looked_at else UNSET
            if as_json:
                write(_output(row, damage))
    say_unreadable(unreadable, as_json=as_json)
    if not found and not as_json:
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
