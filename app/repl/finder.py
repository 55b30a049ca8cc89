"""Finds in all that was said, while somebody types: in a thread, and the newest wish only."""

from __future__ import annotations

import sqlite3
import threading
from itertools import islice
from typing import TYPE_CHECKING, Self

from app.application import Conversations
from app.catalogue import plain_store
from app.i18n import _
from app.search import wanted_of
from domain.projections.texts import folded
from infrastructure.errors import StoreError
from infrastructure.read_models.texts import Texts, hits

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Iterator, Sequence
    from uuid import UUID

    from domain.events import Event, Version
    from infrastructure.read_models.texts import Hit

MOST = 50
"""So many conversations are enough to choose from."""


_STEPS = 10_000
"""After so many steps SQLite asks whether to go on: some thousand times a second."""


class _LeftError(Exception):
    """Nobody wants to find anything any more."""


class Finder:
    """The newest text of each conversation in which all words stand.

    Args:
        conversations: Where it is looked for. The thread opens the store again, for itself.
        within: Of these conversations only.
        tell: Told, in the thread, why nothing is found yet; nothing, if it is.
        found: Told, in the thread, what was found, and for which words.
    """

    def __init__(
        self,
        conversations: Conversations,
        *,
        within: Collection[UUID],
        tell: Callable[[str], None],
        found: Callable[[str, Sequence[Hit]], None],
    ) -> None:
        self._conversations = conversations
        self._within = within
        self._tell, self._found = tell, found
        self._wish: str | None = None
        self._has_left = False
        self._changed = threading.Condition()
        self._thread = threading.Thread(target=self._run, daemon=True)

    def __enter__(self) -> Self:
        if plain_store(self._conversations) is not None:
            self._thread.start()
        return self

    def __exit__(self, *_error: object) -> None:
        with self._changed:
            self._has_left = True
            self._changed.notify()
        if self._thread.ident is not None:
            self._thread.join()

    def look_for(self, words: str) -> None:
        """Look for *words*, and no more for what was wished before."""
        with self._changed:
            self._wish = words
            self._changed.notify()

    def _run(self) -> None:
        """Serve wishes until nobody has any; without an index there is nothing to serve."""
        with Conversations(self._conversations.env) as conversations:
            store = plain_store(conversations)
            assert store is not None

            def read(conversation_id: UUID, since: Version, limit: int) -> list[Event]:
                return list(conversations.events_of(conversation_id, since=since, limit=limit))

            try:
                Texts(store, read).use(self._serve, self._progress)
            except _LeftError:
                return
            except StoreError as error:
                self._tell(_("only titles are searched: {why}").format(why=error))

    def _progress(self, done: int, total: int) -> None:
        if self._has_left:
            raise _LeftError
        self._tell(_("reading the conversations: {share:.0%}").format(share=done / (total or 1)))

    def _serve(self, connection: sqlite3.Connection) -> None:
        self._tell("")
        for words in self._wishes():

            def is_over(words: str = words) -> bool:
                return self._has_left or self._wish != words

            connection.set_progress_handler(is_over, _STEPS)
            try:
                found = list(islice(_newest(connection, words, self._within), MOST))
            except sqlite3.OperationalError as error:
                if error.sqlite_errorcode != sqlite3.SQLITE_INTERRUPT:
                    raise
            else:
                if not is_over():
                    self._found(words, found)

    def _wishes(self) -> Iterator[str]:
        """Yield what is wished for, the newest only, until nobody has any wish."""
        served: str | None = None
        while True:
            with self._changed:
                while self._wish == served and not self._has_left:
                    self._changed.wait()
                if self._has_left:
                    return
                served = self._wish
            if served is not None:
                yield served


def _newest(connection: sqlite3.Connection, words: str, within: Collection[UUID]) -> Iterator[Hit]:
    """Yield the newest text of each conversation in which all *words* stand."""
    wanted = wanted_of([word for word in words.split() if folded(word)])
    left = set(within)
    if wanted.parts:
        for hit in hits(connection, wanted, lambda id_: id_ in left):
            left.discard(hit.conversation)
            yield hit
