"""The library's recorders, over a `Store`. What they promise is written in `eventsourcing`."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from uuid import UUID

from eventsourcing.persistence import (
    AggregateRecorder,
    ApplicationRecorder,
    Notification,
    ProcessRecorder,
    StoredEvent,
    Tracking,
    TrackingRecorder,
)

from infrastructure.jsonl.store import Store, as_uuid
from infrastructure.jsonl.subscription import JSONLSubscription

if TYPE_CHECKING:
    from collections.abc import Generator, Iterable, Sequence
    from threading import Event

    from infrastructure.jsonl.line import Line
    from infrastructure.jsonl.one_pass import Decoder, Lines


class JSONLAggregateRecorder(AggregateRecorder):
    """Events of conversations, each in its own log."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def insert_events(  # noqa: D102 - the contract is the library's
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        self.store.insert(stored_events, kwargs.get("tracking"))
        return None

    def select_events(  # noqa: D102
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> Sequence[StoredEvent]:
        lines = self.select_lines(originator_id, gt=gt, lte=lte, desc=desc, limit=limit)
        return [StoredEvent(originator_id, line.version, line.topic, line.state) for line in lines]

    def select_lines(
        self,
        originator_id: UUID | str,
        *,
        gt: int | None = None,
        lte: int | None = None,
        desc: bool = False,
        limit: int | None = None,
    ) -> list[Line]:
        """Return what `select_events` does, as lines of the log."""
        conversation = as_uuid(originator_id)
        with self.store.lock:
            return self.store.log(conversation).read(gt=gt, lte=lte, desc=desc, limit=limit)

    def read_once(
        self, originator_id: UUID | str, decoder: Decoder, *, gt: int | None, lte: int | None
    ) -> Generator[Lines]:
        """Yield lines as `LogReader.read_once` does."""
        with self.store.lock:
            yield from self.store.log(as_uuid(originator_id)).read_once(decoder, gt=gt, lte=lte)

    def pieces(
        self, originator_id: UUID | str, places: Iterable[tuple[int, int]]
    ) -> Generator[bytes]:
        """Yield bytes of a log as `LogReader.pieces` does."""
        with self.store.lock:
            yield from self.store.log(as_uuid(originator_id)).pieces(places)

    def newest_lines(self, originator_id: UUID | str, topics: Sequence[str]) -> list[Line]:
        """Return the newest line of each of *topics*, in no order, without reading the log."""
        with self.store.lock:
            return self.store.log(as_uuid(originator_id)).newest_of(topics)


class JSONLApplicationRecorder(JSONLAggregateRecorder, ApplicationRecorder):
    """Events of conversations, and one order over all of them."""

    def insert_events(  # noqa: D102
        self, stored_events: Sequence[StoredEvent], **kwargs: Any
    ) -> Sequence[int] | None:
        return self.store.insert(stored_events, kwargs.get("tracking"), number=True)

    def select_notifications(  # noqa: D102
        self,
        start: int | None,
        limit: int,
        stop: int | None = None,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        first = 1 if start is None else start if inclusive_of_start else start + 1
        found: list[Notification] = []
        if limit < 1:
            return found
        with self.store.lock:
            for number, record, line in self.store.notifications.select(first, stop):
                if not topics or line.topic in topics:
                    of = UUID(bytes=record.conversation)
                    found.append(Notification(of, line.version, line.topic, line.state, number))
                    if len(found) == limit:
                        break
        return found

    def max_notification_id(self) -> int | None:  # noqa: D102
        with self.store.lock:
            return self.store.notifications.count() or None

    @property
    def epoch(self) -> str:
        """Changes whenever notification ids get a new meaning: a read model then starts over."""
        with self.store.lock:
            self.store.notifications.count()
            return self.store.notifications.file.epoch.hex()

    def versions_before(self, number: int) -> dict[UUID, int]:
        """Return the last version of each conversation among the notifications below *number*."""
        with self.store.lock:
            found = self.store.notifications.versions_before(number)
        return {UUID(bytes=key): version for key, version in found.items()}

    def subscribe(  # noqa: D102
        self, gt: int | None = None, topics: Sequence[str] = ()
    ) -> JSONLSubscription:
        return JSONLSubscription(self, gt=gt, topics=topics)

    def listen(self, event: Event) -> None:
        """Have *event* set whenever this process has saved something."""
        with self.store.lock:
            self.store.listeners.add(event)

    def unlisten(self, event: Event) -> None:
        """Leave *event* alone from now on."""
        with self.store.lock:
            self.store.listeners.discard(event)


class JSONLTrackingRecorder(TrackingRecorder):
    """How far readers of notifications have come."""

    def __init__(self, store: Store) -> None:
        self.store = store

    def insert_tracking(self, tracking: Tracking) -> None:  # noqa: D102
        with self.store.lock, self.store.tracking.advancing(tracking):
            pass

    def max_tracking_id(self, application_name: str) -> int | None:  # noqa: D102
        with self.store.lock:
            return self.store.tracking.position(application_name)


class JSONLProcessRecorder(JSONLTrackingRecorder, JSONLApplicationRecorder, ProcessRecorder):
    """Events, their order, and the position of the reader that caused them, saved as one."""
