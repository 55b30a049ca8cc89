"""The command of a hook: what it gets, how it is ended, where what it prints is kept."""

from __future__ import annotations

import contextlib
import logging
from datetime import UTC, datetime
from logging.handlers import RotatingFileHandler
from typing import TYPE_CHECKING, Final

from app.outputs import encoded
from infrastructure.errors import LockTimeoutError
from infrastructure.jsonl import disk, locks
from infrastructure.tools.output import ToolContext
from infrastructure.tools.process import Given, notes, run_shell

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from app.hook_settings import Hook
    from app.hooks.outputs import HookEvent

LOG_BYTES: Final = 1024 * 1024


class HookCommand:
    """Runs the command of *hook*, whose files are in *folder*.

    Commands of this program in it (``leftfold show``) look into the same *store*.
    """

    def __init__(self, hook: Hook, folder: Path, store: Path) -> None:
        self._hook = hook
        self._folder = folder
        self._store = store
        self.log_path = folder / f"{hook.name}.log"

    async def run(self, told: HookEvent, cwd: Path) -> str:
        """Run it for an event; return what went wrong, "" if nothing did.

        Raises:
            StoppedError: The task was cancelled, and nothing of the command runs any more.
            OSError: It could not be started.
        """
        hook, outputs = self._hook, self._folder / "outputs"
        for old in outputs.glob(f"{hook.name}.txt"):
            old.unlink()
        with self._lock() as descriptors:
            given = Given(
                stdin=encoded(told) + b"\n",
                variables=self._variables(told),
                descriptors=descriptors,
            )
            ended = await run_shell(
                hook.command,
                seconds=hook.timeout,
                context=ToolContext(cwd, outputs, hook.name),
                given=given,
            )
        said = "\n".join(notes(ended, hook.timeout))
        head = f"{told.event_id} {told.topic} attempt {told.attempt}"
        self.write_down(*filter(None, [head, ended.output.rstrip("\n"), said]))
        if ended.status == 0 and not ended.timed_out:
            return ""
        return "\n".join(filter(None, [ended.output.strip(), said]))

    def _variables(self, told: HookEvent) -> dict[str, str]:
        return {
            "LEFTFOLD_HOOK": told.hook,
            "LEFTFOLD_EVENT_ID": told.event_id,
            "LEFTFOLD_CONVERSATION": str(told.id),
            "LEFTFOLD_VERSION": str(told.version),
            "LEFTFOLD_TOPIC": told.topic,
            "LEFTFOLD_ATTEMPT": str(told.attempt),
            "LEFTFOLD_STORE": str(self._store),
        }

    def write_down(self, *lines: str) -> None:
        """Append *lines* to the log of the hook, which keeps the last of them."""
        with contextlib.closing(
            RotatingFileHandler(self.log_path, maxBytes=LOG_BYTES, backupCount=1, encoding="utf-8")
        ) as file:
            when = datetime.now(UTC).isoformat(timespec="seconds")
            text = f"{when} " + "\n".join(lines)
            file.emit(logging.LogRecord("", 0, "", 0, text, None, None))

    @contextlib.contextmanager
    def _lock(self) -> Iterator[tuple[int, ...]]:
        """Hold the lock that a command keeps while it runs, also one whose runner was killed.

        What outlives its time is not waited for any longer.
        """
        path = self._folder / f"{self._hook.name}.running"
        fd = disk.open_or_create(path)
        try:
            with contextlib.suppress(LockTimeoutError):
                locks.acquire(fd, path, patience=self._hook.timeout)
            yield (fd,)
        finally:
            with contextlib.suppress(OSError):
                disk.unlock(fd)  # what a command has left in the background holds it as well
            disk.close(fd)
