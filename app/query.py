"""Questions in SQL to the whole store: by the read model, or where there is none by reading."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from app.catalogue import refused, say_unreadable
from app.errors import UsageError
from app.i18n import _
from app.progress import Progress
from app.read_models import indexed
from domain.projections.usage import TOKEN_KINDS
from infrastructure.errors import QuestionError, StoreError
from infrastructure.read_models.activity import ACTIVITY, ActivityTables
from infrastructure.read_models.database import in_memory
from infrastructure.read_models.questions import Answer, answer

if TYPE_CHECKING:
    import sqlite3

    from app.application import Conversations


def ask(conversations: Conversations, question: str, *, seconds: float) -> Answer:
    """Return what the tables, in which is what the logs say now, answer within *seconds*.

    Raises:
        UsageError: it is not answered.
    """

    def work(connection: sqlite3.Connection) -> Answer:
        return answer(connection, question, seconds=seconds, price=_price)

    try:
        found = indexed(conversations, ActivityTables, work)
        if found is not None:
            return found
        with in_memory(ACTIVITY) as connection:
            _read_all(conversations, connection)
            return work(connection)
    except QuestionError as error:
        raise UsageError(_why(error, seconds)) from error


def _read_all(conversations: Conversations, connection: sqlite3.Connection) -> None:
    ids = list(conversations.ids())
    with Progress(_("reading the conversations")) as progress:
        for number, conversation_id in enumerate(ids):
            progress.tell(number, len(ids))
            row = (number, str(conversation_id))
            connection.execute("INSERT INTO logs VALUES (?, ?, 0, NULL, 0, 0, 0)", row)
            try:
                for page in conversations.pages_of(conversation_id):
                    ActivityTables.add(connection, number, page)
            except StoreError as error:
                say_unreadable([refused(conversation_id, error)])


def _why(error: QuestionError, seconds: float) -> str:
    """Return what a person is told of a question that is not answered."""
    tables = _("`leftfold query --tables` shows what there is")
    match error.why:
        case "nothing":
            return _("there is no question in it; {tables}").format(tables=tables)
        case "several":
            return _("one statement at a time can be asked")
        case "late":
            late = _("not done within {seconds:g} seconds; --timeout gives it more")
            return late.format(seconds=seconds)
        case "large":
            return _("what is found is larger than 256 MiB: ask for fewer rows or columns")
        case "refused":
            only = _("only reading is allowed: {what}; {tables}")
            return only.format(what=error, tables=tables)
        case _:
            what = _("SQLite cannot do that: {what}").format(what=error)
            return f"{what}; {tables}" if "no such" in str(error) else what


def _price(model: str | None, *counts: int | None) -> float | None:
    """Return what tokens cost, in US dollars; None if they, or the prices, are not known."""
    from infrastructure.model.prices import cost  # noqa: PLC0415 - half a second

    tokens = dict(zip(TOKEN_KINDS, counts, strict=True))
    if any(count is not None for count in counts):
        with suppress(ValueError, ArithmeticError):  # of a log that was made by hand
            dollars = cost(model, tokens)
            return None if dollars is None else float(dollars)
    return None
