"""Requests rebuilt from the log: the one that is next, and those that were sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.events import BranchSummarized, Compacted, MessageAppended, Version
from domain.projections.context import request_of
from domain.projections.summaries import rebuilt
from domain.request import FORM, Request, form_of

if TYPE_CHECKING:
    from app.application import Conversations
    from domain.conversation import Conversation


class Rebuilt(NamedTuple):
    """A *request*, and the digest that was recorded when it was sent, if it was."""

    request: Request
    recorded_digest: str | None

    @property
    def form(self) -> str:
        """The form of its digest."""
        return form_of(self.recorded_digest or FORM)

    @property
    def is_as_sent(self) -> bool:
        """Whether nothing says that another one was sent."""
        return self.recorded_digest in (None, self.request.digest(self.form))


def request_for(
    conversations: Conversations, conversation: Conversation, entry: Version | None
) -> Rebuilt:
    """Return the request behind the answer *entry*; for another entry, its context at that time.

    With no *entry*: the context of the leaf, as the next prompt would extend it.
    """
    if entry is None:
        return Rebuilt(request_of(conversation, conversation.leaf), None)
    asked = conversation.entry(entry)
    if isinstance(asked, MessageAppended) and asked.request_version is not None:
        past = conversations.get(conversation.id, version=asked.request_version)
        leaf = conversation.parent_of(entry)
        return Rebuilt(request_of(past, leaf), asked.request_digest)
    past = conversations.get(conversation.id, version=entry)
    return Rebuilt(request_of(past, entry), None)


def summary_requests_for(
    conversations: Conversations, conversation: Conversation, entry: Version | None
) -> list[Rebuilt]:
    """Return the requests behind the summary *entry*; none for anything else, nor if unrecorded."""
    summary = conversation.entry(entry) if entry is not None else None
    if not isinstance(summary, Compacted | BranchSummarized) or summary.asked is None:
        return []
    past = conversations.get(conversation.id, version=summary.asked.version)
    digests = (step.digest for step in summary.asked.steps)
    return [Rebuilt(*pair) for pair in zip(rebuilt(past, summary), digests, strict=False)]
