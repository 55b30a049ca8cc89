"""The rows of a list of conversations: those of a directory, or all; the last used first."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING, TypedDict

import msgspec

from app.errors import UnreadableConversationError
from app.explanations import kind_of
from app.i18n import _
from app.outputs import Finding, Problem, Unreadable, write
from app.view.plain import complain
from domain.projections.catalogue import row as row_of
from domain.text import valid
from infrastructure.errors import ReadModelError, StoreError
from infrastructure.jsonl import disk

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from app.application import Conversations
    from domain.projections.catalogue import Row
    from infrastructure.jsonl.store import Store
    from infrastructure.read_models.catalogue import Catalogue, Changes, Kept

FEW = 32
"""So many logs are read sooner than the catalogue is opened, or what they say is kept in it."""


class Selection(TypedDict):
    """Which conversations: what the options of `list` and `stats` say."""

    everywhere: bool
    archived: bool
    search: str | None


class Listing:
    """The rows of the directory *cwd*, or of all, as their logs are now.

    What the catalogue says is not read from the logs. What was read can be kept in it. Where it
    cannot be used every log is read.

    Attributes:
        rows: The last used first.
        unreadable: Those of which nothing can be read, which have no row.
    """

    def __init__(self, conversations: Conversations, cwd: str | None = None) -> None:
        self._conversations = conversations
        self._kept: dict[UUID, Kept] = {}
        self._new: set[UUID] = set()
        self._changes: Changes | None = None
        self.unreadable: list[Unreadable] = []
        self._catalogue = _catalogue_of(conversations)
        rows = self._known(cwd) if self._catalogue else None
        if rows is None:
            self._catalogue = None
            rows = list(self._read(conversations.ids()))
        here = [row for row in rows if cwd is None or row.cwd in (cwd, None)]
        self.rows = sorted(here, key=lambda row: (row.updated, row.id), reverse=True)
        if len(self._new) > FEW:
            self.keep()

    def _known(self, cwd: str | None) -> list[Row] | None:
        """Return the rows by the catalogue; None if it cannot be used."""
        from infrastructure.read_models.catalogue import Kept  # noqa: PLC0415 - SQLite

        assert self._catalogue is not None
        try:
            self._changes = changes = self._catalogue.compared(cwd)
        except ReadModelError as error:
            _say_unusable(error)
            return None
        self._kept = {kept.row.id: kept for kept in changes.rows}
        for row in self._read(changes.unread):
            self._kept[row.id] = Kept(row, changes.unread[row.id])
            self._new.add(row.id)
        return [kept.row for kept in self._kept.values()]

    def _read(self, ids: Iterable[UUID]) -> Iterable[Row]:
        for conversation_id in ids:
            try:
                events = self._conversations.summary_events(conversation_id)
                if not events:
                    raise UnreadableConversationError(id=conversation_id)
                yield row_of(events)
            except (StoreError, UnreadableConversationError) as error:
                self.unreadable.append(refused(conversation_id, error))

    def findings(self, conversation_id: UUID) -> tuple[Finding, ...] | None:
        """Return what was found wrong with a log when it was looked through; None if it was not."""
        kept = self._kept.get(conversation_id)
        if kept is None or kept.findings is None:
            return None
        return msgspec.json.decode(kept.findings, type=tuple[Finding, ...])

    def add_findings(self, conversation_id: UUID, findings: Sequence[Finding]) -> None:
        """Remember, if the catalogue is kept, what is wrong with a log that was looked through."""
        kept = self._kept.get(conversation_id)
        if kept is not None:
            text = msgspec.json.encode(findings).decode()
            self._kept[conversation_id] = kept._replace(findings=text)
            self._new.add(conversation_id)

    def keep(self) -> None:
        """Keep what is new in the catalogue; it is said if that cannot be."""
        if self._catalogue is None or self._changes is None:
            return
        changes = self._changes
        folder = None if self.unreadable else changes.folder
        if self._new or changes.gone or (folder and changes.is_folder_new):
            new = [self._kept[conversation_id] for conversation_id in self._new]
            try:
                self._catalogue.keep(new, changes.gone, folder)
            except ReadModelError as error:
                _say_unusable(error)
        self._new.clear()


def _catalogue_of(conversations: Conversations) -> Catalogue | None:
    """Return the catalogue; None where it would take longer, or is not to be kept."""
    store = plain_store(conversations)
    if store is None or sum(1 for _entry in islice(disk.files(store.path), FEW + 1)) <= FEW:
        return None
    from infrastructure.read_models.catalogue import Catalogue  # noqa: PLC0415 - SQLite

    return Catalogue(store)


def plain_store(conversations: Conversations) -> Store | None:
    """Return the folder of logs, if what they say may be written beside them in plain text.

    What is encrypted must not be, and what is compressed reads otherwise without the compressor.
    """
    mapper = conversations.mapper
    return None if mapper.cipher or mapper.compressor else conversations.store


def _say_unusable(error: ReadModelError) -> None:
    text = _("the catalogue cannot be used, each log is read instead: {why}")
    complain(text.format(why=error))


def select(
    conversations: Conversations, cwd: str, *, everywhere: bool, archived: bool, search: str | None
) -> Listing:
    """Return a listing of the conversations of the directory *cwd*, or of all.

    One that cannot be read hides none of the others, and is there whatever is looked for: nobody
    knows of which directory it is, nor what it says.
    """
    listing = Listing(conversations, None if everywhere else valid(cwd))
    if not archived:
        listing.rows = [row for row in listing.rows if not row.archived]
    if search is not None:
        wanted = search.casefold()
        listing.rows = [row for row in listing.rows if wanted in row.title.casefold()]
    return listing


def rows(conversations: Conversations, *, cwd: str | None = None) -> list[Row]:
    """Return the rows to go on with, the last used first; of the directory *cwd*, or of all."""
    listing = Listing(conversations, None if cwd is None else valid(cwd))
    say_unreadable(listing.unreadable)
    return [row for row in listing.rows if cwd is None or row.cwd == valid(cwd)]


def refused(conversation_id: UUID, error: Exception) -> Unreadable:
    """Return what a command over many prints of a conversation that it cannot read."""
    return Unreadable(id=conversation_id, error=Problem(type=kind_of(error), message=str(error)))


def say_unreadable(unreadable: Iterable[Unreadable], *, as_json: bool = False) -> None:
    """Say on stderr which conversations cannot be read; print them as well, for ``--json``."""
    for row in unreadable:
        complain(row.error.message)
        if as_json:
            write(row)
