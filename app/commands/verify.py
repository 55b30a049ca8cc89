"""``leftfold verify``: every log, line, checksum, parent and request digest, and their order."""

from __future__ import annotations

from typing import TYPE_CHECKING

import click
from eventsourcing.persistence import PersistenceError

from app import bootstrap, references
from app.damage import place_row
from app.i18n import _
from app.outputs import Finding, Verified, VerifiedOrder, write
from app.settings import settings
from app.verification import check_order, verify

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations


@click.command("verify")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a conversation.")
@click.pass_obj
def command(store: str | None, *, ids: tuple[str, ...], as_json: bool) -> None:
    """Check conversations (all, for none) line by line; exit 1 if anything is wrong."""
    checked = wrong = 0
    order = None
    with bootstrap.conversations(settings(store=store)) as conversations:
        wanted = [references.conversation_id(conversations, each) for each in ids]
        for each in wanted or conversations.ids():
            report = _report(conversations, each)
            checked, wrong = checked + 1, wrong + (not report.ok)
            write(report) if as_json else click.echo(_text(report))
        if not ids and conversations.store is not None:
            order = check_order(conversations.store)
    if order is not None and (as_json or order.findings):
        write(order) if as_json else click.echo(_order_text(order))
    if not as_json:
        verdict = _("{wrong} with findings").format(wrong=wrong) if wrong else _("all clean")
        click.echo(_("{checked} checked, {verdict}").format(checked=checked, verdict=verdict))
    raise SystemExit(1 if wrong or (order is not None and order.findings) else 0)


def _report(conversations: Conversations, conversation_id: UUID) -> Verified:
    try:
        return verify(conversations, conversation_id)
    except PersistenceError as error:
        finding = Finding(None, None, None, str(error), "error")
        return Verified(
            id=conversation_id,
            ok=False,
            events=0,
            bytes=None,
            requests_proven=0,
            findings=(finding,),
        )


def _text(report: Verified) -> str:
    size = "" if report.bytes is None else _(", {bytes:,} bytes").format(bytes=report.bytes)
    wrong = sum(not finding.is_harmless for finding in report.findings)
    verdict = _("{wrong} findings").format(wrong=wrong) if wrong else "ok"
    checked = _("{events} events{size}, {requests_proven} requests proven").format(
        events=report.events, size=size, requests_proven=report.requests_proven
    )
    said = _("{checked}: {verdict}").format(checked=checked, verdict=verdict)
    return "\n".join([f"{report.id}  {said}", *map(_row, report.findings)])


def _order_text(order: VerifiedOrder) -> str:
    head = _("the order of all events, {records} records: {findings} findings").format(
        records=order.records, findings=len(order.findings)
    )
    return "\n".join([head, *map(_row, order.findings)])


def _row(finding: Finding) -> str:
    return place_row(finding, f"{finding.kind:11} {finding.what}")
