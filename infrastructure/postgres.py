"""Events in PostgreSQL: the library's recorder, with a save that takes events of any size.

The library sends the statements of a save in a pipeline. Where an event is larger than what the
socket takes at once (about a megabyte: a picture), psycopg waits there for an answer before all of
it is sent, and the server for the rest: forever. Here each statement is answered before the next.
"""

from __future__ import annotations

import os
import socket
from contextlib import suppress
from datetime import UTC, datetime
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Final

import psycopg
from eventsourcing.persistence import InterfaceError, OperationalError
from eventsourcing.postgres import PostgresApplicationRecorder
from eventsourcing.utils import retry

from infrastructure.errors import LeaseHeldError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from eventsourcing.persistence import StoredEvent


_ALIVE: Final = "-c tcp_keepalives_idle=30 -c tcp_keepalives_interval=10 -c tcp_keepalives_count=3"
"""A lease whose machine is gone is free again after a minute."""
_HOLDER: Final = """
    SELECT application_name FROM pg_locks JOIN pg_stat_activity USING (pid)
    WHERE locktype = 'advisory' AND objsubid = 1 AND granted AND datname = current_database()
    AND (classid::bigint << 32 | objid::bigint) = %s"""


class Lease:
    """The right to go on with a conversation: an advisory lock of a session, which dies with it.

    What the session calls itself says who holds it: a hint for people.
    """

    def __init__(self, session: psycopg.Connection[Any]) -> None:
        self._session = session

    def release(self) -> None:
        """Give the lease back; a second time does nothing."""
        with suppress(psycopg.Error):
            self._session.close()


class Recorder(PostgresApplicationRecorder):
    """The recorder of ``PERSISTENCE_MODULE=eventsourcing.postgres``."""

    def __init__(self, *arguments: Any, **more: Any) -> None:
        super().__init__(*arguments, **more)
        self._leases: list[Lease] = []

    def create_table(self) -> None:
        """Make the table, and what belongs to it, if it is not there: other programs may start."""
        place = f'"{self.datastore.schema}"."{self.events_table_name}"'
        with self.datastore.transaction() as cursor:
            found = cursor.execute("SELECT to_regclass(%s) AS place", (place,)).fetchone()
        if found is None or found["place"] is None:
            super().create_table()

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

    def lease(self, conversation_id: UUID) -> Lease:
        """Take the lease of a conversation without waiting.

        Raises:
            LeaseHeldError: another program has it; the error says who.
            OperationalError: the database cannot be reached.
        """
        place = f"{self.datastore.schema}.{self.events_table_name}/{conversation_id}"
        key = int.from_bytes(blake2b(place.encode(), digest_size=8).digest(), "big", signed=True)
        try:
            session = self._session()
            taken = session.execute("SELECT pg_try_advisory_lock(%s)", (key,)).fetchone()
            if taken != (True,):
                with session:
                    holder = session.execute(_HOLDER, (key,)).fetchone()
                raise LeaseHeldError(conversation_id, _who(holder[0] if holder else ""))
        except psycopg.Error as error:
            raise OperationalError(str(error).partition("\n")[0]) from error
        lease = Lease(session)
        self._leases.append(lease)
        return lease

    def end_leases(self) -> None:
        """Give back all leases that were taken."""
        while self._leases:
            self._leases.pop().release()

    def _session(self) -> psycopg.Connection[Any]:
        pool: Any = self.datastore.pool
        settings = {name: value for name, value in pool.kwargs.items() if name != "row_factory"}
        if pool.get_password_func:
            settings["password"] = pool.get_password_func()
        settings |= {"connect_timeout": 10, "options": _ALIVE, "application_name": _name()}
        return psycopg.connect(**settings, autocommit=True)


def _name() -> str:
    """Return who we are, in what PostgreSQL keeps of a name: 63 bytes."""
    since = datetime.now(UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
    return f"leftfold {os.getpid()} {since} {socket.gethostname()}".encode()[:63].decode(
        "ascii", "ignore"
    )


def _who(name: str) -> dict[str, str | int]:
    """Return what the *name* of a session says of a holder."""
    parts = name.split(" ")
    return dict(zip(("program", "pid", "since", "host"), parts, strict=False)) if name else {}
