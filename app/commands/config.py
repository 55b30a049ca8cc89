"""``leftfold config``: each setting, its value, and who said so."""

from __future__ import annotations

import json
import os
from typing import TYPE_CHECKING

import click

from app.configuration import choices, left_out
from app.i18n import _
from app.outputs import Setting, write
from app.places import home, store_folder
from app.view.plain import plain

if TYPE_CHECKING:
    from app.configuration import Choices


@click.command("config")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(store: str | None, *, as_json: bool) -> None:
    """Show each setting, and where its value comes from."""
    rows = _rows(choices({"store": store}))
    for line in left_out():
        click.echo(f"leftfold: {plain(line)}", err=True)
    if as_json:
        write({key: row for key, *_, row in rows})
        return
    for key, value, origin, _row in rows:
        click.echo(plain(f"{key:22}{value:32}  {origin}"))


def _rows(chosen: Choices) -> list[tuple[str, str, str, Setting]]:
    """Return a row for each setting: key, value and origin for people, and all as JSON."""
    values = chosen.values | {"store": str(store_folder(chosen.values["store"]))}
    rows = []
    for key, value in values.items():
        source = chosen.sources[key]
        kind = "default" if source is None else source.kind
        place = None if source is None else source.place(key)
        text = "-" if value is None else json.dumps(value, ensure_ascii=False)
        origin = _origin(kind, place)
        rows.append((key, text, origin, Setting(value=value, from_=kind, place=place)))
    said = os.environ.get("LEFTFOLD_HOME")
    kind, place = ("environment", "LEFTFOLD_HOME") if said else ("default", None)
    row = Setting(value=str(home()), from_=kind, place=place)
    text = json.dumps(str(home()), ensure_ascii=False)
    return [("home", text, _origin(kind, place), row), *rows]


def _origin(kind: str, place: str | None) -> str:
    """Return who said a setting, for people."""
    names = {
        "default": _("default"),
        "flag": _("flag"),
        "environment": _("environment"),
        "project": _("project"),
        "user": _("user"),
    }
    return names[kind] if place is None else f"{names[kind]}: {place}"
