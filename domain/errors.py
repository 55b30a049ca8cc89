"""What can go wrong in the domain.

::

    ConversationError
    ├── UnknownEntryError     a version that is not an entry of this conversation
    ├── UnknownCallError      a tool result for a call that is not open
    ├── InvalidCommandError   a command whose arguments make no event
    └── HistoryLostError      the log of a conversation that is open is gone
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from uuid import UUID


class ConversationError(Exception):
    """The root of all errors that a conversation raises."""


class UnknownEntryError(ConversationError):
    """A version that is not an entry of this conversation."""

    def __init__(self, version: int) -> None:
        super().__init__(f"{version} is not an entry of this conversation")
        self.version = version


class UnknownCallError(ConversationError):
    """A result was offered for a tool call that is unknown here, or answered already."""

    def __init__(self, tool_use_id: str) -> None:
        super().__init__(f"{tool_use_id!r} is not an open tool call")
        self.tool_use_id = tool_use_id


class InvalidCommandError(ConversationError):
    """The arguments of a command make no event."""


class HistoryLostError(ConversationError):
    """The events before a snapshot were needed, and there are none any more."""

    def __init__(self, conversation_id: UUID) -> None:
        super().__init__(f"the log of {conversation_id} is gone while it was open")
        self.conversation_id = conversation_id
