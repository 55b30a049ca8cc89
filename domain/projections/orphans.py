"""Orphans: tool results that answer no call. They stay in the log, but no request has them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from domain.events import Compacted, MessageAppended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.conversation import Conversation
    from domain.events import Version

MOST_ENTRIES = 2_000
"""How far back it is looked: whoever opens a long conversation does not wait for this."""


def orphans(conversation: Conversation, leaf: Version | None) -> list[str]:
    """Return the ids of the results on the live path to *leaf* that the model does not get.

    Their call was lost, or is answered already. The newest come first.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    found: list[str] = []
    waiting: list[str] = []  # results whose call was not met yet, on the way back
    for message in islice(_live_messages(conversation, leaf), MOST_ENTRIES):
        role, blocks = message.said
        if role == "user":
            waiting += [result["tool_use_id"] for result in reversed(message.said.tool_results)]
        elif blocks:
            calls = {call["id"] for call in message.said.tool_uses}
            answered = {each for each in waiting if each in calls}
            for each in answered:
                waiting.remove(each)
            found += waiting
            waiting.clear()
    return found + waiting


def _live_messages(conversation: Conversation, leaf: Version | None) -> Iterator[MessageAppended]:
    """Yield the messages on the path to *leaf* that no summary stands for, the last first."""
    first = 0
    for entry in conversation.backwards(leaf):
        if entry.originator_version < first:
            return
        if isinstance(entry, MessageAppended):
            yield entry
        elif isinstance(entry, Compacted) and not first:
            first = entry.first_kept or entry.originator_version
