"""How far each after-hook has come: the library's tracking records, in a small SQLite file.

Beside the position stands the last version that a hook has seen of each conversation, in the same
transaction: over logs the order of positions may be built again, and versions never change. What
went wrong last is kept, too. It is truth, not derived: who deletes it lets hooks begin at the end.
"""

from __future__ import annotations

import sqlite3
from datetime import UTC, datetime
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID

from eventsourcing.persistence import PersistenceError, Tracking
from eventsourcing.sqlite import SQLiteCursor, SQLiteDatastore, SQLiteTrackingRecorder

from infrastructure.errors import StoreError
from infrastructure.following import Place
from infrastructure.jsonl import disk

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

_PATIENCE = 10
"""Seconds that another process that writes is waited for."""


class Failure(NamedTuple):
    """What went wrong with the event that a hook is at: *attempts* failed, the last with *error*.

    *is_parked*: it is not tried again until somebody says so.
    """

    event_id: str
    attempts: int
    error: str
    time: datetime
    is_parked: bool


class HookPositions(SQLiteTrackingRecorder):
    """The positions of hooks, by their names."""

    @classmethod
    def of(cls, path: Path) -> HookPositions:
        """Return the positions that stand in the file *path*, which is made if need be.

        Raises:
            StoreError: it cannot be used.
        """
        try:
            disk.make_folder(path.parent)
            positions = cls(SQLiteDatastore(str(path), lock_timeout=_PATIENCE))
            positions.create_table()
        except (OSError, PersistenceError, sqlite3.Error) as error:
            raise StoreError(f"{path}: {error}", path=path) from error
        return positions

    def close(self) -> None:
        """Close the file."""
        self.datastore.close()

    def construct_create_table_statements(self) -> list[str]:  # noqa: D102 - the library's
        return [
            *super().construct_create_table_statements(),
            "CREATE TABLE IF NOT EXISTS orders (hook TEXT PRIMARY KEY, epoch TEXT) WITHOUT ROWID",
            (
                "CREATE TABLE IF NOT EXISTS seen (hook TEXT, conversation TEXT, version INTEGER,"
                " PRIMARY KEY (hook, conversation)) WITHOUT ROWID"
            ),
            (
                "CREATE TABLE IF NOT EXISTS failures (hook TEXT PRIMARY KEY, event_id TEXT,"
                " attempts INTEGER, error TEXT, time TEXT, is_parked INTEGER) WITHOUT ROWID"
            ),
        ]

    def place(self, hook: str) -> Place | None:
        """Return how far *hook* has come; None if it has not begun."""
        with self.datastore.transaction(commit=False) as c:
            c.execute("SELECT epoch FROM orders WHERE hook = ?", (hook,))
            row = c.fetchone()
            if row is None:
                return None
            position = self._max_tracking_id(_name(hook, row[0]), c) or 0
            c.execute("SELECT conversation, version FROM seen WHERE hook = ?", (hook,))
            versions = {UUID(conversation): version for conversation, version in c.fetchall()}
        return Place(position, row[0], versions)

    def begin(self, hook: str, place: Place) -> None:
        """Let *hook* go on from *place*, wherever it was, and whatever went wrong there."""
        with self.datastore.transaction(commit=True) as c:
            c.execute("DELETE FROM failures WHERE hook = ?", (hook,))
            c.execute("DELETE FROM seen WHERE hook = ?", (hook,))
            self._forget_order(c, hook)
            self._advance(c, hook, place.position, place.epoch, place.versions)

    def advance(self, hook: str, position: int, epoch: str, versions: Mapping[UUID, int]) -> None:
        """Record that *hook* has seen all up to *position*, and these *versions*: all or nothing.

        Raises:
            IntegrityError: it was as far already: another program runs it.
        """
        with self.datastore.transaction(commit=True) as c:
            # A write comes first: it waits for others, where a read that goes on to write fails.
            c.execute("DELETE FROM failures WHERE hook = ?", (hook,))
            c.execute("SELECT epoch FROM orders WHERE hook = ?", (hook,))
            row = c.fetchone()
            if row is None or row[0] != epoch:
                self._forget_order(c, hook)
            self._advance(c, hook, position, epoch, versions)

    def _advance(
        self, c: SQLiteCursor, hook: str, position: int, epoch: str, versions: Mapping[UUID, int]
    ) -> None:
        c.execute("INSERT OR REPLACE INTO orders VALUES (?, ?)", (hook, epoch))
        self._insert_tracking(c, Tracking(_name(hook, epoch), position))
        c.executemany(
            "INSERT OR REPLACE INTO seen VALUES (?, ?, ?)",
            [(hook, str(conversation), version) for conversation, version in versions.items()],
        )

    def _forget_order(self, c: SQLiteCursor, hook: str) -> None:
        c.execute("SELECT epoch FROM orders WHERE hook = ?", (hook,))
        for (epoch,) in c.fetchall():
            c.execute("DELETE FROM tracking WHERE application_name = ?", (_name(hook, epoch),))

    # -- what went wrong ---------------------------------------------------------------------------

    def failure(self, hook: str) -> Failure | None:
        """Return what went wrong with the event that *hook* is at; None if nothing did."""
        with self.datastore.transaction(commit=False) as c:
            c.execute(
                "SELECT event_id, attempts, error, time, is_parked FROM failures WHERE hook = ?",
                (hook,),
            )
            row = c.fetchone()
        if row is None:
            return None
        event_id, attempts, error, time, is_parked = row
        return Failure(event_id, attempts, error, datetime.fromisoformat(time), bool(is_parked))

    def fail(self, hook: str, failure: Failure) -> None:
        """Record what went wrong."""
        time = failure.time.astimezone(UTC).isoformat()
        row = (hook, failure.event_id, failure.attempts, failure.error, time, failure.is_parked)
        with self.datastore.transaction(commit=True) as c:
            c.execute("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?, ?, ?)", row)

    def try_again(self, hook: str) -> None:
        """Forget how often the event that *hook* is at has failed."""
        with self.datastore.transaction(commit=True) as c:
            c.execute("DELETE FROM failures WHERE hook = ?", (hook,))


def _name(hook: str, epoch: str) -> str:
    return f"{hook} {epoch}"
