"""Starts of the program by `tests.app.fork_server`: a twentieth of what an interpreter costs.

A process that was started so is a child of this one like any other, with a `Popen` or a
`pexpect.spawn` of its own. CI starts cold (`tests.levels`); so does, always, what a test starts with
variables that the interpreter reads itself: a server for each of them costs what it saves.
"""

import atexit
import ctypes
import os
import pickle
import re
import socket
import subprocess
import sys
from contextlib import ExitStack
from functools import cache
from pathlib import Path
from threading import Lock

import pexpect
import ptyprocess

from tests.levels import at_level

SERVER = Path(__file__).with_name("fork_server.py")
FOR_THE_INTERPRETER = ("PYTHON", "LANG", "LC_")
_SET_CHILD_SUBREAPER = 36


def is_possible(environment):
    """Whether a start in *environment* may be warm."""
    return (
        sys.platform == "linux"
        and at_level(quick=True, whole=False)
        and _of_interpreter(environment) == _of_interpreter(os.environ)
    )


def _of_interpreter(environment):
    """The variables that are read before the first line of a program."""
    return {
        name: value
        for name, value in environment.items()
        if name.startswith(FOR_THE_INTERPRETER) and name not in NO_PROGRAM_HAS
    }


NO_PROGRAM_HAS = ("PYTHONUNBUFFERED", "PYTHONDONTWRITEBYTECODE")
"""What a machine may have set for us, and no program of ours gets.

The first hides what is left in a buffer; and to compile the SDK takes seconds: once is enough.
"""


class ForkServer:
    """The fork server of this process. It ends when this process ends."""

    def __init__(self):
        self._ours, theirs = socket.socketpair()
        self._turn = Lock()
        with theirs:
            environment = {k: v for k, v in os.environ.items() if k not in NO_PROGRAM_HAS}
            self._process = subprocess.Popen(
                [sys.executable, str(SERVER), str(theirs.fileno())],
                pass_fds=[theirs.fileno()],
                stdin=subprocess.DEVNULL,
                cwd=SERVER.parents[2],
                env=environment,
            )
        self._prctl = ctypes.CDLL(None, use_errno=True).prctl

    def start(self, arguments, cwd, environment, streams, *, in_terminal=False, most_bytes=None):
        """Start the program; return its process id. *streams*: of 0, 1, 2; None is a closed one."""
        are_open = [number for number, fd in streams.items() if fd is not None]
        fds = [streams[number] for number in are_open]
        request = pickle.dumps(
            {
                "arguments": [os.fsencode(argument) for argument in arguments],
                "cwd": os.fsencode(cwd),
                "environment": {os.fsencode(k): os.fsencode(v) for k, v in environment.items()},
                "are_open": are_open,
                "in_terminal": in_terminal,
                "most_bytes": most_bytes,
            }
        )
        with self._turn:
            self._prctl(_SET_CHILD_SUBREAPER, 1, 0, 0, 0)
            try:
                socket.send_fds(self._ours, [len(request).to_bytes(8)], fds)
                self._ours.sendall(request)
                answer = self._ours.recv(9, socket.MSG_WAITALL)
            finally:
                self._prctl(_SET_CHILD_SUBREAPER, 0, 0, 0, 0)
        assert len(answer) == 9, "the fork server has died"
        return int.from_bytes(answer[:8])

    def stop(self):
        self._ours.close()
        self._process.wait()


@cache
def server():
    started = ForkServer()
    atexit.register(started.stop)
    return started


class Popen(subprocess.Popen):
    """A `subprocess.Popen` of ``[python, MAIN, *arguments]``, started warm.

    Args:
        redirected: Streams to close, or to open at a device, as a shell is told: ``<&- >/dev/full``.
        most_bytes: No file may grow beyond that.
    """

    def __init__(self, *args, redirected="", most_bytes=None, **more):
        self._redirected, self._most_bytes = redirected, most_bytes
        super().__init__(*args, **more)

    def _execute_child(
        self, args, _executable, _preexec_fn, _close_fds, _pass_fds, cwd, env, *rest
    ):  # fmt: skip
        ends = rest[3:9]
        p2cread, _, _, c2pwrite, _, errwrite = ends
        given = enumerate((p2cread, c2pwrite, errwrite))
        streams = {number: number if end == -1 else end for number, end in given}
        try:
            with ExitStack() as stack:
                for number, path in redirections(self._redirected):
                    streams[number] = path and os.open(path, os.O_RDWR)
                    if path:
                        stack.callback(os.close, streams[number])
                self.pid = server().start(args[2:], cwd, env, streams, most_bytes=self._most_bytes)
            self._child_created = True
        finally:
            self._close_pipe_fds(*ends)


def redirections(text):
    """Yield of each redirection in a shell's words the number, and the path; None closes it."""
    for word in text.split():
        number, arrow, target = re.fullmatch(r"(\d?)([<>])(&-|/dev/\w+)", word).groups()
        yield int(number or arrow == ">"), None if target == "&-" else target


class Terminal(pexpect.spawn):
    """A `pexpect.spawn` of ``python MAIN arguments``, started warm."""

    def _spawnpty(self, args, *, cwd, env, dimensions, echo=True, preexec_fn=None):
        ours, theirs = os.openpty()
        try:
            process = ptyprocess.PtyProcess(0, ours)
            process.setwinsize(*dimensions)
            streams = dict.fromkeys(range(3), theirs)
            process.pid = server().start(args[2:], cwd, env, streams, in_terminal=True)
        finally:
            os.close(theirs)
        return process
