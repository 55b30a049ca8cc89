"""The rows of a list of conversations: those of a directory, or all; the last used first."""

from __future__ import annotations

from typing import TYPE_CHECKING, TypedDict

from app.errors import UnreadableConversationError
from app.explanations import kind_of
from app.outputs import Problem, Unreadable, write
from app.view.plain import complain
from domain.projections.catalogue import row as row_of
from domain.text import valid
from infrastructure.errors import StoreError

if TYPE_CHECKING:
    from collections.abc import Iterable
    from uuid import UUID

    from app.application import Conversations
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
                raise UnreadableConversationError(id=conversation_id)
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
        complain(row.error.message)
        if as_json:
            write(row)
