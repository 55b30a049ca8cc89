"""Orphans: tool results that answer no call. They stay in the log, but no request has them."""

from __future__ import annotations

from itertools import islice
from typing import TYPE_CHECKING

from domain.events import MessageAppended, Version
from domain.projections.context import live_backwards

if TYPE_CHECKING:
    from domain.conversation import Conversation

MOST_ENTRIES = 2_000
"""How many entries back it looks: a long conversation opens without waiting for this."""


def orphans(conversation: Conversation, leaf: Version | None) -> list[str]:
    """Return the ids of the results on the live path to *leaf* that the model does not get.

    Their call was lost, or is answered already. The newest come first.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    found: list[str] = []
    waiting: list[str] = []  # results whose call was not met yet, on the way back
    for entry in islice(live_backwards(conversation, leaf), MOST_ENTRIES):
        if not isinstance(entry, MessageAppended):
            continue
        said = entry.content
        if said.role == "user":
            waiting += [result["tool_use_id"] for result in reversed(said.tool_results)]
        elif said.blocks:
            calls = {call["id"] for call in said.tool_uses}
            answered = {each for each in waiting if each in calls}
            for each in answered:
                waiting.remove(each)
            found += waiting
            waiting.clear()
    return found + waiting
