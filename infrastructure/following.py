"""The events of a store in the order of its notification log: each once, from any position.

A position is a notification id. Over logs the order is a derived file that may be built again, and
then ids have another meaning: the events that were seen are known by conversation and version, so
the new order is read from its beginning, and what was seen is left out.
"""

from __future__ import annotations

from contextlib import contextmanager
from threading import Event
from typing import TYPE_CHECKING, Final

from infrastructure.errors import OrderRebuiltError
from infrastructure.jsonl.recorders import JSONLApplicationRecorder
from infrastructure.jsonl.store import as_uuid
from infrastructure.jsonl.subscription import OneOrder

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator
    from uuid import UUID

    from eventsourcing.persistence import ApplicationRecorder, Notification, Subscription

_PAGE: Final = 500
_SECONDS_BETWEEN_LOOKS: Final = 0.2


class Place:
    """How far somebody has come in an order.

    Attributes:
        position: The last position that was seen.
        epoch: What names the order that it is a position of; nothing, where there is only one.
        versions: The last version that was seen of each conversation, where the order may be built
            again.
    """

    def __init__(self, position: int, epoch: str, versions: dict[UUID, int]) -> None:
        self.position = position
        self.epoch = epoch
        self.versions = versions


def place_before(recorder: ApplicationRecorder, position: int) -> Place:
    """Return the place of one who has seen all that comes before *position*."""
    if not isinstance(recorder, JSONLApplicationRecorder):
        return Place(position - 1, "", {})
    while True:
        epoch = recorder.epoch
        versions = recorder.versions_before(position)
        if recorder.epoch == epoch:
            return Place(position - 1, epoch, versions)


class Following:
    """Yields the notifications behind a *place*, which goes along.

    With *to_the_end* it ends where there are none yet; else it waits for them until `stop`: by the
    library's subscriptions, or by looking again where a recorder has none (SQLite's).
    """

    def __init__(
        self, recorder: ApplicationRecorder, place: Place, *, to_the_end: bool = False
    ) -> None:
        self.place = place
        self._recorder = recorder
        self._to_the_end = to_the_end
        self._subscription: Subscription[ApplicationRecorder] | None = None
        self._is_stopped = Event()

    def stop(self) -> None:
        """Let the iteration end; from any thread, at any time."""
        self._is_stopped.set()
        if self._subscription is not None:
            self._subscription.stop()

    def __iter__(self) -> Iterator[Notification]:
        while not self._is_stopped.is_set():
            try:
                yield from self._in_one_order()
            except OrderRebuiltError:
                self.place.position = 0
            else:
                return

    def _in_one_order(self) -> Iterator[Notification]:
        place = self.place
        with self._source() as source:
            if place.position and _epoch_of(source) != place.epoch:
                raise OrderRebuiltError("the place is one of another order")
            for notice in source:
                place.position, place.epoch = notice.id, _epoch_of(source)
                if not place.epoch or self._is_new(notice):
                    yield notice

    @contextmanager
    def _source(self) -> Iterator[Iterable[Notification]]:
        subscription = None if self._to_the_end else self._subscribed()
        if subscription is None:
            yield _Pages(self._recorder, self.place.position, self._is_over)
            return
        with subscription as self._subscription:
            if self._is_stopped.is_set():
                subscription.stop()
            yield subscription

    def _subscribed(self) -> Subscription[ApplicationRecorder] | None:
        try:
            return self._recorder.subscribe(gt=self.place.position)
        except NotImplementedError:
            return None

    def _is_over(self) -> bool:
        """Whether nothing is waited for, or not any more; else it has been waited a moment."""
        return self._to_the_end or self._is_stopped.wait(_SECONDS_BETWEEN_LOOKS)

    def _is_new(self, notice: Notification) -> bool:
        """Whether *notice* was not seen yet; from here on it was."""
        versions, id_ = self.place.versions, as_uuid(notice.originator_id)
        if notice.originator_version <= versions.get(id_, 0):
            return False
        versions[id_] = notice.originator_version
        return True


class _Pages:
    """The notifications behind a position, read by pages, until *is_over* where there is none."""

    def __init__(
        self, recorder: ApplicationRecorder, position: int, is_over: Callable[[], bool]
    ) -> None:
        self._position = position
        self._is_over = is_over
        self._order: OneOrder | ApplicationRecorder = recorder
        if isinstance(recorder, JSONLApplicationRecorder):
            self._order = OneOrder(recorder, position)

    @property
    def epoch(self) -> str:
        """The epoch of the ids that are given out."""
        return _epoch_of(self._order)

    def __iter__(self) -> Iterator[Notification]:
        while True:
            found = self._order.select_notifications(
                self._position, _PAGE, inclusive_of_start=False
            )
            yield from found
            if found:
                self._position = found[-1].id
            elif self._is_over():
                return


def _epoch_of(source: object) -> str:
    return getattr(source, "epoch", "")
