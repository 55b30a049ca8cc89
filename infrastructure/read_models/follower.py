"""Tables that follow the logs of a store: what they hold of a log goes on where it stopped.

How far they have come is known for each log: the last version that is in them, and where that
version stands. A log that goes on from there is read on from there; any other is read again.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, ClassVar, Final
from uuid import UUID

import msgspec

from infrastructure.errors import StoreError
from infrastructure.jsonl.snapshots import Anchor, anchor_of, holds
from infrastructure.read_models.catalogue import LOG_STATE
from infrastructure.read_models.database import Database, Model, Result, writing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Collection, Sequence

    from domain.events import Event, Version
    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.store import Store

LOGS: Final = f"""CREATE TABLE logs (
    number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
    anchor TEXT, {LOG_STATE})"""
"""How far each log is read. The schema of each `Model` that follows begins with it."""

_PAGE: Final = 500
_SECONDS: Final = 0.5
"""How long a transaction lasts: others may want to write as well."""

_NO_STATE: Final = (0, 0, 0)


class Follower(ABC):
    """Tables of what the logs of *store* say.

    *read* returns the events of a conversation from a version on.
    """

    MODEL: ClassVar[Model]

    def __init__(self, store: Store, read: Callable[[UUID, Version, int], list[Event]]) -> None:
        self._store = store
        self._read = read
        self._database = Database(store.path, self.MODEL)

    @staticmethod
    @abstractmethod
    def add(connection: sqlite3.Connection, log: int, events: Sequence[Event]) -> None:
        """Put what the next *events* of the log of that number say into the tables."""

    @staticmethod
    @abstractmethod
    def forget(connection: sqlite3.Connection, log: int) -> None:
        """Take all that is of the log of that number out of the tables."""

    def use(
        self,
        work: Callable[[sqlite3.Connection], Result],
        tell: Callable[[int, int], None],
        only: Collection[UUID] | None = None,
    ) -> tuple[Result, list[tuple[UUID, StoreError]]]:
        """Return what *work* makes of a connection to tables in which is what the logs say now.

        *only* those logs are looked at, if they are given: *work* must not care for others.
        *tell* hears how many bytes of how many are read. What was read is kept, however this ends.
        The answer is also which logs cannot be read, and why.

        Raises:
            ReadModelError: the file cannot be used.
        """

        def current(
            connection: sqlite3.Connection,
        ) -> tuple[Result, list[tuple[UUID, StoreError]]]:
            unreadable = self._catch_up(connection, tell, only)
            return work(connection), unreadable

        return self._database.use(current)

    def _catch_up(
        self,
        connection: sqlite3.Connection,
        tell: Callable[[int, int], None],
        only: Collection[UUID] | None,
    ) -> list[tuple[UUID, StoreError]]:
        """Read what the logs have that is not here yet, those that were changed first, first."""
        found = connection.execute("SELECT id, inode, size, changed FROM logs")
        known = {id_: (inode, size, changed) for id_, inode, size, changed in found}
        there = self._store.states(None if only is None else map(str, only))
        if only is not None:
            known = {id_: known[id_] for id_ in map(str, only) if id_ in known}
        for id_ in known.keys() - there.keys():
            with writing(connection):
                self._forget(connection, id_)
        behind = [UUID(id_) for id_, state in there.items() if known.get(id_) != state]
        behind.sort(key=lambda id_: there[str(id_)][-1])
        total, done = sum(there[str(id_)][1] for id_ in behind), 0
        queue = deque(behind)
        unreadable = []
        while queue:
            with writing(connection):
                until = time.monotonic() + _SECONDS
                while queue:
                    id_, state = queue[0], there[str(queue[0])]
                    try:
                        is_read = self._go_on(connection, id_, state, until)
                    except StoreError as error:
                        unreadable.append((id_, error))
                        is_read = True  # as far as it can be
                    if is_read:
                        done += state[1]
                        queue.popleft()
                    if time.monotonic() >= until:
                        break
            tell(done, total)
        return unreadable

    def _go_on(self, connection: sqlite3.Connection, id_: UUID, state: State, until: float) -> bool:
        """Read on in one log; return whether all of it is read."""
        number, version = self._begun(connection, id_, state)
        if version is None:
            return True
        is_read = False
        try:
            while not is_read:
                events = self._read(id_, version + 1, _PAGE)
                self.add(connection, number, events)
                version = events[-1].originator_version if events else version
                is_read = len(events) < _PAGE
                if time.monotonic() >= until:
                    break
        finally:
            anchor = None
            with suppress(StoreError):
                anchor = anchor_of(self._store.log(id_), version)
            connection.execute(
                "UPDATE logs SET version = ?, anchor = ?, inode = ?, size = ?, changed = ? "
                "WHERE number = ?",
                (version, _encoded(anchor), *(state if is_read else _NO_STATE), number),
            )
        return is_read

    def _begun(
        self, connection: sqlite3.Connection, id_: UUID, state: State
    ) -> tuple[int, Version | None]:
        """Return the number of a log, and the version to go on from; None if it is read already.

        If it is not the log that it was, what is here of it goes.
        """
        row = connection.execute(
            "SELECT number, version, anchor, inode, size, changed FROM logs WHERE id = ?",
            (str(id_),),
        ).fetchone()
        if row is not None:
            number, version, anchor, *kept = row
            if tuple(kept) == state:  # another process was here
                return number, None
            if version == 0 or holds(self._store.log(id_), _decoded(anchor)):
                return number, version
            self._forget(connection, str(id_))
        cursor = connection.execute(
            "INSERT INTO logs (id, version, inode, size, changed) VALUES (?, 0, ?, ?, ?)",
            (str(id_), *_NO_STATE),
        )
        return cursor.lastrowid or 0, 0

    def _forget(self, connection: sqlite3.Connection, id_: str) -> None:
        """Take a log out, and what is of it."""
        row = connection.execute("SELECT number FROM logs WHERE id = ?", (id_,)).fetchone()
        if row is not None:
            self.forget(connection, *row)
            connection.execute("DELETE FROM logs WHERE number = ?", row)


def _encoded(anchor: Anchor | None) -> str | None:
    return None if anchor is None else msgspec.json.encode(anchor).decode()


def _decoded(anchor: str | None) -> Anchor | None:
    return None if anchor is None else msgspec.json.decode(anchor, type=Anchor)
