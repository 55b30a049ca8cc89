"""Runs one hook: its events in their order, each at least once, with a position that is kept.

The position is recorded after a command has ended well: whatever is killed in between, the event
comes again, under the same id. Two locks see to it that one command of a hook runs at a time. The
first is the runner's. The second is its command's, too, and outlives a runner that is killed: the
next one waits for it, as long as the command may take.
"""

from __future__ import annotations

import asyncio
import contextlib
import sys
from datetime import UTC, datetime
from threading import Event as Flag
from typing import TYPE_CHECKING, Final, Literal, TypeAlias

import msgspec

from app.explanations import name_of
from app.hooks.command import HookCommand
from app.hooks.outputs import HookRan
from app.hooks.told import Told
from infrastructure.following import Following, Place, place_before
from infrastructure.hook_positions import Failure, HookPositions
from infrastructure.jsonl import disk
from infrastructure.safe_files import reason_of

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator
    from pathlib import Path
    from uuid import UUID

    from app.application import Conversations
    from app.hook_settings import Hook
    from app.hooks.outputs import HookEvent

State: TypeAlias = Literal["done", "parked"]

PAUSES: Final = (1.0, 2.0, 4.0, 8.0)
"""Seconds before each further attempt; after the last one a hook is parked."""
_BETWEEN_LOOKS: Final = 1.0
_MOST_UNRECORDED: Final = 500
"""Events that are no concern of a hook's, until its position is recorded."""
_LONGEST_ERROR: Final = 2_000


