"""The catalogue: a row for each conversation, kept so that a list opens no log.

A row holds as long as its log is as it was when it was read: the same file, the same size, the same
time of its last change. So it does not matter who changed a log, nor how.
"""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import msgspec

from infrastructure.jsonl import disk
from infrastructure.read_models.database import DamagedError, Database, Model, writing
from infrastructure.read_models.kept import Kept

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Iterable

    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.store import Store

LOG_STATE: Final = "inode INTEGER NOT NULL, size INTEGER NOT NULL, changed INTEGER NOT NULL"
CATALOGUE: Final = Model(
    "catalogue",
    2,
    (
        f"""CREATE TABLE conversations
            (id TEXT PRIMARY KEY, {LOG_STATE}, directory TEXT, kept BLOB NOT NULL) WITHOUT ROWID""",
        "CREATE INDEX of_directory ON conversations (directory)",
        "CREATE TABLE folder (changed INTEGER NOT NULL)",
    ),
)

_SETTLED: Final = 2_000_000_000
"""Nanoseconds after which a folder that has not changed has not: clocks of file systems tick."""


class Changes(NamedTuple):
    """What the catalogue does not say: it holds *rows*, but *unread* logs are to be read.

    Attributes:
        earlier: The rows that it holds of unread logs.
        gone: Ids of logs that are there no more.
        folder: When the folder changed, if it will be seen when it does so again.
        is_folder_new: Whether that is not kept yet.
    """

    rows: list[Kept]
    unread: dict[UUID, State]
    earlier: dict[UUID, Kept]
    gone: list[UUID]
    folder: int | None
    is_folder_new: bool


class Catalogue:
    """The rows of *store*, in a file in its folder."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self._database = Database(store.path, CATALOGUE)

    def compared(self, directory: str | None) -> Changes:
        """Return the rows of the *directory*, a real path, or of all, each compared with its log.

        Raises:
            ReadModelError: the file cannot be used.
            ReadError: the folder cannot be read.
        """
        return self._database.use(lambda connection: self._compared(connection, directory))

    def _compared(self, connection: sqlite3.Connection, directory: str | None) -> Changes:
        folder = _settled(self._store)
        known = connection.execute("SELECT changed FROM folder").fetchone()
        is_folder_new = folder is None or known != (folder,)
        # As long as the folder is the same, so are the names in it.
        where = ""
        if directory is not None and not is_folder_new:
            where = "WHERE directory = :directory OR directory IS NULL"
        sql = f"SELECT id, kept FROM conversations {where}"  # noqa: S608
        found = connection.execute(sql, {"directory": directory})
        kept = {id_: _kept(line) for id_, line in found}
        there = self._store.states(kept if where else None)
        current = {id_: one for id_, one in kept.items() if there.get(id_) == one.state}
        rows = list(current.values())
        unread = {UUID(id_): state for id_, state in there.items() if id_ not in current}
        earlier = {id_: kept[str(id_)] for id_ in unread if str(id_) in kept}
        gone = [UUID(id_) for id_ in kept.keys() - there.keys()]
        return Changes(rows, unread, earlier, gone, folder, is_folder_new and folder is not None)

    def keep(self, rows: Iterable[Kept], gone: Iterable[UUID], folder: int | None) -> None:
        """Keep *rows*, and forget those of the logs that are *gone*.

        *folder*: no other log was in the folder when it had changed last at that time.

        Raises:
            ReadModelError: nothing was kept.
        """
        values = [_values(kept) for kept in rows]

        def work(connection: sqlite3.Connection) -> None:
            with writing(connection):
                connection.executemany(
                    "INSERT OR REPLACE INTO conversations VALUES (?, ?, ?, ?, ?, ?)", values
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


_decode = msgspec.json.Decoder(Kept).decode


def _kept(line: bytes) -> Kept:
    """Return what a *line* of the table says.

    Raises:
        DatabaseError: they are not what was kept.
    """
    try:
        return _decode(line)
    except (msgspec.MsgspecError, TypeError) as error:
        raise DamagedError from error


def _values(kept: Kept) -> tuple[object, ...]:
    return (str(kept.row.id), *kept.state, kept.directory, msgspec.json.encode(kept))
