"""Which conversations a command is about: what the options of `list`, `stats` and `search` say."""

from __future__ import annotations

import re
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import TYPE_CHECKING, TypedDict

from app.catalogue import Listing
from app.errors import UsageError
from app.i18n import _
from app.places import real
from domain.text import valid

if TYPE_CHECKING:
    from app.application import Conversations
    from domain.projections.catalogue import Row

_AGO = re.compile("([0-9]{1,6})([hdw])")
_UNITS = {"h": "hours", "d": "days", "w": "weeks"}


class Places(TypedDict):
    """Of which directory, by which model, from when, at what cost."""

    everywhere: bool
    directory: str | None
    model: str | None
    since: str | None
    until: str | None
    cost: float | None


class Entries(Places):
    """Also of what kind, and of which tool."""

    kind: str | None
    tool: str | None
    failed: bool


class Selection(Entries):
    """Also with which title, and with what in it."""

    archived: bool
    search: str | None
    text: tuple[str, ...]


def select(conversations: Conversations, cwd: str, chosen: Selection) -> Listing:
    """Return a listing of what is *chosen*: of the directory *cwd*, if no other.

    One that cannot be read hides none of the others, and is there whatever is looked for: nobody
    knows of which directory it is, nor what it says.

    Raises:
        UsageError: an option cannot be understood.
    """
    begin, end = when(chosen["since"]), when(chosen["until"])
    title = (chosen["search"] or "").casefold()
    listing = at(conversations, cwd, chosen)
    listing.rows = [
        row
        for row in listing.rows
        if (chosen["archived"] or not row.archived)
        and title in row.title.casefold()
        and (begin is None or row.updated >= begin)
        and (end is None or row.created < end)
    ]
    content = chosen["kind"], chosen["tool"], chosen["failed"]
    if chosen["text"] or any(content):
        from app.search import conversations_with, wanted_of  # noqa: PLC0415 - SQLite

        wanted = wanted_of(chosen["text"], *content)
        found = conversations_with(conversations, wanted, [row.id for row in listing.rows])
        listing.rows = [row for row in listing.rows if row.id in found]
    return listing


def at(conversations: Conversations, cwd: str, places: Places) -> Listing:
    """Return a listing of the conversations of a place, with a model, that cost so much.

    Raises:
        UsageError: two options exclude one another.
    """
    if places["everywhere"] and places["directory"] is not None:
        raise UsageError(_("--all and --dir exclude one another"))
    directory = real(str(Path(places["directory"] or cwd).expanduser()))
    listing = Listing(conversations, None if places["everywhere"] else valid(directory))
    if (model := places["model"]) is not None:
        listing.rows = [row for row in listing.rows if _has_model(row, model.casefold())]
    if (least := places["cost"]) is not None:
        listing.price()
        listing.rows = [row for row in listing.rows if (listing.cost(row.id) or 0) >= least]
    return listing


def is_narrowed(places: Places) -> bool:
    """Whether not simply all conversations are chosen."""
    return not places["everywhere"] or places["model"] is not None or places["cost"] is not None


def is_any(selection: Selection) -> bool:
    """Whether any option was given."""
    return any(
        value is not None and value is not False and value != () for value in selection.values()
    )


def _has_model(row: Row, wanted: str) -> bool:
    return any(wanted in model.casefold() for model in row.models)


def when(text: str | None) -> datetime | None:
    """Return the time that *text* means: a date, a date with a time, or ``3d``: so long ago.

    Raises:
        UsageError: it means none.
    """
    if text is None:
        return None
    try:
        if ago := _AGO.fullmatch(text):
            return datetime.now(UTC) - timedelta(**{_UNITS[ago[2]]: int(ago[1])})
        return datetime.fromisoformat(text).astimezone(UTC)
    except (ValueError, OverflowError):
        hint = _("{text!r} is no time: give 2026-12-01, 2026-12-01T15:30, 12h, 3d or 2w")
        raise UsageError(hint.format(text=text)) from None
