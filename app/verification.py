"""Verification: everything that is wrong with a log, named by line. Reading only.

Bytes first (header, lines, checksums, versions), then meaning (events, parents), then proof: every
request digest that was recorded with an answer is computed again from the log alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.canonical import digest
from domain.conversation import Conversation
from domain.events import Entry, MessageAppended, Unrecognised
from domain.projections.context import context

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence
    from uuid import UUID

    from app.application import Conversations
    from domain.events import Event, Version
    from infrastructure.jsonl.store import Store


class Finding(NamedTuple):
    """One thing that is wrong: where (line, byte offset, version; None where unknown), and what."""

    line: int | None
    offset: int | None
    version: Version | None
    what: str


class Report(NamedTuple):
    """What was checked in one conversation, and what was found wrong."""

    id: UUID
    events: int
    bytes: int | None
    requests_proven: int
    findings: tuple[Finding, ...]

    @property
    def is_clean(self) -> bool:
        """Whether nothing is wrong."""
        return not self.findings


def verify(conversations: Conversations, conversation_id: UUID) -> Report:
    """Check one conversation.

    Raises:
        LogMissingError: there is no such log.
        NewerFormatError: a newer version wrote it.
    """
    size, findings = None, list[Finding]()
    lines: dict[Version, tuple[int | None, int | None]] = {}
    if conversations.store is not None:
        size, lines, findings = _check_bytes(conversations.store, conversation_id)
    events = list(conversations.events_of(conversation_id))
    proven, meaning = _check_meaning(events)
    for version, what in meaning:
        line, offset = lines.get(version, (None, None))
        findings.append(Finding(line, offset, version, what))
    findings.sort(key=lambda finding: (finding.line or 0, finding.version or 0))
    return Report(conversation_id, len(events), size, proven, tuple(findings))


def _check_bytes(
    store: Store, conversation_id: UUID
) -> tuple[int, dict[Version, tuple[int | None, int | None]], list[Finding]]:
    found = store.inspect(conversation_id)
    findings = [
        Finding(damage.number or None, damage.offset, None, damage.reason)
        for damage in found.damages
    ]
    if found.header is not None and found.header.id != str(conversation_id):
        what = f"the header says id {found.header.id}: this file was renamed or copied"
        findings.append(Finding(1, 0, None, what))
    for line in found.lines:
        if line.crc_ok is False:
            what = "the checksum disagrees: this line was changed after it was written"
            findings.append(Finding(line.number, line.offset, line.version, what))
    for first, last in found.missing:
        versions = f"version {first} is" if first == last else f"versions {first}-{last} are"
        findings.append(Finding(None, None, first, f"{versions} missing"))
    places: dict[Version, tuple[int | None, int | None]] = {
        line.version: (line.number, line.offset) for line in found.lines
    }
    return found.size, places, findings


def _check_meaning(events: Sequence[Event]) -> tuple[int, list[tuple[Version, str]]]:
    """Return how many requests were proven, and what is wrong with which version."""
    wrong: list[tuple[Version, str]] = []
    proven = 0
    entries: set[Version] = set()
    for event in events:
        version = event.originator_version
        if isinstance(event, Unrecognised):
            wrong.append((version, f"cannot be read: {event.reason}"))
        if isinstance(event, Entry):
            if event.parent is not None and event.parent not in entries:
                wrong.append((version, f"its parent {event.parent} is not there"))
            entries.add(version)
    for answer, computed in _recomputed(events):
        if computed == answer.request_digest:
            proven += 1
        else:
            what = "the request that it answers cannot be rebuilt: the digest differs"
            wrong.append((answer.originator_version, what))
    return proven, wrong


def _recomputed(events: Sequence[Event]) -> Iterator[tuple[MessageAppended, str]]:
    """Yield every answer that recorded a digest, with the digest computed by replay."""
    answers: dict[Version, list[MessageAppended]] = {}
    for event in events:
        if isinstance(event, MessageAppended) and event.request_digest is not None:
            answers.setdefault(event.request_version or 0, []).append(event)
    conversation: Conversation | None = None
    for event in events:
        conversation = Conversation.replay(conversation, [event])
        for answer in answers.pop(event.originator_version, ()):
            assert conversation is not None
            yield answer, digest(context(conversation, conversation.leaf))
    for orphans in answers.values():
        for answer in orphans:
            yield answer, "the version from which it was projected is missing"
