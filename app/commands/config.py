"""``leftfold config``: each setting, its value, and who said so."""

from __future__ import annotations

import json
import os
from typing import Literal

import click
from msgspec import to_builtins
from msgspec.structs import asdict

from app.configuration import Choices, choices, left_out
from app.i18n import _
from app.outputs import Setting, write
from app.places import home, store_folder
from app.view.plain import complain, plain


@click.command("config")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(store: str | None, *, as_json: bool) -> None:
    """Show each setting, and where its value comes from."""
    found = _settings(choices({"store": store}))
    for line in left_out():
        complain(line)
    if as_json:
        write(found)
        return
    for key, setting in found.items():
        value = "-" if setting.value is None else json.dumps(setting.value, ensure_ascii=False)
        click.echo(plain(f"{key:22}{value:32}  {_origin(setting.from_, setting.place)}"))


def _settings(chosen: Choices) -> dict[str, Setting]:
    """Return each setting with who said it, and the home, which no file can name."""
    default: tuple[Literal["default"], None] = ("default", None)
    said = os.environ.get("LEFTFOLD_HOME")
    found = {"home": Setting(str(home()), *(("environment", "LEFTFOLD_HOME") if said else default))}
    values = to_builtins(asdict(chosen.keys)) | {"store": str(store_folder(chosen.keys.store))}
    for key, value in values.items():
        source = chosen.sources[key]
        found[key] = Setting(value, *((source.kind, source.place(key)) if source else default))
    return found


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
