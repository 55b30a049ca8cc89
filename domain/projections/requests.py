"""The requests of a conversation, one after the other: each costs what it adds to the one before.

What comes out is always ``context(conversation, leaf)`` and its digest. A turn asks several times,
and the history that it asks with is the same: it is projected, and hashed, once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.projections.context import may_think, request_body
from domain.projections.digests import Digests

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.events import Version
    from domain.messages import JsonObject


class Requests(Digests):
    """Makes requests of *conversation*, which may be folded further in between.

    Successive requests share their messages: a caller must not change them.
    """

    def request(self, leaf: Version | None) -> tuple[JsonObject, str]:
        """Return the request body for the path to *leaf*, as things are now, and its digest.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        digest = self.of(leaf)
        messages = [*self._messages, self._builder.last_message()]
        body = request_body(self.conversation, messages, may_think=may_think(messages))
        return body, digest

    def _begin(self, leaf: Version | None) -> None:
        super()._begin(leaf)
        self._messages: list[JsonObject] = []

    def _keep(self, whole: Sequence[JsonObject]) -> None:
        self._messages += whole
