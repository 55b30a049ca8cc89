"""Events in PostgreSQL: the library's recorder, with a save that takes events of any size.

The library sends the statements of a save in a pipeline. Where an event is larger than what the
socket takes at once (about a megabyte: a picture), psycopg waits there for an answer before all of
it is sent, and the server for the rest: forever. Here each statement is answered before the next.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from eventsourcing.persistence import InterfaceError, OperationalError
from eventsourcing.postgres import PostgresApplicationRecorder
from eventsourcing.utils import retry

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventsourcing.persistence import StoredEvent


class Recorder(PostgresApplicationRecorder):
    """The recorder of ``PERSISTENCE_MODULE=eventsourcing.postgres``."""

    @retry((InterfaceError, OperationalError), max_attempts=10, wait=0.2)
    def insert_events(
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        """Record the events all or not at all; return their places in the order of all.

        Raises:
            IntegrityError: one of their versions is there already.
        """
        if not stored_events:
            return []
        with self.datastore.transaction(commit=True) as cursor:
            self._insert_stored_events(cursor, stored_events, **kwargs)
            return self._fetch_ids_after_insert_events(cursor, stored_events, **kwargs)
