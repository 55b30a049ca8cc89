"""What a conversation cost, and how long its context is: what takes time to know."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.projections.compaction import context_tokens
from domain.projections.usage import usage_of
from infrastructure.model.prices import cost

if TYPE_CHECKING:
    from decimal import Decimal

    from app.bootstrap import AgentFactory
    from domain.conversation import Conversation
    from domain.events import Version
    from domain.projections.usage import Cost


class Facts(NamedTuple):
    """What takes time to know of one version of a conversation."""

    tokens: int
    window: int
    cost: Decimal | int | None


class Spent(NamedTuple):
    """What a conversation cost up to a version; None in *dollars* if a price is not known."""

    version: Version = 0
    dollars: Decimal | int | None = 0

    def and_since(self, conversation: Conversation, cost: Cost) -> Spent:
        """Return the same up to the version of *conversation*: only what was added is looked at."""
        inherited = conversation.origin.originator_version if conversation.origin else 0
        added = usage_of(conversation.since(max(self.version, inherited) + 1), cost)
        if self.dollars is None or (added.tokens and added.cost is None):
            return Spent(conversation.version, None)
        return Spent(conversation.version, self.dollars + (added.cost or 0))


def facts_of(
    conversation: Conversation, factory: AgentFactory, before: Spent | None
) -> tuple[Facts, Spent]:
    """Return what there is to know of *conversation*, and what it has spent by now.

    *before* is what an earlier version had spent. It is called in a thread, while *conversation*
    may go on: the thread reads one of its own, whose past is fetched for it alone.
    """
    window = conversation.known_limits.within(factory.window_of(conversation.model or ""))
    own = factory.foreseen(conversation)
    spent = (before or Spent()).and_since(own, cost)
    return Facts(context_tokens(own), window, spent.dollars), spent
