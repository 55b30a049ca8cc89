"""The full text of everything that was said, called and printed, with an index over it.

How far the index has come is known for each log: the last version that is in it, and where that
version stands. A log that goes on from there is read on from there; any other is read again.
"""

from __future__ import annotations

import time
from collections import deque
from contextlib import suppress
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

import msgspec

from domain.projections.texts import folded, texts
from infrastructure.errors import StoreError
from infrastructure.jsonl.snapshots import Anchor, anchor_of, holds
from infrastructure.read_models.catalogue import LOG_STATE
from infrastructure.read_models.database import Database, Model, Result, writing

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

    from domain.events import Event, Version
    from infrastructure.jsonl.log_reader import State
    from infrastructure.jsonl.store import Store

TEXTS: Final = Model(
    "texts",
    1,
    (
        f"""CREATE TABLE logs (
            number INTEGER PRIMARY KEY, id TEXT NOT NULL UNIQUE, version INTEGER NOT NULL,
            anchor TEXT, {LOG_STATE})""",
        """CREATE TABLE texts (
            number INTEGER PRIMARY KEY, log INTEGER NOT NULL, version INTEGER NOT NULL,
            time TEXT NOT NULL, kind TEXT NOT NULL, tool TEXT, call TEXT,
            failed INTEGER NOT NULL, text TEXT NOT NULL)""",
        "CREATE INDEX of_log ON texts (log, call)",
        """CREATE VIRTUAL TABLE words USING fts5
            (text, content = '', detail = none, tokenize = 'trigram case_sensitive 1')""",
        "CREATE VIRTUAL TABLE terms USING fts5vocab (words, row)",
    ),
)
_PAGE: Final = 500
_SECONDS: Final = 0.5
"""How long a transaction lasts: others may want to write as well."""

_GRAM: Final = 3
_MOST_GRAMS: Final = 64
"""More are not needed to tell texts apart, and the parser of expressions has limits."""

_END: Final = "\n\n"
"""Stands behind a text in the index, so that its last two characters begin terms as well."""

_NO_STATE: Final = (0, 0, 0)


class Hit(NamedTuple):
    """A text in which everything stands that was looked for."""

    conversation: UUID
    version: Version
    time: str
    kind: str
    tool: str | None
    failed: bool
    text: str


class Wanted(NamedTuple):
    """What is looked for: a text with all *parts*, which are folded; *kind* and *tool*, if any."""

    parts: Sequence[str]
    kind: str | None = None
    tool: str | None = None
    failed: bool = False


class Texts:
    """The texts of *store*; *read* returns the events of a conversation from a version on."""

    def __init__(self, store: Store, read: Callable[[UUID, Version, int], list[Event]]) -> None:
        self._store = store
        self._read = read
        self._database = Database(store.path, TEXTS)

    def use(
        self,
        work: Callable[[sqlite3.Connection], Result],
        tell: Callable[[int, int], None],
    ) -> tuple[Result, list[tuple[UUID, StoreError]]]:
        """Return what *work* makes of a connection to tables in which is what the logs say now.

        *tell* hears how many bytes of how many are read. What was read is kept, however this ends.
        The answer is also which logs cannot be read, and why.

        Raises:
            ReadModelError: the file cannot be used.
        """

        def current(
            connection: sqlite3.Connection,
        ) -> tuple[Result, list[tuple[UUID, StoreError]]]:
            unreadable = self._catch_up(connection, tell)
            return work(connection), unreadable

        return self._database.use(current)

    def _catch_up(
        self, connection: sqlite3.Connection, tell: Callable[[int, int], None]
    ) -> list[tuple[UUID, StoreError]]:
        """Read what the logs have that is not here yet, those that were changed first, first."""
        found = connection.execute("SELECT id, inode, size, changed FROM logs")
        known = {id_: (inode, size, changed) for id_, inode, size, changed in found}
        there = self._store.states()
        for id_ in known.keys() - there.keys():
            with writing(connection):
                _forget(connection, UUID(id_))
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
                _add(connection, number, events)
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
            _forget(connection, id_)
        cursor = connection.execute(
            "INSERT INTO logs (id, version, inode, size, changed) VALUES (?, 0, ?, ?, ?)",
            (str(id_), *_NO_STATE),
        )
        return cursor.lastrowid or 0, 0


