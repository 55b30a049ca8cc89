"""What one turn may spend: requests, money, and rounds of calls that bring nothing new."""

from __future__ import annotations

from collections import Counter
from typing import TYPE_CHECKING, NamedTuple

from app.configuration import MAX_COST, MAX_REQUESTS
from app.i18n import _
from domain.canonical import canonical
from domain.events import MessageAppended
from domain.projections.usage import added, usage_of
from infrastructure.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.conversation import Conversation
    from domain.events import Version
    from domain.messages import JsonObject, ToolUseBlock
    from domain.projections.usage import Cost

_LONGEST_NAME = 80
MAX_REPEATED_ROUNDS = 5
"""How many rounds of calls in a row may bring nothing that this turn has not seen."""

_MOST_PER_TOKEN = 0.0005
"""No model's token costs more: up to here the prices, slow to import, need not be known."""


def nobody_knows(_model: str | None, _usage: JsonObject) -> None:
    """Price nothing."""


class TurnLimits(NamedTuple):
    """The limits of every turn, and who knows what models cost."""

    max_requests: int = MAX_REQUESTS
    max_cost: float = MAX_COST
    cost: Cost = nobody_knows


DEFAULT_LIMITS = TurnLimits()


class Spending:
    """What a turn has spent so far: it began with version *first*, after so many *requests*."""

    def __init__(self, limits: TurnLimits, first: Version, requests: int) -> None:
        self._limits = limits
        self._first = first
        self._requests = requests
        self._seen: set[bytes] = set()
        self._rounds_without_news = 0
        self._times: Counter[str] = Counter()

    def ask(self, conversation: Conversation, lost: JsonObject, requests: int) -> None:
        """Let one more request go out; *lost* is what attempts without an answer have used.

        So many *requests* have gone out, those refused, sent again and for summaries among them.

        Raises:
            ModelError: the turn has spent what it may.
        """
        made = requests - self._requests
        if made >= self._limits.max_requests:
            message = _(
                "this turn has made {count} requests, as many as one may: say `go on`, or raise "
                "the setting max_requests"
            ).format(count=made)
            raise ModelError(message, kind="request_limit")
        spent = self._cost(conversation, lost)
        if spent >= self._limits.max_cost:
            message = _(
                "this turn has cost ${spent:.2f}, and one may cost ${most:.2f}: say `go on`, or "
                "raise the setting max_cost"
            ).format(spent=spent, most=self._limits.max_cost)
            raise ModelError(message, kind="cost_limit")

    def _cost(self, conversation: Conversation, lost: JsonObject) -> float:
        """Return what the turn has cost in dollars; 0 where nobody knows, or it is little."""
        entries = list(conversation.since(self._first))
        tokens = added(usage_of(entries, nobody_knows).tokens, lost)
        if sum(tokens.values()) * _MOST_PER_TOKEN < self._limits.max_cost:
            return 0.0
        of_lost = self._limits.cost(conversation.model, lost) or 0
        return float((usage_of(entries, self._limits.cost).cost or 0) + of_lost)

    def again(self, kind: str, message: str, *, most: int) -> None:
        """Let the model be asked again after an answer of *kind*, at *most* so often.

        Raises:
            ModelError: with *kind* and *message*: that was often enough.
        """
        self._times[kind] += 1
        if self._times[kind] > most:
            raise ModelError(message, kind=kind)

    def hear(self) -> None:
        """The user said something: what comes now may be the same and mean another thing."""
        self._rounds_without_news = 0

    def see(self, conversation: Conversation, calls: Sequence[ToolUseBlock]) -> None:
        """Look at *calls* and their results.

        Raises:
            ModelError: round after round they were such that this turn has seen before.
        """
        results = _results(conversation, {call.id for call in calls})
        pairs = {
            canonical([call.name, call.input, results.get(call.id)]): call.name for call in calls
        }
        is_news = not pairs.keys() <= self._seen
        self._seen |= pairs.keys()
        self._rounds_without_news = 0 if is_news else self._rounds_without_news + 1
        if self._rounds_without_news >= MAX_REPEATED_ROUNDS:
            message = _(
                "the model makes the same calls again and again, with the same results "
                "({names}): tell it what to do instead"
            ).format(names=", ".join(sorted({name[:_LONGEST_NAME] for name in pairs.values()})))
            raise ModelError(message, kind="repeated_calls")


def _results(conversation: Conversation, wanted: set[str]) -> JsonObject:
    """Return the content of the newest results with the *wanted* ids."""
    results: JsonObject = {}
    for entry in conversation.backwards(conversation.leaf):
        if isinstance(entry, MessageAppended):
            if entry.content.role == "assistant":
                break
            for result in entry.content.tool_results:
                if result["tool_use_id"] in wanted:
                    results.setdefault(result["tool_use_id"], result.get("content"))
    return results
