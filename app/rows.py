"""Rows of a list, from the logs themselves; a log that only grew is read on where it was left."""

from __future__ import annotations

from decimal import Decimal
from itertools import chain
from typing import TYPE_CHECKING

from app.errors import UnreadableConversationError
from app.places import real
from domain.projections.catalogue import summary
from infrastructure.jsonl.snapshots import anchor_of, holds
from infrastructure.read_models.kept import NO_STATE, Kept

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations
    from infrastructure.jsonl.log_reader import State


def read(
    conversations: Conversations,
    conversation_id: UUID,
    *,
    state: State = NO_STATE,
    earlier: Kept | None = None,
) -> Kept:
    """Return the row of a log that was in *state*; read is what is not in an *earlier* one.

    Raises:
        StoreError: the log cannot be read.
        UnreadableConversationError: nothing in it can be.
    """
    log = conversations.store.log(conversation_id) if conversations.store else None
    if log is None or earlier is None or not holds(log, earlier.anchor):
        earlier = None
    before = earlier.row if earlier else None
    since = before.events + 1 if before else 1
    found = summary(
        chain.from_iterable(conversations.pages_of(conversation_id, since=since)), before
    )
    if found is None:
        raise UnreadableConversationError(id=conversation_id)
    row = found.row
    return Kept(
        row,
        state,
        anchor_of(log, row.events) if log else None,
        None if row.cwd is None else real(row.cwd),
        cost=earlier.cost if earlier else None,
        priced=earlier.priced if earlier else 0,
    )


def priced(conversations: Conversations, kept: Kept) -> Kept:
    """Return *kept* with what was spent so far, by the prices that are known.

    Raises:
        StoreError: the log cannot be read.
    """
    from infrastructure.model.prices import cost  # noqa: PLC0415 - a quarter of a second

    known, since = (Decimal(kept.cost), kept.priced + 1) if kept.cost is not None else (None, 1)
    found = summary(chain.from_iterable(conversations.pages_of(kept.row.id, since=since)))
    spent = [cost(answer.model, answer.usage) for answer in found.answers] if found else []
    prices = [price for price in (known, *spent) if price is not None]
    is_known = prices and None not in spent
    return kept._replace(cost=float(sum(prices)) if is_known else None, priced=kept.row.events)
