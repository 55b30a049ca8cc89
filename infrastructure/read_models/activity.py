"""What was asked, answered, called and refused in all conversations, as tables of SQLite.

These are base tables, which may change with each version of this program. What people ask are the
views over them, in `infrastructure.read_models.questions`.
"""

# ruff: noqa: S608 - our own names, put together
from __future__ import annotations

from datetime import UTC
from typing import TYPE_CHECKING, Final

from domain.projections.activity import (
    Decision,
    Heading,
    Prompt,
    Request,
    Result,
    Start,
    ToolCall,
    Turn,
    absolute,
    activity,
)
from domain.projections.catalogue import TITLE_LENGTH
from infrastructure.read_models.database import Model
from infrastructure.read_models.follower import LOGS, Follower

if TYPE_CHECKING:
    import sqlite3
    from collections.abc import Sequence
    from datetime import datetime

    from domain.events import Event
    from domain.projections.activity import Activity

_AT: Final = "log INTEGER NOT NULL, version INTEGER NOT NULL, timestamp TEXT NOT NULL"
ACTIVITY: Final = Model(
    "activity",
    1,
    (
        LOGS,
        """CREATE TABLE headings (
            log INTEGER PRIMARY KEY, version INTEGER NOT NULL, created TEXT NOT NULL,
            updated TEXT NOT NULL, cwd TEXT, name TEXT, prompt TEXT, model TEXT,
            archived INTEGER NOT NULL DEFAULT 0, source_id TEXT,
            source_version INTEGER NOT NULL DEFAULT 0)""",
        f"CREATE TABLE said ({_AT}, text TEXT NOT NULL)",
        f"""CREATE TABLE asked (
            {_AT}, kind TEXT NOT NULL, model TEXT, stop_reason TEXT, seconds REAL,
            input_tokens INTEGER, output_tokens INTEGER, cache_read_input_tokens INTEGER,
            cache_creation_input_tokens INTEGER)""",
        f"""CREATE TABLE calls (
            number INTEGER PRIMARY KEY, {_AT}, tool_use_id TEXT NOT NULL, tool TEXT NOT NULL,
            model TEXT, decision TEXT, reason TEXT, started REAL, seconds REAL, failed INTEGER,
            command TEXT, path TEXT, input TEXT NOT NULL, result TEXT)""",
        f"CREATE TABLE ended ({_AT}, outcome TEXT NOT NULL, error_type TEXT, error TEXT)",
        "CREATE INDEX said_in ON said (log)",
        "CREATE INDEX asked_in ON asked (log)",
        "CREATE INDEX called_in ON calls (log, tool_use_id)",
        "CREATE INDEX ended_in ON ended (log)",
    ),
)
TABLES: Final = ("headings", "said", "asked", "calls", "ended")
_NEWEST: Final = """number = (
    SELECT max(number) FROM calls WHERE log = :log AND tool_use_id = :tool_use_id)"""


class ActivityTables(Follower):
    """The activity in the conversations of a store."""

    MODEL = ACTIVITY

    @staticmethod
    def add(connection: sqlite3.Connection, log: int, events: Sequence[Event]) -> None:
        """Add what *events* say."""
        if not events:
            return
        last = events[-1]
        connection.execute(
            "INSERT INTO headings (log, version, created, updated) VALUES (?, ?, ?, ?) "
            "ON CONFLICT DO UPDATE SET version = excluded.version, updated = excluded.updated",
            (log, last.originator_version, _utc(events[0].timestamp), _utc(last.timestamp)),
        )
        for event in events:
            at = (log, event.originator_version, _utc(event.timestamp))
            for one in activity(event):
                _add(connection, at, event.timestamp.timestamp(), one)

    @staticmethod
    def forget(connection: sqlite3.Connection, log: int) -> None:
        """Take what is of a log out."""
        for table in TABLES:
            connection.execute(f"DELETE FROM {table} WHERE log = ?", (log,))


def _add(
    connection: sqlite3.Connection, at: tuple[int, int, str], time: float, one: Activity
) -> None:
    """Put what an event *at* a log, a version and a *time* says into its table."""
    log = at[0]
    match one:
        case Heading(column, value):
            sql = f"UPDATE headings SET {column} = ? WHERE log = ?"
            connection.execute(sql, (value, log))
        case Prompt(text):
            connection.execute("INSERT INTO said VALUES (?, ?, ?, ?)", (*at, text))
            title = " ".join(text.split())[:TITLE_LENGTH]
            sql = "UPDATE headings SET prompt = coalesce(prompt, ?) WHERE log = ?"
            connection.execute(sql, (title, log))
        case Request():
            connection.execute(f"INSERT INTO asked VALUES ({', '.join('?' * 11)})", (*at, *one))
        case ToolCall():
            called = one._replace(path=_file(connection, log, one.path))
            connection.execute(
                "INSERT INTO calls (log, version, timestamp, tool_use_id, tool, model, input, "
                "command, path) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
                (*at, *called),
            )
        case Decision():
            sql = f"UPDATE calls SET decision = :decision, reason = :reason WHERE {_NEWEST}"
            connection.execute(sql, {"log": log, **one._asdict()})
        case Start():
            sql = f"UPDATE calls SET started = :time WHERE {_NEWEST}"
            connection.execute(sql, {"log": log, "time": time, **one._asdict()})
        case Result():
            sql = (
                "UPDATE calls SET failed = :failed, result = :text, "
                f"seconds = round(:time - started, 6) WHERE {_NEWEST} AND failed IS NULL"
            )
            connection.execute(sql, {"log": log, "time": time, **one._asdict()})
        case Turn():
            connection.execute("INSERT INTO ended VALUES (?, ?, ?, ?, ?, ?)", (*at, *one))


def _file(connection: sqlite3.Connection, log: int, path: str | None) -> str | None:
    if path is None:
        return None
    (cwd,) = connection.execute("SELECT cwd FROM headings WHERE log = ?", (log,)).fetchone()
    return absolute(path, cwd)


def _utc(time: datetime) -> str:
    return time.astimezone(UTC).isoformat(timespec="microseconds").replace("+00:00", "Z")