def hits(
    connection: sqlite3.Connection, wanted: Wanted, accept: Callable[[UUID], bool]
) -> Iterator[Hit]:
    """Yield the texts that are *wanted* of conversations to *accept*, those read last, first."""
    match = _match(connection, wanted.parts)
    if match is None:
        return
    candidates = connection.execute(
        """SELECT number, log FROM words CROSS JOIN texts ON number = words.rowid
        WHERE words MATCH :match AND (:kind IS NULL OR kind = :kind)
        AND (:tool IS NULL OR tool = :tool) AND failed >= :failed
        ORDER BY words.rowid DESC""",
        {"match": match, "kind": wanted.kind, "tool": wanted.tool, "failed": wanted.failed},
    )
    logs: dict[int, UUID] = {}
    for number, log in candidates:
        if log not in logs:
            (id_,) = connection.execute("SELECT id FROM logs WHERE number = ?", (log,)).fetchone()
            logs[log] = UUID(id_)
        if accept(logs[log]):
            hit = Hit(
                logs[log],
                *connection.execute(
                    "SELECT version, time, kind, tool, failed, text FROM texts WHERE number = ?",
                    (number,),
                ).fetchone(),
            )
            said = folded(hit.text)
            if all(part in said for part in wanted.parts):
                yield hit._replace(failed=bool(hit.failed))


def _match(connection: sqlite3.Connection, parts: Sequence[str]) -> str | None:
    """Return an expression for the texts that may have all *parts*; None if there can be none.

    They have all terms of a part, in any order; one that is shorter than a term begins some.
    """
    phrases = []
    for part in parts:
        if len(part) >= _GRAM:
            grams = {part[at : at + _GRAM] for at in range(len(part) - _GRAM + 1)}
            phrases.append(" AND ".join(map(_quoted, sorted(grams)[:_MOST_GRAMS])))
            continue
        terms = connection.execute(
            "SELECT term FROM terms WHERE term >= ? AND term <= ?", (part, part + "\U0010ffff" * 2)
        ).fetchall()
        if not terms:
            return None
        phrases.append(" OR ".join(_quoted(term) for (term,) in terms))
    return " AND ".join(f"({phrase})" for phrase in phrases)


def _quoted(text: str) -> str:
    doubled = text.replace('"', '""')
    return f'"{doubled}"'


def _add(connection: sqlite3.Connection, log: int, events: Sequence[Event]) -> None:
    tools: dict[str, str | None] = {}
    for event in events:
        for text in texts(event):
            tool = text.tool
            if text.kind == "tool_use" and text.call is not None:
                tools[text.call] = tool
            elif text.call is not None:
                if text.call not in tools:
                    tools[text.call] = _tool_of(connection, log, text.call)
                tool = tools[text.call]
            cursor = connection.execute(
                "INSERT INTO texts (log, version, time, kind, tool, call, failed, text) "
                "VALUES (?, ?, ?, ?, ?, ?, ?, ?)",
                (
                    log, text.version, text.time.isoformat(), text.kind, tool, text.call,
                    text.failed, text.text,
                ),
            )  # fmt: skip
            connection.execute(
                "INSERT INTO words (rowid, text) VALUES (?, ?)",
                (cursor.lastrowid, folded(text.text) + _END),
            )


def _tool_of(connection: sqlite3.Connection, log: int, call: str) -> str | None:
    row = connection.execute(
        "SELECT tool FROM texts WHERE log = ? AND call = ? AND kind = 'tool_use'", (log, call)
    ).fetchone()
    return row[0] if row else None


def _forget(connection: sqlite3.Connection, id_: UUID) -> None:
    """Take a log, and its texts, out."""
    row = connection.execute("SELECT number FROM logs WHERE id = ?", (str(id_),)).fetchone()
    if row is None:
        return
    for number, text in connection.execute(
        "SELECT number, text FROM texts WHERE log = ?", row
    ).fetchall():
        connection.execute(
            "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
            (number, folded(text) + _END),
        )
    connection.execute("DELETE FROM texts WHERE log = ?", row)
    connection.execute("DELETE FROM logs WHERE number = ?", row)


def _encoded(anchor: Anchor | None) -> str | None:
    return None if anchor is None else msgspec.json.encode(anchor).decode()


def _decoded(anchor: str | None) -> Anchor | None:
    return None if anchor is None else msgspec.json.decode(anchor, type=Anchor)
