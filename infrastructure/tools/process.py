"""Running a shell command that can neither hang the turn nor outlive its abort.

A command gets a session of its own: it has no terminal to ask at, and there is one name under
which all of it can be killed, also what made a group of its own (`timeout`, job control). What
holds its output open after it has ended is not waited for (cases P1-P4, Z13).
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import shutil
import signal
import subprocess
import sys
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, TYPE_CHECKING, Final

from domain.tool_use import ToolOutput
from infrastructure.tools.output import Capture, StoppedError, ToolContext
from infrastructure.withheld import for_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Mapping, Sequence

KILLED: Final = "the command and its children were killed"
_SIGNALS: Final = {number.value: number.name for number in signal.Signals}
_SHELL_ADDS_TO_SIGNALS: Final = 128

_NEVER_ASK: Final = {
    "EDITOR": "true",
    "VISUAL": "true",
    "GIT_EDITOR": "true",
    "GIT_SEQUENCE_EDITOR": "true",
    "GIT_TERMINAL_PROMPT": "0",
    "PAGER": "cat",
    "GIT_PAGER": "cat",
    "MANPAGER": "cat",
    "SSH_ASKPASS_REQUIRE": "never",
    "TERM": "dumb",
}
_CHUNK: Final = 64 * 1024
_LARGEST_PIPE: Final = 1024 * 1024

# Seconds.
_GRACE: Final = 2.0
_REAP: Final = 1.0
_DRAIN: Final = 0.2
_LONGEST_NAP: Final = 0.02


@dataclass(frozen=True, slots=True)
class Ended:
    """How a command ended.

    Attributes:
        output: stdout and stderr as they came, capped.
        status: The exit code, or minus the signal; None if even SIGKILL did not end it in time.
        timed_out: Whether it was stopped because its time was over.
        left_running: The process group if something in it still runs, 0 if something outside of
            it still holds the output, None if all of it has ended.
    """

    output: str
    status: int | None
    timed_out: bool
    left_running: int | None


def environment() -> dict[str, str]:
    """Return what a command's environment is: ours, without our secrets and without questions."""
    return for_tools(os.environ) | _NEVER_ASK


@dataclass(frozen=True, slots=True, kw_only=True)
class Given:
    """What a command gets besides its words: *stdin*, *variables*, and *descriptors* it keeps open.

    The last are for locks: what a killed program has started still holds them.
    """

    stdin: bytes = b""
    variables: Mapping[str, str] = field(default_factory=dict)
    descriptors: Sequence[int] = ()


NOTHING: Final = Given()


async def run_shell(
    command: str, *, seconds: float, context: ToolContext, given: Given = NOTHING
) -> Ended:
    """Run *command* in a shell and return when the shell has ended.

    Children that it leaves in the background go on running. On a timeout, and when the awaiting
    task is cancelled, every group of the session is killed: SIGTERM, two seconds, SIGKILL. Only
    what gave itself a new session (`setsid`) is out of reach.

    Raises:
        StoppedError: The task was cancelled, and nothing of the command runs any more.
        OSError: The shell could not be started.
    """
    with Capture(context, is_terminal=True) as capture:

        def heard(text: str) -> None:
            if text:
                context.on_output(text)

        child = _Child(command, context.cwd, lambda data: heard(capture.feed(data)), given)
        try:
            timed_out = not await child.ended(within=seconds)
            if timed_out:
                await child.stop()
            await child.drain()
            heard(capture.rest())
            left_running = None if timed_out else await child.left_running()
        except BaseException as error:
            await child.stop()
            if isinstance(error, asyncio.CancelledError):
                await child.drain()
                heard(capture.rest())
                capture.close()
                printed = capture.text().removesuffix("\n")
                output = "\n".join(filter(None, [printed, f"interrupted; {KILLED}"]))
                raise StoppedError(ToolOutput(output, is_error=True)) from None
            raise
        finally:
            child.close()
    return Ended(capture.text(), child.shell.returncode, timed_out, left_running)


