"""The rows of a list of conversations: those of a directory, or all; the last used first."""

from __future__ import annotations

from contextlib import suppress
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from app.errors import UnreadableConversationError
from app.explanations import kind_of
from app.i18n import _
from app.outputs import Finding, Problem, Unreadable, write
from app.places import real
from app.progress import Progress
from app.rows import priced, read
from app.view.plain import complain
from domain.text import valid
from infrastructure.errors import ReadModelError, StoreError
from infrastructure.jsonl import disk
from infrastructure.read_models.kept import NO_STATE

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping, Sequence
    from uuid import UUID

    from app.application import Conversations
    from domain.projections.catalogue import Row
    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.store import Store
    from infrastructure.read_models.catalogue import Catalogue, Changes
    from infrastructure.read_models.kept import Kept

FEW = 32
LITTLE = 8 * 1024 * 1024
"""So many logs, and so many bytes in them, are read sooner than the catalogue is opened."""


class Listing:
    """The rows of the *directory*, a real path, or of all, as their logs are now.

    What the catalogue says is not read from the logs. What was read can be kept in it. Where it
    cannot be used every log is read.

    Attributes:
        rows: The last used first.
        unreadable: Those of which nothing can be read, which have no row.
    """

    def __init__(self, conversations: Conversations, directory: str | None = None) -> None:
        self._conversations = conversations
        self._kept: dict[UUID, Kept] = {}
        self._new: set[UUID] = set()
        self._changes: Changes | None = None
        self.unreadable: list[Unreadable] = []
        self._catalogue = _catalogue_of(conversations)
        if not self._catalogue or not self._is_known(directory):
            self._catalogue = None
            self._read(dict.fromkeys(conversations.ids(), NO_STATE), {})
        kept = self._kept.values()
        here = [one.row for one in kept if directory is None or one.directory in (directory, None)]
        self.rows = sorted(here, key=lambda row: (row.updated, row.id), reverse=True)
        if len(self._new) > FEW:
            self.keep()

    def _is_known(self, directory: str | None) -> bool:
        """Make the rows by the catalogue; return whether it can be used."""
        assert self._catalogue is not None
        try:
            self._changes = changes = self._catalogue.compared(directory)
        except ReadModelError as error:
            _say_unusable(error)
            return False
        self._kept = {kept.row.id: kept for kept in changes.rows}
        self._read(changes.unread, changes.earlier)
        return True

    def _read(self, unread: Mapping[UUID, State], earlier: Mapping[UUID, Kept]) -> None:
        """Read the logs that are *unread*, those with *earlier* rows from there on."""
        total, done = sum(size for _inode, size, _changed in unread.values()), 0
        with Progress(_("reading the conversations")) as progress:
            for number, (id_, state) in enumerate(unread.items()):
                try:
                    earlier_row = earlier.get(id_)
                    self._kept[id_] = read(
                        self._conversations, id_, state=state, earlier=earlier_row
                    )
                    self._new.add(id_)
                except (StoreError, UnreadableConversationError) as error:
                    self._kept.pop(id_, None)
                    self.unreadable.append(refused(id_, error))
                done += state[1]
                progress.tell(*((done, total) if total else (number, len(unread))))

    def price(self) -> None:
        """Find out what was spent for `cost`; the prices take a quarter of a second to load."""
        due = [one for one in self._kept.values() if one.row.tokens and one.priced < one.row.events]
        with Progress(_("adding up what was spent")) as progress:
            for number, kept in enumerate(due):
                with suppress(StoreError):
                    self._kept[kept.row.id] = priced(self._conversations, kept)
                    self._new.add(kept.row.id)
                progress.tell(number, len(due))
        if len(due) > FEW:
            self.keep()

    def cost(self, conversation_id: UUID) -> float | None:
        """Return what was spent in US dollars, as far as it was found out; None if unknown."""
        return self._kept[conversation_id].cost

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
    if store is None:
        return None
    first = list(islice(disk.files(store.path), FEW + 1))
    with suppress(FileNotFoundError):
        if len(first) <= FEW and sum(entry.stat().st_size for entry in first) <= LITTLE:
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


def rows(conversations: Conversations, *, cwd: str | None = None) -> list[Row]:
    """Return the rows to go on with, the last used first; of the directory *cwd*, or of all."""
    listing = Listing(conversations, None if cwd is None else valid(real(cwd)))
    say_unreadable(listing.unreadable)
    return [row for row in listing.rows if cwd is None or row.cwd is not None]


def refused(conversation_id: UUID, error: Exception) -> Unreadable:
    """Return what a command over many prints of a conversation that it cannot read."""
    return Unreadable(id=conversation_id, error=Problem(type=kind_of(error), message=str(error)))


def say_unreadable(unreadable: Iterable[Unreadable], *, as_json: bool = False) -> None:
    """Say on stderr which conversations cannot be read; print them as well, for ``--json``."""
    for row in unreadable:
        complain(row.error.message)
        if as_json:
            write(row)
