"""What is wrong with a log, in the words that every command says it in.

What `leftfold verify` reports is said by each command that opens the log: the first finding, how
many there are, and what to do next. Proofs of requests are left to `verify`: they say nothing of
what can be read.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from msgspec import UNSET, UnsetType

from app.errors import LockedConversationError
from app.i18n import _
from app.outputs import HARMLESS, Damage, Fate, Finding
from app.verification import findings_of
from app.view.plain import complain, one_line, plain
from infrastructure.errors import LogMissingError, StoreError
from infrastructure.jsonl import disk
from infrastructure.mapper import LOCKED

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence
    from uuid import UUID

    from app.application import Conversations
    from app.catalogue import Listing
    from app.outputs import Finding

QUICK = 4 * 1024 * 1024
"""Bytes of a log that are looked at while somebody waits for a prompt: it takes some 20 ms."""

QUICK_TOGETHER = 8 * 1024 * 1024
"""Bytes of many logs that are looked at together: a list takes a few percent longer for it."""

_LEAST = 128 * 1024
"""What a log counts at least: to open one takes as long as to look at so much of another."""

NO_DAMAGE = (*HARMLESS, "unknown")
"""Kinds of findings that are not called damage: nothing is lost of what a newer version wrote."""

_LONGEST = 200


def damage(
    conversations: Conversations, conversation_id: UUID, *, most_bytes: int | None = None
) -> tuple[Finding, ...]:
    """Return what is wrong with a log. Nothing of one larger than *most_bytes*, nor of none.

    Raises:
        StoreError: it cannot be read at all.
    """
    try:
        if most_bytes is not None and _size(conversations, conversation_id) > most_bytes:
            return ()
        found = findings_of(conversations, conversation_id)
    except LogMissingError:
        return ()
    return tuple(finding for finding in found if finding.kind not in NO_DAMAGE)


def sentence(conversation_id: UUID, findings: Sequence[Finding]) -> str | None:
    """Return what to say of *findings*, and what to do next; None if there are none."""
    if not findings:
        return None
    if all(LOCKED in finding.what for finding in findings):
        return str(LockedConversationError(id=conversation_id, reason=LOCKED))
    first = next((each for each in findings if each.line is not None), findings[0])
    place = "" if first.line is None else _("line {line}: ").format(line=first.line)
    more = _(" (and {count:,} more)").format(count=len(findings) - 1) if len(findings) > 1 else ""
    return _(
        "conversation {id} is damaged: {finding}{more}; `leftfold verify {id}` says where, "
        "`leftfold recover {id}` saves what can be saved"
    ).format(id=conversation_id, finding=place + one_line(first.what, _LONGEST), more=more)


def report(
    conversations: Conversations, conversation_id: UUID, *, most_bytes: int | None = None
) -> Damage | UnsetType:
    """Return what there is to say of a log, also of one that cannot be read."""
    try:
        findings = damage(conversations, conversation_id, most_bytes=most_bytes)
    except StoreError as error:
        return Damage(message=one_line(str(error), _LONGEST), findings=())
    message = sentence(conversation_id, findings)
    return Damage(message=message, findings=findings) if message else UNSET


def say_damage(
    conversations: Conversations, conversation_id: UUID, *, most_bytes: int | None = None
) -> Damage | UnsetType:
    """Say on stderr what is wrong with a log, never in the way of an answer; return it for JSON."""
    found = report(conversations, conversation_id, most_bytes=most_bytes)
    if found:
        complain(found.message)
    return found


def say_damage_of(
    conversations: Conversations, conversation_id: UUID, listing: Listing
) -> Damage | UnsetType:
    """Do what `say_damage` does for a row of *listing*, which may know what is wrong already."""
    known = listing.findings(conversation_id)
    if known is None:
        found = say_damage(conversations, conversation_id)
        if not found or found.findings:  # else it could not be read
            listing.add_findings(conversation_id, found.findings if found else ())
        return found
    message = sentence(conversation_id, known)
    if message is None:
        return UNSET
    complain(message)
    return Damage(message=message, findings=known)


def place_row(place: Finding | Fate, what: str) -> str:
    """Return the row of a table that tells *what* is the matter at a *place* in a log."""
    line = "" if place.line is None else f"line {place.line}"
    offset = "" if place.offset is None else f"byte {place.offset}"
    version = "" if place.version is None else f"version {place.version}"
    return plain(" ".join(f"  {line:10} {offset:14} {version:14} {what}".split("\n")))


def quickly_read(conversations: Conversations, ids: Iterable[UUID]) -> frozenset[UUID]:
    """Return those of *ids* whose logs can be looked at while a list is made, the first ones first.

    They have at most `QUICK_TOGETHER` bytes together; one that has more than is left is passed
    over.
    """
    fit, left = set(), QUICK_TOGETHER
    for conversation_id in ids:
        if left < _LEAST:
            break
        size = max(_size(conversations, conversation_id), _LEAST)
        if size <= left:
            fit.add(conversation_id)
            left -= size
    return frozenset(fit)


def _size(conversations: Conversations, conversation_id: UUID) -> int:
    if conversations.store is None:
        return 0
    try:
        return disk.stat(conversations.store.path_of(conversation_id)).st_size
    except OSError:
        return 0
