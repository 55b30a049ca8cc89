"""Questions in SQL to what was asked, answered, called and refused: reading, and nothing else.

People ask views with names that stay; the tables below them may change. A question is one SELECT:
SQLite itself refuses everything else, before it runs (an authorizer), and once more when it runs
(``query_only``).
"""

# ruff: noqa: S608 - our own names, put together
from __future__ import annotations

import sqlite3
import time
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from domain.calls import NOBODY
from infrastructure.errors import QuestionError
from infrastructure.read_models.activity import ACTIVITY, TABLES
from infrastructure.read_models.database import in_memory

if TYPE_CHECKING:
    from collections.abc import Callable

    Cell = int | float | str | bytes | None
    Price = Callable[[str | None, int, int, int, int], float | None]

VERSION: Final = 1
"""Of the views. It rises when one goes, loses a column, or means something else by it."""

_HERE: Final = """JOIN main.headings h USING (log) JOIN main.logs l ON l.number = log
    WHERE t.version > h.source_version"""
"""Of a fork, what came after it: what it has of another conversation stands there."""

VIEWS: Final = {
    "conversations": """
        SELECT id, h.version, created, updated, cwd, coalesce(nullif(name, ''), prompt, '') title,
            name, model, archived, source_id, nullif(source_version, 0) source_version
        FROM main.headings h JOIN main.logs l ON l.number = log""",
    "prompts": f"SELECT l.id, t.version, timestamp, text FROM main.said t {_HERE}",
    "turns": f"""
        SELECT l.id, t.version, timestamp, outcome, error_type, error FROM main.ended t {_HERE}""",
    "requests": f"""
        SELECT l.id, t.version, timestamp, kind, t.model, stop_reason, seconds, input_tokens,
            output_tokens, cache_read_input_tokens, cache_creation_input_tokens,
            price(t.model, input_tokens, output_tokens, cache_read_input_tokens,
                cache_creation_input_tokens) cost
        FROM main.asked t {_HERE}""",
    "tool_calls": f"""
        SELECT l.id, t.version, timestamp, tool_use_id, tool, t.model,
            command, path, input, decision,
            CASE WHEN reason = '{NOBODY.replace("'", "''")}' THEN 'nobody'
                WHEN decision IS NOT NULL THEN 'user' END decided_by,
            reason,
            CASE WHEN decision = 'no' THEN 'refused' WHEN failed IS NULL THEN 'open'
                WHEN failed THEN 'failed' ELSE 'done' END outcome,
            seconds, result
        FROM main.calls t {_HERE}""",
    "files": f"""
        SELECT l.id, t.version, timestamp, tool, path FROM main.calls t {_HERE}
            AND lower(tool) IN ('write', 'edit') AND path IS NOT NULL AND failed = 0""",
    "schema": f"SELECT {VERSION} version",
}
"""The views, in the order in which they are shown. Keys of the JSON mean in them what they mean."""

_READ_AS_TABLES: Final = {*VIEWS, "json_each", "json_tree"}
_NEVER: Final = {"load_extension", "fts3_tokenizer"}
_ALLOWED: Final = {sqlite3.SQLITE_SELECT, sqlite3.SQLITE_RECURSIVE}
_STEPS: Final = 10_000
"""Instructions of SQLite after which the clock is looked at: less than a millisecond."""

_MOST: Final = 256 << 20
"""Bytes that an answer, or a cell on the way to it, has at most: they stand in memory."""

_CELL: Final = 40
"""About how many bytes a cell takes besides its text."""

_FAULTS: Final = {
    sqlite3.SQLITE_ERROR, sqlite3.SQLITE_AUTH, sqlite3.SQLITE_INTERRUPT, sqlite3.SQLITE_MISMATCH,
    sqlite3.SQLITE_RANGE, sqlite3.SQLITE_READONLY, sqlite3.SQLITE_TOOBIG,
}  # fmt: skip
"""Errors for which a question is to blame; any other is one of the file."""


class Answer(NamedTuple):
    """The names of the columns, which may stand there twice, and the rows."""

    columns: list[str]
    rows: list[tuple[Cell, ...]]