class _Child:
    """A shell, the groups of its session and our end of the pipe that they write to."""

    def __init__(
        self, command: str, cwd: Path, feed: Callable[[bytes], None], given: Given
    ) -> None:
        self._feed = feed
        self._loop = asyncio.get_running_loop()
        with _readable(given.stdin) as stdin:
            self.shell = subprocess.Popen(  # noqa: S603 - running commands is what this is for
                [shutil.which("bash") or "/bin/sh", b"-c", command.encode()],
                cwd=cwd,
                env={**environment(), **given.variables},
                stdin=stdin,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                bufsize=0,
                start_new_session=True,
                pass_fds=given.descriptors,
            )
        assert self.shell.stdout is not None
        self._pipe = self.shell.stdout
        os.set_blocking(self._pipe.fileno(), False)
        self._groups = {self.shell.pid}
        self._is_open = True
        self._loop.add_reader(self._pipe, self._read)

    async def ended(self, *, within: float) -> bool:
        """Wait for the shell alone, not for those who inherited its pipe."""
        return await self._wait(lambda: self.shell.poll() is not None, within)

    async def stop(self) -> None:
        """End the session; a second cancellation only makes it quicker."""
        if self._is_gone():
            return
        gone = False
        self._signal(signal.SIGTERM)
        self._signal(signal.SIGCONT)
        try:
            gone = await self._wait(self._is_gone, _GRACE)
        finally:
            if not gone:
                self._signal(signal.SIGKILL)
        if not gone:
            await self._wait(self._is_gone, _REAP)

    async def drain(self) -> None:
        """Read what was written before the end, and what a last `tee` has to say within a blink."""
        left = _LARGEST_PIPE
        while left > 0 and (number := self._read()):
            left -= number
        await self._wait(lambda: not self._is_open, _DRAIN)

    async def left_running(self) -> int | None:
        """Tell what the ended shell has left behind, as `Ended.left_running` does.

        Who still writes gets a reader of its own, or SIGPIPE would end a server at its next line.
        """
        if self._is_open:
            self._hand_over()
            return 0 if self._is_gone() else self.shell.pid
        return None if await self._wait(self._is_gone, _DRAIN) else self.shell.pid

    def _hand_over(self) -> None:
        """Leave the pipe to a `cat` that ends when the last writer does."""
        self._stop_reading()
        os.set_blocking(self._pipe.fileno(), True)
        with contextlib.suppress(OSError, subprocess.SubprocessError):
            subprocess.run(
                ["/bin/sh", "-c", "exec 3<&0; cat <&3 >/dev/null 2>&1 &"],
                stdin=self._pipe,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                env=environment(),
                cwd="/",
                start_new_session=True,
                timeout=_REAP,
                check=False,
            )

    def close(self) -> None:
        """Let go of the pipe and, if need be, wait a moment for a killed shell."""
        self._stop_reading()
        self._pipe.close()
        with contextlib.suppress(subprocess.TimeoutExpired):
            self.shell.wait(_REAP)

    async def _wait(self, is_true: Callable[[], bool], seconds: float) -> bool:
        """Ask until *is_true* or the time is over; polling needs no thread and no child watcher."""
        deadline = self._loop.time() + seconds
        nap = 0.001
        while not is_true():
            left = deadline - self._loop.time()
            if left <= 0:
                return False
            await asyncio.sleep(min(nap, left))
            nap = min(2 * nap, _LONGEST_NAP)
        return True

    def _read(self) -> int:
        """Read one chunk and return its size: 0 at the end and when there is nothing now."""
        if not self._is_open:
            return 0
        data = self._pipe.read(_CHUNK)
        if data:
            self._feed(data)
        elif data is not None:
            self._stop_reading()
        return len(data or b"")

    def _stop_reading(self) -> None:
        if self._is_open:
            self._is_open = False
            self._loop.remove_reader(self._pipe)

    def _signal(self, number: int) -> None:
        self._groups |= _groups_of(self.shell.pid)
        for group in self._groups:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.killpg(group, number)

    def _is_gone(self) -> bool:
        """Tell whether nobody is left in the groups we know. Asking also reaps the shell."""
        return self.shell.poll() is not None and not any(map(_is_alive, self._groups))


@contextlib.contextmanager
def _readable(data: bytes) -> Iterator[int | IO[bytes]]:
    """Hand out *data* to read, in a file: nobody has to write on for one who reads slowly."""
    if not data:
        yield subprocess.DEVNULL
        return
    with tempfile.TemporaryFile() as file:
        file.write(data)
        file.seek(0)
        yield file


def notes(ended: Ended, seconds: float) -> list[str]:
    """Return what is worth saying of the end of a command that had so many *seconds*, by lines."""
    said = []
    if ended.timed_out:
        said.append(f"timed out after {seconds:g} s; {KILLED}")
    elif ended.status:
        said.append(_status(ended.status))
    if ended.left_running:
        said.append(
            f"[still running in the background: process group {ended.left_running}. "
            f"To stop it: kill -- -{ended.left_running}]",
        )
    elif ended.left_running == 0:
        said.append("[a process in a session of its own is still running in the background]")
    return said


def _status(status: int) -> str:
    if status < 0:
        return f"killed by {_SIGNALS.get(-status, f'signal {-status}')}"
    named = _SIGNALS.get(status - _SHELL_ADDS_TO_SIGNALS)
    return f"exit code {status} ({named})" if named else f"exit code {status}"


def _is_alive(group: int) -> bool:
    try:
        os.killpg(group, 0)
    except (ProcessLookupError, PermissionError):
        # macOS says "not permitted" where only zombies are left.
        return False
    # Linux counts zombies, and a container without an init never reaps orphans.
    return any(of == group and not state.startswith(b"Z") for _, of, state in _processes())


def _groups_of(session: int) -> set[int]:
    groups = set()
    for number, group, _ in _processes():
        with contextlib.suppress(ProcessLookupError, PermissionError):
            if os.getsid(number) == session:
                groups.add(group)
    return groups - {0, 1}  # to killpg they mean "ourselves" and "everybody"


def _processes() -> Iterator[tuple[int, int, bytes]]:
    """Yield number, group and state of this machine's processes: of /proc, elsewhere of `ps`."""
    if sys.platform == "linux":
        for folder in Path("/proc").glob("[0-9]*"):
            with contextlib.suppress(OSError):
                # "number (name) state parent group …"; the name may contain anything.
                state, _, group = (folder / "stat").read_bytes().rpartition(b")")[2].split()[:3]
                yield int(folder.name), int(group), state
        return
    listed = b""
    with contextlib.suppress(OSError, subprocess.SubprocessError):
        command = ["/bin/ps", "-A", "-o", "pid=,pgid=,stat="]
        listed = subprocess.check_output(command, timeout=_REAP)  # noqa: S603 - a constant
    for line in listed.splitlines():
        number, group, state = line.split()
        yield int(number), int(group), state
