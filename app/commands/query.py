"""``leftfold query``: ask in SQL what was said, called, refused and spent in any conversation."""

from __future__ import annotations

import csv
import sys
from io import StringIO
from textwrap import fill
from typing import TYPE_CHECKING

import click

from app import bootstrap
from app.errors import UsageError
from app.i18n import _
from app.outputs import Table, write
from app.query import ask
from app.settings import settings
from app.standard_input import whole
from app.view.console import room
from app.view.plain import plain
from app.view.table import shown, table
from domain.text import valid
from infrastructure.read_models.questions import VERSION, VIEWS, columns_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from app.view.table import Cell
    from infrastructure.read_models.questions import Answer

_IN = "    "
_AT_ONCE = 1000
_FORMULA = ("=", "+", "-", "@", "\t", "\r", "\n", "＝", "＋", "－", "＠")
"""What a text begins with that a spreadsheet would run, instead of showing it."""


@click.command("query")
@click.argument("question", metavar="[SQL]", required=False)
@click.option(
    "--tables", is_flag=True, help="Show what can be asked: the tables and their columns."
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.option("--csv", "as_csv", is_flag=True, help="For a spreadsheet.")
@click.option(
    "--timeout", type=click.FloatRange(min=0, min_open=True), default=60, show_default=True,
    metavar="SECONDS", help="How long it may take.",
)  # fmt: skip
@click.pass_obj
def command(
    store: str | None,
    *,
    question: str | None,
    tables: bool,
    as_json: bool,
    as_csv: bool,
    timeout: float,
) -> None:
    """Ask in SQL what was said, called, refused and spent in any conversation."""
    if as_json and as_csv:
        raise UsageError(_("--json and --csv exclude one another"))
    if tables:
        _show_tables(as_json=as_json)
        return
    if question is None:
        raise UsageError(_("a question is needed: a SELECT, or --tables to see what there is"))
    if question == "-":
        question = whole()
    with bootstrap.conversations(settings(store=store)) as conversations:
        found = ask(conversations, valid(question), seconds=timeout)
    if as_json:
        names = _told_apart(found.columns)
        for row in found.rows:
            write(dict(zip(names, map(_value, row), strict=True)))
    elif as_csv:
        _print(_records(found))
    elif found.rows:
        _print(table(found.columns, found.rows, room()))
    else:
        click.echo(_("nothing is found"), err=True)


def _show_tables(*, as_json: bool) -> None:
    texts = {
        "conversations": _("a row for each conversation"),
        "prompts": _("what people said"),
        "turns": _("how each turn ended"),
        "requests": _("what the model was asked for: tokens, seconds, cost"),
        "tool_calls": _("what was called, by whom it was let run or refused, what came of it"),
        "files": _("what was written and edited"),
        "schema": _("the version of these tables: {version}").format(version=VERSION),
    }
    for name in VIEWS:
        names = columns_of(name)
        if as_json:
            write(Table(table=name, columns=tuple(names), text=texts[name]))
        else:
            width = room() or sys.maxsize
            click.echo(f"{name}: {texts[name]}")
            click.echo(fill(", ".join(names), width, initial_indent=_IN, subsequent_indent=_IN))


def _told_apart(names: Sequence[str]) -> list[str]:
    """Return *names* with a number behind each that was there before: an object has it once."""
    found: dict[str, None] = {}
    for name in names:
        number, unique = 2, name
        while unique in found or (number > 2 and unique in names):  # noqa: PLR2004
            unique, number = f"{name}_{number}", number + 1
        found[unique] = None
    return list(found)


def _value(cell: Cell) -> Cell:
    """Return *cell* as JSON has it: bytes as SQL writes them."""
    return shown(cell) if isinstance(cell, bytes) else cell


def _records(found: Answer) -> Iterable[str]:
    """Yield the records of a CSV file (RFC 4180), the names first, without their line ends."""
    for row in (found.columns, *found.rows):
        text = StringIO(newline="")
        csv.writer(text).writerow([_csv_cell(cell) for cell in row])
        yield text.getvalue()[:-1]  # the last character of CR LF is what `_print` adds


def _csv_cell(cell: Cell) -> str:
    """Return *cell* as a spreadsheet shows it: no formula is run, no terminal obeys. NULL is ""."""
    if cell is None:
        return ""
    is_formula = isinstance(cell, str) and cell.startswith(_FORMULA)
    return "'" * is_formula + plain(shown(cell))


def _print(lines: Iterable[str]) -> None:
    """Print *lines*, many at once.

    Raises:
        BrokenPipeError: nobody reads any more.
    """
    waiting: list[str] = []
    for line in lines:
        waiting.append(line)
        if len(waiting) == _AT_ONCE:
            click.echo("\n".join(waiting))
            waiting.clear()
    if waiting:
        click.echo("\n".join(waiting))
