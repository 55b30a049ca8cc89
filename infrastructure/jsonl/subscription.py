"""Notifications as they come: at once from this process, soon from others."""

from __future__ import annotations

import contextlib
from time import monotonic
from typing import TYPE_CHECKING, Final

from eventsourcing.persistence import ListenNotifySubscription

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infrastructure.jsonl.recorders import JSONLApplicationRecorder

_POLL_SECONDS: Final = 0.1
_CATCH_UP_SECONDS: Final = 1.0


class JSONLSubscription(ListenNotifySubscription["JSONLApplicationRecorder"]):
    """Wakes for what this process saves; looks at the file's size for what others save.

    Every second it also looks for events that a writer saved but did not live to number.
    """

    def __init__(
        self,
        recorder: JSONLApplicationRecorder,
        gt: int | None = None,
        topics: Sequence[str] = (),
    ) -> None:
        super().__init__(recorder=recorder, gt=gt, topics=topics)
        recorder.listen(self._has_been_notified)

    def stop(self) -> None:
        """Stop the subscription; may be called at any time, from any thread."""
        super().stop()
        self._recorder.unlisten(self._has_been_notified)

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
