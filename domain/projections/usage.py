"""Usage: tokens and tool calls, summed over what happened. Each response counts once.

What a fork inherited was spent by its parent: it counts there (case N1). Attempts that left no
answer behind count as well: the turn says what they spent.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.events import BranchSummarized, Compacted, Entry, MessageAppended, Version

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from decimal import Decimal

    from domain.conversation import Conversation
    from domain.messages import JsonObject

    Cost = Callable[[str | None, JsonObject], Decimal | None]

TOKEN_KINDS = (
    "input_tokens",
    "output_tokens",
    "cache_read_input_tokens",
    "cache_creation_input_tokens",
)


class Usage(NamedTuple):
    """What was spent: tokens by kind, US dollars, seconds of waiting, and what for.

    *cost* is None if the prices of one of the models are unknown.
    """

    tokens: JsonObject
    cost: Decimal | None
    seconds: float
    answers: int
    tool_calls: int
    failed_calls: int

    @property
    def cached_share(self) -> float | None:
        """The share of input tokens that came from the server's cache; None without input."""
        read = int(self.tokens.get("cache_read_input_tokens", 0))
        sent = read + sum(
            int(self.tokens.get(kind, 0))
            for kind in ("input_tokens", "cache_creation_input_tokens")
        )
        return read / sent if sent else None


def added(one: JsonObject, other: JsonObject | None) -> JsonObject:
    """Return the sum of two usages, tokens by kind; zeros left out."""
    spent: JsonObject = {}
    for kind in TOKEN_KINDS:
        counts = [usage.get(kind) for usage in (one, other or {})]
        count = sum(count for count in counts if isinstance(count, int))
        if count:
            spent[kind] = count
    return spent


def total(conversation: Conversation, *, since: Version = 1) -> JsonObject:
    """Return the tokens, by kind, of all entries from version *since* on."""
    spent: JsonObject = {}
    for entry in conversation.since(since):
        spent = added(spent, _answer(entry)[1])
    return spent


def own_entries(conversation: Conversation) -> tuple[Entry, ...]:
    """Return the entries that are not inherited from the conversation that this is a fork of."""
    inherited = conversation.origin.originator_version if conversation.origin else 0
    return tuple(e for version, e in conversation.entries.items() if version > inherited)


def usage_of(entries: Iterable[Entry], cost: Cost, *, lost: Iterable[JsonObject] = ()) -> Usage:
    """Return what *entries* spent, priced by *cost*; *lost* are usages that left no entry."""
    tokens: JsonObject = {}
    dollars: Decimal | None = None
    unpriced = False
    seconds, answers, calls, failed = 0.0, 0, 0, 0
    for entry in entries:
        model, spent = _answer(entry)
        if spent:
            tokens = added(tokens, spent)
            price = cost(model, spent)
            unpriced |= price is None
            dollars = price if dollars is None else dollars + (price or 0)
        if isinstance(entry, MessageAppended):
            said = entry.content
            answers += said.role == "assistant"
            seconds += entry.duration or 0
            calls += len(said.tool_uses)
            failed += sum(result.get("is_error") is True for result in said.tool_results)
    for spent in lost:
        tokens = added(tokens, spent)
    return Usage(tokens, None if unpriced else dollars, seconds, answers, calls, failed)


def by_model(entries: Iterable[Entry], cost: Cost) -> dict[str, Usage]:
    """Return what *entries* spent, for each model that answered: its calls' results are its own."""
    groups: dict[str, list[Entry]] = {}
    callers: dict[object, str] = {}
    for entry in entries:
        model, spent = _answer(entry)
        if isinstance(entry, MessageAppended):
            said = entry.content
            if said.role == "assistant":
                callers |= {call["id"]: model or "unknown" for call in said.tool_uses}
            else:
                ids = (result.get("tool_use_id") for result in said.tool_results)
                asked = next((callers[each] for each in ids if each in callers), None)
                if asked is not None:
                    groups[asked].append(entry)
                continue
        if spent or isinstance(entry, MessageAppended):
            groups.setdefault(model or "unknown", []).append(entry)
    return {model: usage_of(group, cost) for model, group in groups.items()}


def _answer(entry: Entry) -> tuple[str | None, JsonObject | None]:
    """Return the model that was asked for *entry*, and what that used."""
    match entry:
        case MessageAppended() | Compacted() | BranchSummarized():
            return entry.model, entry.usage
        case _:
            return None, None
