"""What people type to name a conversation or an entry: ``ID[@ENTRY]``.

ID is a whole id or any unique beginning or end of it; ENTRY a version, a label, or a negative
number from the end of the path. Ids are matched against ids, never joined into paths (case H8).
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


def conversation_id(conversations: Conversations, wanted: str) -> UUID:
    """Return the one id that *wanted* names.

    Raises:
        UsageError: it cannot be an id, or is too short.
        NoSuchConversationError: nothing matches.
        AmbiguousIdError: several match.
    """
    wanted = wanted.lower()
    if re.fullmatch(r"[0-9a-f-]+", wanted) is None:
        raise UsageError(
            _("{wanted!r} is not a part of an id: ids have only 0-9, a-f and -").format(
                wanted=wanted
            )
        )
    if len(wanted) < SHORTEST:
        raise UsageError(
            _("{wanted!r} is too short: give at least {shortest} characters of the id").format(
                wanted=wanted, shortest=SHORTEST
            )
        )
    matches = [
        found
        for found in conversations.ids()
        if str(found).startswith(wanted) or str(found).endswith(wanted)
    ]
    match matches:
        case [found]:
            return found
        case []:
            raise NoSuchConversationError(wanted)
        case _:
            raise AmbiguousIdError(wanted, matches)


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
