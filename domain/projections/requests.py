"""The requests of a conversation, one after the other: each costs what it adds to the one before.

What comes out is always that of ``request_of(conversation, leaf)``. A turn asks several times with
the same history: 3,000 messages are laid out, and hashed, once. Anything unusual (another branch,
another model, a compaction, news of an old call) starts over.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from domain.events import Compacted
from domain.projections.context import build_messages, live_unread, request_fields
from domain.projections.message_builder import MessageBuilder
from domain.request import FORM, BodyEnds, GrowingRequest, in_form

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.conversation import Conversation
    from domain.events import Entry, Version
    from domain.request import Request


class Requests:
    """Makes requests of *conversation*, which may be folded further in between.

    Digests are of the *form*.
    """

    def __init__(self, conversation: Conversation, form: str = FORM) -> None:
        self.conversation = conversation
        self._form = form
        self._ends: dict[bool, BodyEnds] = {}
        self._ends_of: tuple[object, ...] = ()
        self._leaf: Version | None = None
        self._facts: tuple[object, ...] = ()
        self._builder = MessageBuilder(conversation)
        self._growing = GrowingRequest()

    def request(self, leaf: Version | None) -> tuple[Request, str]:
        """Return the request for the path to *leaf*, as things are now, and its digest.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        digest = self.digest(leaf)
        builder = self._builder
        request = self._growing.next(self._ends_now(), builder.pieces, builder.last_message())
        return request, digest

    def digest(self, leaf: Version | None) -> str:
        """Return the digest of the request for the path to *leaf*, with the facts as they are now.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        added: Sequence[Entry] | None = None if self._leaf is None else self._added(leaf)
        if added is None or self._facts != self._facts_now() or self._knows_more():
            self._begin(leaf)
        else:
            for entry in added:
                self._builder.add(entry)
            if not self._builder.media.is_as_planned:
                self._begin(leaf)
        self._leaf = leaf
        return self._digest()

    def _begin(self, leaf: Version | None) -> None:
        self._leaf = leaf
        self._facts = self._facts_now()
        self._builder = build_messages(self.conversation, live_unread(self.conversation, leaf))
        self._growing = GrowingRequest()
        self._hash = sha256()
        self._hashed = 0

    def _facts_now(self) -> tuple[object, ...]:
        """Return the facts that the messages hashed so far depend on."""
        conversation = self.conversation
        said = conversation.known_limits, len(conversation.withheld)
        return conversation.model, conversation.max_tokens, conversation.caching, *said

    def _added(self, leaf: Version | None) -> list[Entry] | None:
        """Return the entries between the last leaf and *leaf*; None if it is no simple addition."""
        added: list[Entry] = []
        if leaf != self._leaf:
            for entry in self.conversation.backwards(leaf):
                if entry.originator_version <= (self._leaf or 0):
                    break
                added.append(entry)
            oldest = added[-1].originator_version if added else None
            if oldest is None or self.conversation.parent_of(oldest) != self._leaf:
                return None
        added.reverse()
        return None if any(isinstance(entry, Compacted) for entry in added) else added

    def _knows_more(self) -> bool:
        """Whether the known outcome of a call has changed since its answer was hashed."""
        outcome_of = self.conversation.outcome_of
        return any(known != outcome_of(a, asked_at=v) for a, v, known in self._builder.presumed)

    def _digest(self) -> str:
        """Hash the messages that are whole for good, and the rest of the body on a copy."""
        builder, ends = self._builder, self._ends_now()
        if not self._hashed:
            self._hash = sha256(ends.before)
        new = b"".join(builder.pieces[self._hashed :])
        self._hashed = len(builder.pieces)
        if new:  # messages, with a comma behind each
            self._hash.update(in_form(self._form, b"[%b]" % new[:-1])[1:-1])
            self._hash.update(b",")
        now = self._hash.copy()
        now.update(in_form(self._form, builder.last_message()))
        now.update(ends.after)
        return f"{self._form}:{now.hexdigest()}"

    def _ends_now(self) -> BodyEnds:
        """Return what is around the messages now."""
        conversation, may_think = self.conversation, self._builder.may_think
        depends_on = (*self._facts_now(), conversation.thinking_level, conversation.instructions)
        if self._ends_of != depends_on:
            self._ends_of = depends_on
            self._ends.clear()
        if may_think not in self._ends:
            fields = request_fields(conversation, may_think=may_think)
            self._ends[may_think] = BodyEnds.of(fields, self._form)
        return self._ends[may_think]
