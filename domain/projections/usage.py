"""Usage: what was spent, summed over entries. Each response counts once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.events import BranchSummarized, Compacted, MessageAppended

if TYPE_CHECKING:
    from domain.conversation import Conversation
    from domain.events import Version
    from domain.messages import JsonObject

TOKEN_KINDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


def total(conversation: Conversation, *, since: Version = 1) -> JsonObject:
    """Return the tokens, by kind, of all that models said from version *since* on."""
    spent: JsonObject = {}
    for version in reversed(conversation.entries):
        if version < since:
            break
        entry = conversation.entries[version]
        if isinstance(entry, MessageAppended | Compacted | BranchSummarized) and entry.usage:
            for kind in TOKEN_KINDS:
                count = entry.usage.get(kind)
                if isinstance(count, int) and count:
                    spent[kind] = spent.get(kind, 0) + count
    return dict(sorted(spent.items()))
