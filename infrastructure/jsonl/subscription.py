"""Notifications as they come: at once from this process, soon from others."""

from __future__ import annotations

import contextlib
from time import monotonic
from typing import TYPE_CHECKING, Final, cast

from eventsourcing.persistence import ListenNotifySubscription

from infrastructure.errors import OrderRebuiltError

if TYPE_CHECKING:
    from collections.abc import Sequence

    from eventsourcing.persistence import Notification

    from infrastructure.jsonl.recorders import JSONLApplicationRecorder

_POLL_SECONDS: Final = 0.1
_CATCH_UP_SECONDS: Final = 1.0


class OneOrder:
    """Reads notifications as long as their ids keep the meaning that they had with the first.

    Attributes:
        epoch: Names that meaning.
    """

    def __init__(self, recorder: JSONLApplicationRecorder, gt: int | None = None) -> None:
        self._recorder = recorder
        self._has_read = bool(gt)
        self.epoch = recorder.epoch

    def select_notifications(
        self,
        start: int | None,
        limit: int,
        topics: Sequence[str] = (),
        *,
        inclusive_of_start: bool = True,
    ) -> Sequence[Notification]:
        """Return what the recorder does.

        Raises:
            OrderRebuiltError: The order was built again since notifications were read from it.
        """
        store = self._recorder.store
        with store.lock:
            found = self._recorder.select_notifications(
                start, limit, topics=topics, inclusive_of_start=inclusive_of_start
            )
            # Of what was just read. The recorder's own `epoch` looks at the file again: what came
            # between would be known, never given out, and no news any more.
            epoch = store.notifications.file.epoch.hex()
        if self._has_read and epoch != self.epoch:
            raise OrderRebuiltError("the order of all events was built again")
        self.epoch = epoch
        self._has_read = self._has_read or bool(found)
        return found


class JSONLSubscription(ListenNotifySubscription["JSONLApplicationRecorder"]):
    """Wakes for what this process saves; looks at the file's size for what others save.

    Every second it also looks for events that a writer saved but did not live to number. If the
    order is built again, who iterates gets an `OrderRebuiltError`.
    """

    def __init__(
        self,
        recorder: JSONLApplicationRecorder,
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        self._order = OneOrder(recorder, gt)
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        recorder.listen(self._has_been_notified)

    @property
    def epoch(self) -> str:
        """The epoch of the ids that are given out."""
        return self._order.epoch

    def stop(self) -> None:
        """Stop the subscription; may be called at any time, from any thread."""
        super().stop()
        self._recorder.unlisten(self._has_been_notified)

    def _pull(self) -> None:
        recorder, self._recorder = self._recorder, cast("JSONLApplicationRecorder", self._order)
        try:
            super()._pull()
        finally:
            self._recorder = recorder

    def _loop_on_pull(self) -> None:
        try:
            self._pull()
            compared = monotonic()
            while not self._has_been_stopped:
                notified = self._has_been_notified.wait(_POLL_SECONDS)
                catch_up = monotonic() - compared > _CATCH_UP_SECONDS
                if catch_up:
                    compared = monotonic()
                if notified or self._recorder.store.has_news(catch_up=catch_up):
                    self._pull()
        except BaseException as error:  # noqa: BLE001 - raised again where the caller iterates
            if self._thread_error is None:
                self._thread_error = error
            with contextlib.suppress(Exception):
                self.stop()
