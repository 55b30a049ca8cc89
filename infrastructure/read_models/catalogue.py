"""The catalogue: a row for each conversation, kept so that a list opens no log.

A row holds as long as its log is as it was when it was read: the same file, the same size, the same
time of its last change. So it does not matter who changed a log, nor how.
"""

from __future__ import annotations

import time
from datetime import datetime
from typing import TYPE_CHECKING, Any, Final, NamedTuple
from uuid import UUID

import msgspec

from domain.projections.catalogue import Row
from infrastructure.jsonl import disk
from infrastructure.read_models.database import DamagedError, Database, Model, writing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable, Sequence

    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.store import Store

LOG_STATE: Final = "inode INTEGER NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL"
CATALOGUE: Final = Model(
    "catalogue",
    1,
    (
        f"""CREATE TABLE conversations (
            id TEXT PRIMARY KEY, events INTEGER NOT NULL, created TEXT NOT NULL,
            updated TEXT NOT NULL, cwd TEXT, title TEXT NOT NULL, name TEXT, model TEXT,
            archived INTEGER NOT NULL, {LOG_STATE}, findings TEXT) WITHOUT ROWID""",
        "CREATE INDEX of_directory ON conversations (cwd)",
        "CREATE TABLE folder (changed INTEGER NOT NULL)",
    ),
)
_ROW: Final = "id, events, created, updated, cwd, title, name, model, archived"
_Values = tuple[
    UUID, int, datetime, datetime, str | None, str, str | None, str | None, int,
    int, int, int, str | None,
]  # fmt: skip
"""Of what types a line of the table is."""

_SETTLED: Final = 2_000_000_000
"""Nanoseconds after which a folder that has not changed has not: clocks of file systems tick."""


class Kept(NamedTuple):
    """A row, the state of the log that it is of, and its findings as JSON, if it was looked at."""

    row: Row
    state: State
    findings: str | None = None


class Changes(NamedTuple):
    """What the catalogue does not say: it holds *rows*, but *unread* logs are to be read.

    *gone* are the ids of logs that are there no more; *folder* is when the folder changed, if it
    will be seen when it does so again, and *is_folder_new* whether that is not kept yet.
    """

    rows: list[Kept]
    unread: dict[UUID, State]
    gone: list[UUID]
    folder: int | None
    is_folder_new: bool


class Catalogue:
    """The rows of *store*, in a file in its folder."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = Database(store.path, CATALOGUE)

    def compared(self, cwd: str | None) -> Changes:
        """Return the rows of the directory *cwd*, or of all, each compared with its log.

        Raises:
            ReadModelError: the file cannot be used.
            ReadError: the folder cannot be read.
        """
        return self._database.use(lambda connection: self._compared(connection, cwd))

    def _compared(self, connection: sqlite3.Connection, cwd: str | None) -> Changes:
        folder = _settled(self._store)
        known = connection.execute("SELECT changed FROM folder").fetchone()
        is_folder_new = folder is None or known != (folder,)
        # As long as the folder is the same, so are the names in it.
        where = "WHERE cwd = :cwd OR cwd IS NULL" if cwd is not None and not is_folder_new else ""
        sql = f"SELECT {_ROW}, inode, size, changed, findings FROM conversations {where}"  # noqa: S608
        found = map(_kept, connection.execute(sql, {"cwd": cwd}))
        kept = {str(one.row.id): one for one in found}
        there = self._store.states(kept if where else None)
        rows = [one for id_, one in kept.items() if there.get(id_) == one.state]
        current = {str(one.row.id) for one in rows}
        unread = {UUID(id_): state for id_, state in there.items() if id_ not in current}
        gone = [UUID(id_) for id_ in kept.keys() - there.keys()]
        return Changes(rows, unread, gone, folder, is_folder_new and folder is not None)

    def keep(self, rows: Iterable[Kept], gone: Iterable[UUID], folder: int | None) -> None:
        """Keep *rows*, and forget those of the logs that are *gone*.

        *folder*: no other log was in the folder when it had changed last at that time.

        Raises:
            ReadModelError: nothing was kept.
        """
        values = [_values(kept) for kept in rows]

        def work(connection: sqlite3.Connection) -> None:
            with writing(connection):
                places = ", ".join("?" * 13)
                connection.executemany(
                    f"INSERT OR REPLACE INTO conversations VALUES ({places})",  # noqa: S608
                    values,
                )
                connection.executemany(
                    "DELETE FROM conversations WHERE id = ?", [(str(id_),) for id_ in gone]
                )
                connection.execute("DELETE FROM folder")
                if folder is not None:
                    connection.execute("INSERT INTO folder VALUES (?)", (folder,))

        self._database.use(work)


def _settled(store: Store) -> int | None:
    try:
        changed = disk.stat(store.path).st_mtime_ns
    except FileNotFoundError:
        return None
    return changed if time.time_ns() - changed > _SETTLED else None


def _kept(values: Sequence[Any]) -> Kept:
    """Return what *values*, of a line of the table, say.

    Raises:
        DatabaseError: they are not what was kept.
    """
    try:
        *row, archived, inode, size, changed, findings = msgspec.convert(values, _Values)
    except msgspec.ValidationError as error:
        raise DamagedError from error
    return Kept(Row._make((*row, bool(archived))), (inode, size, changed), findings)


def _values(kept: Kept) -> tuple[object, ...]:
    row = kept.row
    times = row.created.isoformat(), row.updated.isoformat()
    texts = row.cwd, row.title, row.name, row.model
    return (str(row.id), row.events, *times, *texts, row.archived, *kept.state, kept.findings)
