"""What people type to name a conversation or an entry: ``ID[@ENTRY]``.

ID is a whole id or any unique beginning or end of it, or else a unique name; ENTRY a version, a
label, or a negative number from the end of the path. Ids are matched against ids, never joined
into paths (case H8).
"""

from __future__ import annotations

import re
from itertools import islice
from typing import TYPE_CHECKING

from app.errors import AmbiguousIdError, NoSuchConversationError, UsageError
from app.i18n import _
from domain.errors import UnknownEntryError

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations
    from domain.conversation import Conversation
    from domain.events import Version

SHORTEST = 4

_MOST_DIGITS = 18
"""With more of them, too, no number names an entry."""


def split(reference: str) -> tuple[str, str | None]:
    """Return the ID and the ENTRY of ``ID[@ENTRY]``."""
    wanted, at, entry = reference.partition("@")
    if at and not entry:
        raise UsageError(
            _("{reference!r}: what follows the @ is missing").format(reference=reference)
        )
    return wanted, entry or None


def place(conversations: Conversations, reference: str) -> tuple[UUID, Version | None]:
    """Return the conversation that ``ID[@ENTRY]`` means, and the entry, if it names one.

    Raises:
        UsageError, NoSuchConversationError, AmbiguousIdError, UnknownEntryError: as below.
    """
    wanted, entry = split(reference)
    found = conversation_id(conversations, wanted)
    return found, None if entry is None else entry_version(conversations.get(found), entry)


def counted(since: int, last: int) -> int:
    """Return where ``--since`` begins: a negative number counts from the *last* one.

    Raises:
        UsageError: it is 0.
    """
    if since == 0:
        raise UsageError(_("--since counts from 1, and from the end with -1"))
    return since if since > 0 else max(last + 1 + since, 1)


def conversation_id(conversations: Conversations, wanted: str) -> UUID:
    """Return the one conversation that *wanted* means: by its id, else by its name.

    Raises:
        UsageError: it cannot be an id, or is too short, and is no name.
        NoSuchConversationError: nothing matches.
        AmbiguousIdError: several match.
    """
    is_part = re.fullmatch(r"[0-9a-fA-F-]+", wanted) is not None
    is_long = len(wanted) >= SHORTEST
    matches = _with_part(conversations, wanted.lower()) if is_part and is_long else []
    match matches or _named(conversations, wanted):
        case [found]:
            return found
        case [_, *_] as several:
            raise AmbiguousIdError(wanted, several)
    if not is_part:
        raise UsageError(
            _("{wanted!r} is not a part of an id (0-9, a-f and -), nor a name").format(
                wanted=wanted
            )
        )
    if not is_long:
        raise UsageError(
            _("{wanted!r} is too short: give at least {shortest} characters of the id").format(
                wanted=wanted, shortest=SHORTEST
            )
        )
    raise NoSuchConversationError(wanted=wanted)


def _with_part(conversations: Conversations, part: str) -> list[UUID]:
    """Return the ids that begin or end with *part*."""
    return [
        found
        for found in conversations.ids()
        if str(found).startswith(part) or str(found).endswith(part)
    ]


def _named(conversations: Conversations, name: str) -> list[UUID]:
    """Return the conversations of this *name*. A log that cannot be read has none."""
    from app.catalogue import Listing  # noqa: PLC0415 - most people give an id

    return [row.id for row in Listing(conversations).rows if name and row.name == name]


def entry_version(conversation: Conversation, wanted: str) -> Version:
    """Return the entry that *wanted* names: a version, -N from the end of the path, or a label.

    Raises:
        UnknownEntryError: there is no such entry.
        UsageError: no entry has this label.
    """
    if re.fullmatch(r"-?[0-9]+", wanted) is None:
        labelled = [version for version, label in conversation.labels.items() if label == wanted]
        if not labelled:
            raise UsageError(_("no entry has the label {wanted!r}").format(wanted=wanted))
        return labelled[-1]
    number = int(wanted[:_MOST_DIGITS])
    if number < 0:
        end = islice(conversation.backwards(conversation.leaf), -number - 1, None)
        found = next((entry.originator_version for entry in end), None)
    else:
        found = number if conversation.has_entry(number) else None
    if found is None:
        raise UnknownEntryError(number)
    return found
