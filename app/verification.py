"""Verification: everything that is wrong with a log, named by line. Reading only.

Bytes first (header, lines, checksums, batches, versions), then meaning (events, parents), then
proof: every request digest that was recorded with an answer is computed again from the log alone.
The order over all logs (`check_order`) is derived: it is compared with the logs, never built here.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple, TypeAlias
from uuid import UUID

from app.outputs import Finding, Verified, VerifiedOrder
from domain.events import TOPICS, Entry, Unrecognised
from domain.projections.context import PROJECTION
from infrastructure.errors import LogMissingError, StoreError
from infrastructure.jsonl import trash
from infrastructure.jsonl.notification_file import SIZE, BrokenOrderError, inspected
from infrastructure.safe_files import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from app.application import Conversations
    from app.outputs import FindingKind
    from domain.events import Event, Version
    from domain.projections.proofs import Proof
    from infrastructure.jsonl.line import Line
    from infrastructure.jsonl.reader import Scan
    from infrastructure.jsonl.store import Store

_Wrong: TypeAlias = "tuple[Version, FindingKind, str]"


# -- one conversation ----------------------------------------------------------------------------


def verify(conversations: Conversations, conversation_id: UUID) -> Verified:
    """Check one conversation.

    Raises:
        LogMissingError: there is no such log.
        NewerFormatError: a newer version wrote it.
    """
    checked = _checked(conversations, conversation_id)
    from domain.projections.proofs import proofs  # noqa: PLC0415 - naming damage proves nothing

    found = list(proofs(checked.events))
    wrong = (_wrong_proof(proof) for proof in found if not proof.holds)
    findings = [*checked.findings, *checked.named(wrong)]
    return Verified(
        id=conversation_id,
        ok=all(finding.is_harmless for finding in findings),
        events=len(checked.events),
        bytes=checked.size,
        requests_proven=sum(proof.holds for proof in found),
        findings=tuple(_sorted(findings)),
    )


def findings_of(conversations: Conversations, conversation_id: UUID) -> list[Finding]:
    """Return what is wrong with the bytes and the events of one conversation, without the proofs.

    Raises:
        LogMissingError: there is no such log.
        NewerFormatError: a newer version wrote it.
    """
    return _sorted(_checked(conversations, conversation_id).findings)


class _Checked(NamedTuple):
    """What was read of a conversation, and what is wrong with it so far."""

    size: int | None
    lines: dict[Version, Line]
    events: list[Event]
    findings: list[Finding]

    def named(self, wrongs: Iterable[_Wrong]) -> Iterator[Finding]:
        """Yield *wrongs* with the places where they stand."""
        for version, kind, what in wrongs:
            line = self.lines.get(version)
            number, offset = (line.number, line.offset) if line else (None, None)
            yield Finding(number, offset, version, what, kind)


def _checked(conversations: Conversations, conversation_id: UUID) -> _Checked:
    """Read a conversation and check its bytes and events."""
    if conversations.store is None:
        checked = _Checked(None, {}, list(conversations.events_of(conversation_id)), [])
    else:
        found = conversations.store.inspect(conversation_id)
        lines = {line.version: line for line in found.lines}
        events = list(conversations.events.of_lines(conversation_id, found.lines))
        checked = _Checked(found.size, lines, events, list(_of_bytes(conversation_id, found)))
    checked.findings.extend(checked.named(_of_meaning(checked.events)))
    if not checked.events:
        checked.findings.append(Finding(None, None, None, "there is no event in it", "event"))
    return checked


def _sorted(findings: Iterable[Finding]) -> list[Finding]:
    return sorted(findings, key=lambda finding: (finding.line or 0, finding.version or 0))


def _of_bytes(conversation_id: UUID, found: Scan) -> Iterator[Finding]:
    for damage in found.damages:
        kind: FindingKind = "damage" if damage.kind == "zeros" else damage.kind
        yield Finding(damage.number or None, damage.offset, None, damage.reason, kind)
    if found.header is not None and found.header.id != str(conversation_id):
        what = f"the header says id {found.header.id!r}: this file was renamed or copied"
        yield Finding(1, 0, None, what, "header")
    for line in found.lines:
        if line.crc_ok is False:
            what = "the checksum disagrees: this line was changed after it was written"
            yield Finding(line.number, line.offset, line.version, what, "checksum")
    for first, last in found.missing:
        versions = f"version {first} is" if first == last else f"versions {first}-{last} are"
        yield Finding(None, None, first, f"{versions} missing", "version")


def _of_meaning(events: Iterable[Event]) -> Iterator[_Wrong]:
    entries: set[Version] = set()
    for event in events:
        version = event.originator_version
        if isinstance(event, Unrecognised):
            is_known = event.topic in TOPICS and not event.is_newer
            kind: FindingKind = "event" if is_known else "unknown"
            yield version, kind, f"cannot be read: {event.reason}"
        if isinstance(event, Entry):
            if event.parent is not None and event.parent not in entries:
                yield version, "parent", f"its parent {event.parent} is not there"
            entries.add(version)


def _wrong_proof(proof: Proof) -> _Wrong:
    """Say what is wrong with a request that is not proven."""
    version = proof.answer.originator_version
    if proof.computed is None:
        return version, "request", "the version that its request was made from is missing"
    if proof.projection not in (None, PROJECTION):
        what = f"its request was projected by {proof.projection!r} and would now differ"
        return version, "projection", f"{what} (this program has {PROJECTION})"
    return version, "request", "the request that it answers cannot be rebuilt: the digest differs"


# -- the order over all conversations --------------------------------------------------------------


def check_order(store: Store) -> VerifiedOrder:
    """Compare the store's notification log with the logs. That it is behind them is no fault.

    It is derived: a fault in it costs nothing but its ids, and the next reader builds it again. It
    may be the only witness of a log that is lost, though.
    """
    try:
        records, is_torn = inspected(store.notifications.file.path)
    except FileNotFoundError:
        return _order(0)
    except BrokenOrderError:
        return _order(0, _wrong_order("not an order of events: it will be built anew"))
    except OSError as error:
        return _order(0, _wrong_order(f"cannot be read: {reason_of(error)}"))
    findings = []
    by_log: dict[bytes, list[tuple[int, Version]]] = {}
    if is_torn:
        findings.append(_wrong_order("its last record is torn", offset=(len(records) + 1) * SIZE))
    for number, record in enumerate(records, 1):
        if record is None:
            what = f"record {number} disagrees with its checksum"
            findings.append(_wrong_order(what, offset=number * SIZE))
        else:
            by_log.setdefault(record.conversation, []).append((record.offset, record.version))
    for conversation, places in by_log.items():
        findings += _of_order(store, UUID(bytes=conversation), places)
    return _order(len(records), *findings)


def _of_order(store: Store, conversation: UUID, places: list[tuple[int, Version]]) -> list[Finding]:
    """Compare the records of one conversation with its log."""
    try:
        lines = store.inspect(conversation).lines
    except LogMissingError as error:
        if trash.is_deleted(store, conversation):
            return []
        return [_wrong_order(f"{len(places)} events of a log that is gone: {error}")]
    except StoreError as error:
        return [_wrong_order(f"{len(places)} events of a log that cannot be read: {error}")]
    believed = {(line.offset, line.version) for line in lines}
    known = {version for _, version in places}
    newest = max(known)
    findings = []
    if lost := sum(place not in believed for place in places):
        findings.append(f"{lost} records point at no event")
    if len(known) < len(places):
        findings.append(f"{len(places) - len(known)} events stand in it twice")
    if places != sorted(places):
        findings.append("its events are not in their order")
    if missed := sum(line.version < newest and line.version not in known for line in lines):
        findings.append(f"{missed} events were passed over")
    return [_wrong_order(f"{conversation}: {what}") for what in findings]


def _wrong_order(what: str, *, offset: int | None = None) -> Finding:
    return Finding(None, offset, None, what, "order")


def _order(records: int, *findings: Finding) -> VerifiedOrder:
    order = ".index/notifications"
    return VerifiedOrder(order=order, ok=not findings, records=records, findings=findings)
