"""``leftfold verify``: every log, line, checksum, parent and request digest."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import click
from eventsourcing.persistence import PersistenceError

from app import bootstrap, references
from app.repl.plain import plain
from app.settings import settings
from app.verification import Finding, Report, verify

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations


@click.command("verify")
@click.argument("ids", metavar="[ID]...", nargs=-1)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a conversation.")
@click.pass_obj
def command(store: str | None, *, ids: tuple[str, ...], as_json: bool) -> None:
    """Check conversations (all, for none) line by line; exit 1 if anything is wrong."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        wanted = [references.conversation_id(conversations, each) for each in ids]
        reports = [_report(conversations, each) for each in wanted or conversations.ids()]
    for report in reports:
        click.echo(json.dumps(_object(report)) if as_json else _text(report))
    damaged = sum(not report.is_clean for report in reports)
    if not as_json:
        verdict = f"{damaged} with findings" if damaged else "all clean"
        click.echo(f"{len(reports)} conversations, {verdict}")
    raise SystemExit(1 if damaged else 0)


def _report(conversations: Conversations, conversation_id: UUID) -> Report:
    try:
        return verify(conversations, conversation_id)
    except PersistenceError as error:
        finding = Finding(None, None, None, str(error))
        return Report(conversation_id, 0, None, 0, (finding,))


def _text(report: Report) -> str:
    size = "" if report.bytes is None else f", {report.bytes:,} bytes"
    verdict = "ok" if report.is_clean else f"{len(report.findings)} findings"
    checked = f"{report.events} events{size}, {report.requests_proven} requests proven"
    rows = [f"{report.id}  {checked}: {verdict}"]
    for finding in report.findings:
        line = "" if finding.line is None else f"line {finding.line}"
        offset = "" if finding.offset is None else f"byte {finding.offset}"
        version = "" if finding.version is None else f"version {finding.version}"
        rows.append(f"  {line:10} {offset:14} {version:14} {plain(finding.what)}".rstrip())
    return "\n".join(rows)


def _object(report: Report) -> dict[str, object]:
    return {
        "id": str(report.id),
        "ok": report.is_clean,
        "events": report.events,
        "bytes": report.bytes,
        "requests_proven": report.requests_proven,
        "findings": [finding._asdict() for finding in report.findings],
    }
