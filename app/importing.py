"""Taking over what another program has recorded: a conversation that can be gone on with.

Whatever is imported twice is there once: what a conversation has already is found by what it says.
So an import that was killed, or of a file that has grown, goes on where the last one stopped.
"""

from __future__ import annotations

from contextlib import contextmanager
from itertools import chain
from typing import TYPE_CHECKING, Any

import msgspec
from eventsourcing.persistence import IntegrityError, PersistenceError

from app import log_in_a_file
from app.errors import ChangedElsewhereError, NewerEventsError, NotRecordedError, UsageError
from app.i18n import _
from app.outputs import Imported
from domain.events import MessageAppended, NoteAppended, Started, Unrecognised
from domain.foreign import Placement, Recorded
from domain.text import valid
from infrastructure.histories import (
    claude_code,
    codex,
    compressed,
    gemini_cli,
    messages,
    opencode,
    pi,
)
from infrastructure.histories.source import DAMAGE, EPOCH, Source, id_of
from infrastructure.safe_files import opened, reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path

    from app.application import Conversations
    from domain.events import Event
    from infrastructure.histories.source import Format, Origin

FORMATS: dict[str, Format] = {
    format_.NAME: format_ for format_ in (pi, claude_code, codex, gemini_cli, opencode, messages)
}
"""The formats, in the order in which a file is compared with them."""

_BATCH = 2_000_000
"""Bytes of the source that are recorded together, at least."""

_MOST_EVENTS = 5_000
_TRIES = 5


class ForeignFileError(UsageError):
    """A file that no known program wrote."""


def import_file(
    conversations: Conversations,
    path: Path,
    *,
    format_name: str | None,
    cwd: str,
    tell: Callable[[int, int], None],
) -> Imported:
    """Record what the file *path* tells, as far as it is not recorded yet.

    *cwd* is where the conversation works if the file does not say it; *tell* hears how many bytes
    of how many are read.

    Raises:
        ForeignFileError: it is not written in that format, or in none that is known.
        ChangedElsewhereError: other programs kept changing the conversation.
        NotRecordedError: the store cannot take it.
    """
    with _opened(path) as source:
        own = log_in_a_file.id_in(source)
        if own is not None and format_name in (None, log_in_a_file.NAME):
            return log_in_a_file.take_in(conversations, source, own)
        format_, origin = _format_of(source, format_name)
        for _try in range(_TRIES):
            try:
                return _Import(conversations, source, format_, origin, tell).run(cwd)
            except IntegrityError:
                continue  # another program was faster: what it has recorded is found now
            except PersistenceError as error:
                raise NotRecordedError(str(error)) from error
    raise ChangedElsewhereError(id=id_of(format_.NAME, origin))


@contextmanager
def _opened(path: Path) -> Iterator[Source]:
    try:
        with opened(path) as file, compressed.plain(file) as contents:
            yield Source(path, contents)
    except OSError as error:
        message = _("{path} cannot be read: {why}").format(path=path, why=reason_of(error))
        raise ForeignFileError(message) from error


def _format_of(source: Source, wanted: str | None) -> tuple[Format, Origin]:
    for name, format_ in FORMATS.items():
        if wanted in (None, name) and (origin := format_.origin(source)) is not None:
            return format_, origin
    what = _("a history of {format}").format(format=wanted) if wanted else _("a known history")
    message = _("{path} is not {what}").format(path=source.path, what=what)
    raise ForeignFileError(message)


class _Import:
    """One reading of a file, into the conversation that it becomes."""

    def __init__(
        self,
        conversations: Conversations,
        source: Source,
        format_: Format,
        origin: Origin,
        tell: Callable[[int, int], None],
    ) -> None:
        self._conversations = conversations
        self._source, self._format, self._origin, self._tell = source, format_, origin, tell
        self._id = id_of(format_.NAME, origin)
        self._now = conversations.clock()
        self._counts = {"messages": 0, "notes": 0, "damaged": 0}

    def run(self, cwd: str) -> Imported:
        """Record what is new, and return what was done."""
        recorded = Recorded(self._known(), is_timed=self._origin.is_timed)
        placement = Placement(self._id, recorded)
        self._record(self._new(placement, cwd, is_begun=recorded.last > 0))
        return Imported(
            id=self._id,
            source=str(self._source.path),
            format=self._format.NAME,
            new=recorded.last == 0,
            added=placement.added,
            known=placement.known,
            unfinished=self._source.unfinished,
            **self._counts,
        )

    def _known(self) -> Iterator[Event]:
        """Yield the events that the conversation has already."""
        for event in chain.from_iterable(self._conversations.pages_of(self._id)):
            if isinstance(event, Unrecognised) and event.is_newer:
                raise NewerEventsError(id=self._id)
            yield event

    def _new(self, placement: Placement, cwd: str, *, is_begun: bool) -> Iterator[Event]:
        """Yield what is not recorded yet."""
        if not is_begun:
            yield placement.add(self._started(cwd))
        time = self._now
        for told in self._format.told(self._source, self._origin):
            event = told.event
            if event is not None and event.timestamp == EPOCH:
                event = msgspec.structs.replace(event, timestamp=self._now)
            time = time if event is None else event.timestamp
            for each in placement.placed(told._replace(event=event)):
                self._count(each)
                yield each
        yield from placement.ended(time)

    def _started(self, cwd: str) -> Started:
        origin = self._origin
        source = {
            "format": self._format.NAME,
            "file": valid(str(self._source.path)),
            "sha256": self._source.digest(),
            "session": valid(origin.session),
        }
        if origin.parent is not None:
            source["parent"] = origin.parent
        return Started(
            timestamp=self._now if origin.started == EPOCH else origin.started,
            cwd=valid(origin.cwd or cwd),
            program=self._format.NAME,
            version=origin.version,
            metadata={"imported": source},
        )

    def _count(self, event: Event) -> None:
        match event:
            case NoteAppended(kind=kind):
                self._counts["damaged" if kind == DAMAGE else "notes"] += 1
            case MessageAppended():
                self._counts["messages"] += 1

    def _record(self, events: Iterator[Event]) -> None:
        """Record *events* in batches: each is there whole, or not at all."""
        batch: list[Any] = []
        recorded_up_to = self._source.done
        for event in events:
            batch.append(event)
            if self._source.done - recorded_up_to >= _BATCH or len(batch) >= _MOST_EVENTS:
                self._conversations.events.put(batch)
                batch, recorded_up_to = [], self._source.done
            self._tell(self._source.done, self._source.size)
        if batch:
            self._conversations.events.put(batch)
