"""The full text of everything that was said, called and printed, with an index over it."""

from __future__ import annotations

from datetime import datetime
from typing import TYPE_CHECKING, Final, NamedTuple
from uuid import UUID

from domain.projections.texts import folded, texts
from infrastructure.read_models.database import Model
from infrastructure.read_models.follower import LOGS, Follower

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Callable, Iterator, Sequence

    from domain.events import Event, Version
    from infrastructure.read_models.wanted import Wanted

TEXTS: Final = Model(
    "texts",
    1,
    (
        LOGS,
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
_GRAM: Final = 3
_MOST_GRAMS: Final = 64
"""More are not needed to tell texts apart, and the parser of expressions has limits."""

_END: Final = "\n\n"
"""Stands behind a text in the index, so that its last two characters begin terms as well."""


class Hit(NamedTuple):
    """A text in which everything stands that was looked for."""

    conversation: UUID
    version: Version
    time: str
    kind: str
    tool: str | None
    failed: bool
    text: str


class Texts(Follower):
    """The texts of a store."""

    MODEL = TEXTS

    @staticmethod
    def add(connection: sqlite3.Connection, log: int, events: Sequence[Event]) -> None:
        """Add the texts of *events*."""
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

    @staticmethod
    def forget(connection: sqlite3.Connection, log: int) -> None:
        """Take the texts of a log out."""
        for number, text in connection.execute(
            "SELECT number, text FROM texts WHERE log = ?", (log,)
        ).fetchall():
            connection.execute(
                "INSERT INTO words (words, rowid, text) VALUES ('delete', ?, ?)",
                (number, folded(text) + _END),
            )
        connection.execute("DELETE FROM texts WHERE log = ?", (log,))


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
            is_meant = wanted.is_when(datetime.fromisoformat(hit.time))
            if is_meant and all(part in said for part in wanted.parts):
                yield hit._replace(failed=bool(hit.failed))


def conversations_with(connection: sqlite3.Connection, wanted: Wanted) -> set[UUID]:
    """Return the conversations in which there is a text that is *wanted*, whenever it was."""
    found: set[UUID] = set()
    if wanted.parts:
        for hit in hits(connection, wanted, lambda id_: id_ not in found):
            found.add(hit.conversation)
        return found
    rows = connection.execute(
        """SELECT id FROM logs WHERE EXISTS (SELECT 1 FROM texts WHERE log = logs.number
        AND (:kind IS NULL OR kind = :kind) AND (:tool IS NULL OR tool = :tool)
        AND failed >= :failed)""",
        {"kind": wanted.kind, "tool": wanted.tool, "failed": wanted.failed},
    )
    return {UUID(id_) for (id_,) in rows}


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


def _tool_of(connection: sqlite3.Connection, log: int, call: str) -> str | None:
    row = connection.execute(
        "SELECT tool FROM texts WHERE log = ? AND call = ? AND kind = 'tool_use'", (log, call)
    ).fetchone()
    return row[0] if row else None
