"""A file of SQLite that can be thrown away: made where it is missing, and anew where it is damaged.

The file's name says of which version its tables are, so two versions of this program never share
one. It also counts: a new file never has the name of one that a process may have open, for SQLite
would mix their journals. The journal is a WAL: who reads never waits for who writes, a commit waits
for no disk, and after a crash of the machine what is there is whole.
"""

from __future__ import annotations

import contextlib
import re
import sqlite3
from typing import TYPE_CHECKING, Final, NamedTuple, TypeVar

from infrastructure.errors import ReadModelError
from infrastructure.jsonl import disk
from infrastructure.safe_files import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence
    from pathlib import Path

FOLDER: Final = ".index"
_SUFFIX: Final = ".sqlite3"
PATIENCE: Final = 2.0
"""How many seconds another process that writes is waited for."""

_DAMAGED: Final = (sqlite3.SQLITE_CORRUPT, sqlite3.SQLITE_NOTADB)

Result = TypeVar("Result")


class DamagedError(sqlite3.DatabaseError):
    """What stands in a table is not what was written into it."""

    sqlite_errorcode = sqlite3.SQLITE_CORRUPT


class Model(NamedTuple):
    """The *name* of a read model, the *version* of its tables, and the statements that make them.

    What the tables hold, and from which texts, is a part of the version.
    """

    name: str
    version: int
    schema: Sequence[str]


class Database:
    """The file of *model* in the folder of a store. Making one touches nothing.

    Args:
        store: The folder of the logs.
        model: What is in it.
    """

    def __init__(self, store: Path, model: Model) -> None:
        self._folder = store / FOLDER
        self._model = model

    def path(self) -> Path:
        """Return the file, or what it would be called.

        Raises:
            OSError: the folder cannot be read, or is none of ours.
        """
        model = self._model
        generation = max(self._generations(), default=1)
        return self._folder / f"{model.name}-{model.version}.{generation}{_SUFFIX}"

    def use(self, work: Callable[[sqlite3.Connection], Result]) -> Result:
        """Return what *work* makes of a connection; if the file is damaged, of a new one.

        Raises:
            ReadModelError: it is locked, the disk is full or read-only, or the like.
        """
        for is_last in (False, True):
            try:
                path = self.path()
                with contextlib.closing(self._opened(path)) as connection:
                    return work(connection)
            except sqlite3.Error as error:
                if is_last or not _is_damage(error):
                    raise ReadModelError(self._folder, str(error)) from error
                with contextlib.suppress(OSError):
                    self._begin_anew(path)
            except OSError as error:
                raise ReadModelError(self._folder, reason_of(error)) from error
        raise AssertionError

    def _generations(self) -> list[int]:
        name = re.compile(rf"{self._model.name}-{self._model.version}\.([0-9]+){_SUFFIX}")
        found = (name.fullmatch(entry.name) for entry in disk.files(self._folder))
        return [int(match[1]) for match in found if match]

    def _opened(self, path: Path) -> sqlite3.Connection:
        disk.make_inner_folder(self._folder)
        disk.close(disk.open_or_create(path))  # 0600, and no link to elsewhere
        connection = sqlite3.connect(path, timeout=PATIENCE, isolation_level=None)
        try:
            connection.execute("PRAGMA trusted_schema = OFF")
            if not _version_of(connection):
                connection.execute("PRAGMA journal_mode = WAL")
                with writing(connection):
                    if not _version_of(connection):  # or another process made them meanwhile
                        for statement in self._model.schema:
                            connection.execute(statement)
                        connection.execute(f"PRAGMA user_version = {self._model.version}")
            connection.execute("PRAGMA synchronous = NORMAL")
        except BaseException:
            connection.close()
            raise
        return connection

    def _begin_anew(self, damaged: Path) -> None:
        """Make a file under the next name, and remove the *damaged* one."""
        generation = max(self._generations(), default=1) + 1
        name = f"{self._model.name}-{self._model.version}.{generation}{_SUFFIX}"
        disk.close(disk.open_or_create(self._folder / name))
        for suffix in ("", "-wal", "-shm"):
            disk.remove(damaged.with_name(damaged.name + suffix))


@contextlib.contextmanager
def in_memory(model: Model) -> Iterator[sqlite3.Connection]:
    """Hold the tables of *model*, empty, in memory, where nothing of them reaches a disk."""
    with contextlib.closing(sqlite3.connect(":memory:", isolation_level=None)) as connection:
        connection.execute("PRAGMA temp_store = MEMORY")
        for statement in model.schema:
            connection.execute(statement)
        yield connection


def _version_of(connection: sqlite3.Connection) -> int:
    (version,) = connection.execute("PRAGMA user_version").fetchone()
    return int(version)


def _is_damage(error: sqlite3.Error) -> bool:
    """Whether the file is to blame. An error without a code is a text that is no UTF-8."""
    code = getattr(error, "sqlite_errorcode", sqlite3.SQLITE_CORRUPT) & 0xFF
    return code in _DAMAGED or "no such table" in str(error)


@contextlib.contextmanager
def writing(connection: sqlite3.Connection) -> Iterator[None]:
    """Write what is written inside the ``with`` all or not at all, with no other writer between."""
    connection.execute("BEGIN IMMEDIATE")
    try:
        yield
    except BaseException:
        if connection.in_transaction:
            connection.execute("ROLLBACK")
        raise
    connection.execute("COMMIT")
