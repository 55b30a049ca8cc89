"""``leftfold recover``: what can be saved of a damaged conversation, as a new one."""

from __future__ import annotations

import click

from app import bootstrap, references
from app.damage import place_row
from app.i18n import _
from app.outputs import Recovered, write
from app.settings import settings
from app.view.plain import plain


@click.command("recover")
@click.argument("reference", metavar="ID")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(store: str | None, *, reference: str, as_json: bool) -> None:
    """Save what can be saved of a damaged conversation into a new one, and print its id."""
    from app.recovery import recover  # noqa: PLC0415 - not for help

    chosen = settings(store=store)
    with bootstrap.conversations(chosen) as conversations:
        found = references.conversation_id(conversations, reference)
        done = recover(conversations, found, cwd=chosen.cwd)
    if as_json:
        write(done)
        return
    click.echo(str(done.id))
    for row in _rows(done):
        click.echo(plain(row), err=True)


def _rows(done: Recovered) -> list[str]:
    """Say what was saved and lost, for people: a summary, then a row for each damaged place."""
    lost = ", ".join(str(a) if a == b else f"{a}-{b}" for a, b in done.lost) or _("nothing")
    proofs = _("{kept} request proofs hold, {dropped} were dropped").format(
        kept=done.proofs_kept, dropped=done.proofs_dropped
    )
    rows = [
        _("from {source}: {saved} events saved, {in_part} in part (as notes)").format(
            source=done.source, saved=done.saved, in_part=done.in_part
        ),
        _("lost versions: {lost}; {proofs}; the old file is as it was").format(
            lost=lost, proofs=proofs
        ),
    ]
    return rows + [place_row(fate, f"{fate.reason}: {fate.fate}") for fate in done.fates]