def columns_of(view: str) -> list[str]:
    """Return the names of the columns of a view."""
    with in_memory(ACTIVITY) as connection:
        _make_views(connection, lambda *_: None)
        return [name for name, *_ in connection.execute(f"SELECT * FROM {view}").description]


def answer(
    connection: sqlite3.Connection, question: str, *, seconds: float, price: Price
) -> Answer:
    """Return what SQLite answers to *question*, a SELECT, within so many *seconds*.

    *price* says what tokens of a model cost. Nothing else can be done with *connection* afterwards.

    Raises:
        QuestionError: SQLite cannot answer it, or it takes too long, or is no question.
        KeyboardInterrupt: somebody pressed Ctrl+C.
        sqlite3.Error: the file is damaged, or the like.
    """
    until = time.monotonic() + seconds
    stopped: list[BaseException] = []

    def priced(*tokens: Any) -> float | None:
        try:
            return price(*tokens)
        except KeyboardInterrupt as stop:
            stopped.append(stop)
            raise

    for table in TABLES:
        connection.execute(f"SELECT * FROM main.{table} LIMIT 0")  # else it is damaged
    _make_views(connection, priced)
    _let_read_only(connection)
    connection.set_progress_handler(lambda: time.monotonic() > until, _STEPS)
    try:
        cursor = connection.execute(question)
        if cursor.description is None:
            raise QuestionError("nothing")
        return Answer([name for name, *_ in cursor.description], _fetched(cursor))
    except sqlite3.Warning as error:  # so Python 3.11 says it
        raise QuestionError("several") from error
    except sqlite3.Error as error:
        raise _said(error, is_late=time.monotonic() > until, is_stopped=bool(stopped)) from error


def _said(error: sqlite3.Error, *, is_late: bool, is_stopped: bool) -> BaseException:
    """Return what an *error* of SQLite means."""
    code = getattr(error, "sqlite_errorcode", None)
    if is_stopped or (code == sqlite3.SQLITE_INTERRUPT and not is_late):
        return KeyboardInterrupt()  # it came between the steps, where no exception goes through
    if code == sqlite3.SQLITE_INTERRUPT:
        return QuestionError("late")
    if code is not None and code & 0xFF not in _FAULTS:
        return error
    if code == sqlite3.SQLITE_AUTH or "not authorized" in str(error):
        return QuestionError("refused", str(error))
    if "one statement at a time" in str(error):
        return QuestionError("several")
    return QuestionError("wrong", str(error))


def _make_views(connection: sqlite3.Connection, price: Callable[..., float | None]) -> None:
    """Make the views, which are this connection's: the file has none of them."""
    connection.create_function("price", 5, price, deterministic=True)
    for name, select in VIEWS.items():
        connection.execute(f"CREATE TEMP VIEW {name} AS {select}")


def _let_read_only(connection: sqlite3.Connection) -> None:
    connection.execute("PRAGMA query_only = ON")
    connection.setlimit(sqlite3.SQLITE_LIMIT_LENGTH, _MOST)
    connection.text_factory = lambda data: data.decode(errors="replace")
    connection.set_authorizer(_allowed)


def _allowed(
    action: int, name: str | None, detail: str | None, _database: str | None, view: str | None
) -> int:
    """Say whether a step of a statement is one of reading views."""
    match action:
        case sqlite3.SQLITE_READ:
            is_counted = detail == "" and name in (*TABLES, "logs")  # below a view
            is_allowed = name in _READ_AS_TABLES or view in VIEWS or is_counted
        case sqlite3.SQLITE_FUNCTION:
            is_allowed = detail not in _NEVER
        case _:
            is_allowed = action in _ALLOWED
    return sqlite3.SQLITE_OK if is_allowed else sqlite3.SQLITE_DENY


def _fetched(cursor: sqlite3.Cursor) -> list[tuple[Cell, ...]]:
    """Return all rows: what is printed has no lock, and is whole or not there at all."""
    rows, size = [], 0
    for row in cursor:
        size += sum(_CELL + (len(cell) if isinstance(cell, str | bytes) else 0) for cell in row)
        if size > _MOST:
            raise QuestionError("large")
        rows.append(row)
    return rows
