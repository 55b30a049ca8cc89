"""The digests of a conversation's requests, each computed from what the one before left.

A request of 3,000 messages is projected and hashed in full once; the next one of the same branch
costs what it adds. Anything unusual (another branch, another model, a compaction, news of an old
call) starts over. The answer is always that of ``digest(context(conversation, leaf))``.
"""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from domain.canonical import FORM, canonical
from domain.events import Compacted
from domain.projections.context import build_messages, live_entries, may_think, request_body

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.conversation import Conversation
    from domain.events import Entry, Version
    from domain.messages import JsonObject


class Digests:
    """Computes digests of requests of *conversation*, which may be folded further in between."""

    def __init__(self, conversation: Conversation) -> None:
        self.conversation = conversation
        self._frames: dict[bool, tuple[bytes, bytes]] = {}
        self._frames_of: tuple[object, ...] = ()
        self._leaf: Version | None = None
        self._facts: tuple[object, ...] = ()
        self._begin(None)

    def of(self, leaf: Version | None) -> str:
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
        self._builder = build_messages(self.conversation, live_entries(self.conversation, leaf))
        self._last_answer: list[JsonObject] = []
        self._hash = sha256()

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
        whole, last = self._builder.messages, self._builder.last_message()
        is_first = not self._last_answer
        if whole:
            self._last_answer = whole[-1:]
        thinks = may_think([*self._last_answer, last])
        head, tail = self._frame(may_think=thinks)
        if whole and is_first:
            self._hash.update(head)
        for message in whole:
            self._hash.update(canonical(message) + b",")
        self._keep(whole)
        whole.clear()
        now = self._hash.copy()
        now.update((b"" if self._last_answer else head) + canonical(last) + tail)
        return f"{FORM}:{now.hexdigest()}"

    def _keep(self, whole: Sequence[JsonObject]) -> None:
        """Do something with messages that are whole for good; nothing, for a digest."""

    def _frame(self, *, may_think: bool) -> tuple[bytes, bytes]:
        """Return the canonical body before and after its messages."""
        conversation = self.conversation
        depends_on = (*self._facts_now(), conversation.thinking_level, conversation.instructions)
        if self._frames_of != depends_on:
            self._frames_of = depends_on
            self._frames.clear()
        if may_think not in self._frames:
            body = request_body(conversation, [], may_think=may_think)
            before = canonical({key: body[key] for key in body if key < "messages"})
            after = canonical({key: body[key] for key in body if key > "messages"})
            self._frames[may_think] = before[:-1] + b',"messages":[', b"]," + after[1:]
        return self._frames[may_think]
