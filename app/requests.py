"""Requests rebuilt from the log: the one that is next, and those that were sent."""

from __future__ import annotations

from functools import partial
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


def requests_for(
    conversations: Conversations, conversation: Conversation, entry: Version | None
) -> list[Rebuilt]:
    """Return the requests behind *entry*: one of an answer, several of a summary in pieces.

    For another entry: its context at that time. With no *entry*: the context of the leaf, as the
    next prompt would extend it.
    """
    if entry is None:
        return [Rebuilt(request_of(conversation, conversation.leaf), None)]
    past = partial(conversations.get, conversation.id)
    match conversation.entry(entry):
        case MessageAppended(request_version=int(version), request_digest=digest):
            request = request_of(past(version=version), conversation.parent_of(entry))
            return [Rebuilt(request, digest)]
        case (Compacted() | BranchSummarized()) as summary if summary.asked is not None:
            requests = rebuilt(past(version=summary.asked.version), summary)
            digests = (step.digest for step in summary.asked.steps)
            if requests:
                return [Rebuilt(*pair) for pair in zip(requests, digests, strict=False)]
    return [Rebuilt(request_of(past(version=entry), entry), None)]
