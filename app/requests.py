"""Requests rebuilt from the log: the one that is next, and those that were sent."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from domain.events import MessageAppended
from domain.projections.context import context

if TYPE_CHECKING:
    from app.application import Conversations
    from domain.conversation import Conversation
    from domain.events import Version
    from domain.messages import JsonObject


class Request(NamedTuple):
    """A request body, and the digest that was recorded when it was sent, if it was."""

    body: JsonObject
    recorded_digest: str | None


def request_for(
    conversations: Conversations, conversation: Conversation, entry: Version | None
) -> Request:
    """Return the request behind the answer *entry*; for another entry, its context at that time.

    With no *entry*: the context of the leaf, as the next prompt would extend it.
    """
    if entry is None:
        return Request(context(conversation, conversation.leaf), None)
    asked = conversation.entry(entry)
    if isinstance(asked, MessageAppended) and asked.request_version is not None:
        past = conversations.get(conversation.id, version=asked.request_version)
        leaf = conversation.parent_of(entry)
        return Request(context(past, leaf), asked.request_digest)
    past = conversations.get(conversation.id, version=entry)
    return Request(context(past, entry), None)
