"""A conversation that is open, in step with its log: append, then believe.

The library's aggregates change first and empty their pending list before the recorder is asked, so
after any failed save the object is thrown away and read again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventsourcing.persistence import IntegrityError, PersistenceError

from app.errors import (
    ChangedElsewhereError,
    NewerEventsError,
    NoSuchConversationError,
    NotRecordedError,
)
from domain.events import Compacted, Event, Version

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime
    from uuid import UUID

    from app.application import Conversations
    from domain.conversation import Conversation

MAX_TRIES = 20
"""How often a command is applied again because another program was faster."""

SNAPSHOT_INTERVAL = 500
"""Events between two snapshots: what opening replays at most, in a few milliseconds."""


class OpenConversation:
    """An open conversation, in step with its log: append, then believe."""

    def __init__(
        self,
        conversations: Conversations,
        conversation_id: UUID,
        begin: Callable[[UUID, datetime], Conversation] | None = None,
        *,
        conversation: Conversation | None = None,
    ) -> None:
        self.id = conversation_id
        self._conversations = conversations
        self._begin = begin
        self._conversation = conversation
        self._kept: Version = conversation.restored_from if conversation else 0

    @property
    def conversation(self) -> Conversation:
        """The conversation as the log has it; read again after a failed save."""
        if self._conversation is None:
            self._conversation = self._read()
        return self._conversation

    def _read(self) -> Conversation:
        try:
            return self._conversations.get(self.id)
        except NoSuchConversationError:
            if self._begin is None:
                raise
            conversation = self._begin(self.id, self._conversations.clock())
            conversation.clock = self._conversations.clock
            conversation.seals = self._conversations.seals
            return conversation

    def record(self, command: Callable[[Conversation], object], *, anywhere: bool = False) -> None:
        """Apply *command* and append its events; when this returns, they are in the log.

        What another program appended meanwhile is read, and *command* applied again: if the leaf
        is where it was, or *anywhere* for what knows its own place in the tree.

        Raises:
            ConversationError: the command was refused; nothing changed.
            ChangedElsewhereError: another program moved the leaf meanwhile.
            NewerEventsError: a newer version wrote in it what this one cannot read.
            NotRecordedError: the log could not take the events.
        """
        leaf = self._known().leaf
        for _ in range(MAX_TRIES):
            try:
                pending = self._recorded(command)
            except ChangedElsewhereError:
                if self._known().leaf != leaf and not anywhere:
                    raise
            else:
                self._keep_snapshot(pending)
                return
        raise ChangedElsewhereError(id=self.id)

    def _known(self) -> Conversation:
        try:
            conversation = self.conversation
        except PersistenceError as error:
            raise NotRecordedError(str(error)) from error
        require_known(conversation)
        return conversation

    def _recorded(self, command: Callable[[Conversation], object]) -> list[Event]:
        """Apply *command*, append its events, and return them."""
        conversation, self._conversation = self._known(), None
        command(conversation)
        pending: list[Any] = list(conversation.pending_events)
        try:
            self._conversations.save(conversation)
        except PersistenceError as error:
            # The error may have come after the fact, or of a second try. The log knows.
            if not self._conversations.is_recorded(pending):
                if isinstance(error, IntegrityError):
                    raise ChangedElsewhereError(id=self.id) from error
                raise NotRecordedError(str(error)) from error
        self._begin = None
        self._conversation = conversation
        return pending

    def _keep_snapshot(self, added: list[Event]) -> None:
        """Keep a snapshot after a compaction, and every so many events."""
        conversation = self.conversation
        compacted = any(isinstance(event, Compacted) for event in added)
        if compacted or conversation.version - self._kept >= SNAPSHOT_INTERVAL:
            self._conversations.keep_snapshot(conversation)
            self._kept = conversation.version


def require_known(conversation: Conversation) -> None:
    """Make sure that no newer version wrote in *conversation* what this one cannot read.

    Raises:
        NewerEventsError: one did: what came after it would be appended as if it were ours.
    """
    for event in conversation.unrecognised:
        if event.is_newer:
            raise NewerEventsError(id=conversation.id)