class HookRunner:
    """Runs *hook* over the events of *conversations*; its files are in *folder*.

    Each command that has run is told to *report*. It is started where commands of this program
    (``leftfold show``) look into the same *store*.
    """

    def __init__(
        self,
        hook: Hook,
        conversations: Conversations,
        folder: Path,
        store: Path,
        report: Callable[[HookRan], object] = lambda _: None,
    ) -> None:
        self.hook = hook
        self.folder = folder
        self.positions = HookPositions.of(folder / "positions.sqlite")
        self._conversations = conversations
        self.command = HookCommand(hook, folder, store)
        self._report = report
        self._told = Told(hook, conversations)
        self._following: Following | None = None
        self._running: tuple[asyncio.AbstractEventLoop, asyncio.Task[str]] | None = None
        self._is_stopped, self._ends = Flag(), Flag()

    # -- from outside, in any thread -----------------------------------------------------------

    def stop(self) -> None:
        """Stop at once: a command that runs is killed, and its event comes again."""
        self._is_stopped.set()
        self.finish()
        if self._running is not None:
            loop, task = self._running
            with contextlib.suppress(RuntimeError):  # it has ended
                loop.call_soon_threadsafe(task.cancel)

    def finish(self) -> None:
        """Go to the end of the order, and wait for nothing there."""
        self._ends.set()
        if self._following is not None:
            self._following.stop()

    def register(self) -> None:
        """Begin at the end of the order, if this hook is new."""
        if self.positions.place(self.hook.name) is None:
            self.begin_at(sys.maxsize)

    def begin_at(self, position: int) -> bool:
        """Go on from *position*, forwards or back; False if another program runs this hook."""
        with self._turn() as is_ours:
            if is_ours:
                end = self._conversations.recorder.max_notification_id() or 0
                place = place_before(self._conversations.recorder, min(position, end + 1))
                self.positions.begin(self.hook.name, place)
            return is_ours

    # -- running -------------------------------------------------------------------------------

    def work(self) -> State:
        """Run until `finish` or `stop`; return how it stands then. An error is written down.

        While another program runs this hook it is waited for: it may end before the end is reached.
        """
        try:
            return self._worked()
        except Exception as error:
            self.command.write_down(name_of(error))
            raise

    def _worked(self) -> State:
        while True:
            is_last, state = self._ends.is_set(), self._in_turn()
            if self._is_stopped.is_set():
                return "done"
            if is_last and state == "parked":
                return "parked"
            if is_last and (state == "done" or not self.behind()):
                return "done"
            if state != "done":
                self._is_stopped.wait(_BETWEEN_LOOKS)

    def _in_turn(self) -> State | Literal["busy"]:
        waits = not self._ends.is_set()
        with self._turn() as is_ours:
            return self._to_the_end(waits=waits) if is_ours else "busy"

    def behind(self) -> int:
        """Return how many events of the order this hook has not seen."""
        place = self.positions.place(self.hook.name)
        end = self._conversations.recorder.max_notification_id() or 0
        if place is None:
            return 0
        if not place.epoch:
            return end - place.position
        now = place_before(self._conversations.recorder, end + 1).versions
        seen = place.versions
        return sum(max(version - seen.get(id_, 0), 0) for id_, version in now.items())

    def is_running(self) -> bool:
        """Whether a program, this one or another, runs this hook now."""
        with self._turn() as is_ours:
            return not is_ours

    def _to_the_end(self, *, waits: bool) -> State:
        name = self.hook.name
        failure = self.positions.failure(name)
        if failure is not None and failure.is_parked:
            return "parked"
        place = self.positions.place(name) or Place(0, "", {})
        following = self._following = Following(
            self._conversations.recorder, place, to_the_end=not waits
        )
        if waits and self._ends.is_set():
            return "done"
        unrecorded: dict[UUID, int] = {}
        at = place.position, place.epoch
        for notice in following:
            event = self._conversations.mapper.to_domain_event(notice)
            told = self._told.of(event, notice.id)  # type: ignore[arg-type]
            if told is not None:
                if unrecorded:
                    self.positions.advance(name, *at, unrecorded)
                    unrecorded = {}
                if not self._delivered(told):
                    return "done" if self._is_stopped.is_set() else "parked"
            unrecorded[event.originator_id] = event.originator_version
            at = notice.id, place.epoch
            is_last = notice.id >= (self._conversations.recorder.max_notification_id() or 0)
            if told is not None or is_last or len(unrecorded) >= _MOST_UNRECORDED:
                self.positions.advance(name, *at, unrecorded)
                unrecorded = {}
            if self._is_stopped.is_set():
                break
        return "done"

    def _delivered(self, told: HookEvent) -> bool:
        """Run the command for an event until it ends well; False if it is parked, or stopped."""
        failure = self.positions.failure(self.hook.name)
        attempts = failure.attempts if failure and failure.event_id == told.event_id else 0
        while not self._is_stopped.is_set():
            attempts += 1
            told = msgspec.structs.replace(told, attempt=attempts)
            problem = self._problem(told)
            if problem is None:
                return False
            if not problem:
                self._report(_ran(told, "done"))
                return True
            is_parked = attempts > len(PAUSES)
            now = datetime.now(UTC)
            failure = Failure(told.event_id, attempts, problem[-_LONGEST_ERROR:], now, is_parked)
            self.positions.fail(self.hook.name, failure)
            self._report(_ran(told, "parked" if is_parked else "failed", failure.error))
            if is_parked:
                return False
            self._is_stopped.wait(PAUSES[attempts - 1])
        return False

    def _problem(self, told: HookEvent) -> str | None:
        """Run the command; return what went wrong, "" if nothing did, None if it was stopped."""
        try:
            return asyncio.run(self._run(told))
        except asyncio.CancelledError:
            return None
        except OSError as error:
            return reason_of(error)
        finally:
            self._running = None

    async def _run(self, told: HookEvent) -> str:
        task = asyncio.current_task()
        assert task is not None
        self._running = (asyncio.get_running_loop(), task)
        if self._is_stopped.is_set():
            raise asyncio.CancelledError
        return await self.command.run(told, self._told.cwd(told.id))

    # -- locks ---------------------------------------------------------------------------------

    @contextlib.contextmanager
    def _turn(self) -> Iterator[bool]:
        """Hold the lock of the one runner that this hook has; False if another has it."""
        fd = disk.open_or_create(self.folder / f"{self.hook.name}.lock")
        try:
            try:
                is_ours = disk.try_lock(fd)
            except disk.LocksUnsupportedError:
                is_ours = True
            yield is_ours
        finally:
            disk.close(fd)


def _ran(
    told: HookEvent, outcome: Literal["done", "failed", "parked"], message: str | None = None
) -> HookRan:
    return HookRan(
        told.hook, told.event_id, told.position, told.topic, told.attempt, outcome, message
    )
