"""A process that has imported the program once, and forks where the program would be started.

    python tests/app/fork_server.py FD

Each request that comes over the socket FD (see `tests.app.warm`) is a start: its own arguments,
environment, directory, standard streams and, in a terminal, its own session. The new process runs
``app/main.py`` from its first line. What it has not of its own is only what was imported, and what
the kernel keeps of the start: ``/proc/PID/environ`` and ``cmdline``.
"""

import fcntl
import gc
import importlib
import io
import os
import pickle
import pkgutil
import resource
import runpy
import socket
import sys
import termios
import time
from pathlib import Path

MAIN = Path(__file__).parents[2] / "app" / "main.py"
OURS = ("app", "domain", "infrastructure")
WHEN_NEEDED = (
    "anthropic", "anyio._backends._asyncio", "concurrent.futures.thread", "encodings.idna",
    "encodings.utf_8_sig", "h11", "httpcore2", "httpcore2._async", "httpcore2._backends.anyio",
    "truststore",
)  # fmt: skip
"""What libraries import at the first request; all of ours is imported first."""


def main():
    import_everything()
    gc.collect()
    gc.freeze()  # a fork shares these pages as long as no collection looks at them
    with socket.socket(fileno=int(sys.argv[1])) as control:
        start = next_start(control)
    if start is not None:
        become(*start)
        runpy.run_path(str(MAIN), run_name="__main__")


def import_everything():
    for name in OURS:
        package = importlib.import_module(name)
        for module in pkgutil.walk_packages(package.__path__, f"{name}."):
            if module.name != "app.main":
                importlib.import_module(module.name)
    for name in WHEN_NEEDED:
        importlib.import_module(name)


def next_start(control):
    """Answer requests with the ids of new processes; in such a one, return the request.

    The process between the two ends at once, so that the new one becomes a child of whoever takes
    orphans in: the test, which can then wait for it like for any child.
    """
    while data := control.recv(8, socket.MSG_PEEK):
        data, fds, _, _ = socket.recv_fds(control, 8, 3)
        request = read(control, int.from_bytes(data))
        between = os.fork()
        if between == 0:
            pid = os.fork()
            if pid == 0:
                return pickle.loads(request), fds
            control.sendall(pid.to_bytes(8))
            os._exit(0)
        for fd in fds:
            os.close(fd)
        os.waitpid(between, 0)
        control.sendall(b"!")
    return None


def read(control, size):
    """Return the next *size* bytes."""
    data = b""
    while len(data) < size and (more := control.recv(size - len(data))):
        data += more
    return data


def become(request, fds):
    """Be what a fresh interpreter is before the first line of the program."""
    os.chdir(request["cwd"])
    os.environb.clear()
    os.environb.update(request["environment"])
    time.tzset()
    if request["in_terminal"]:
        os.setsid()
        fcntl.ioctl(fds[0], termios.TIOCSCTTY, 0)
    for number in range(3):
        if number in request["are_open"]:
            os.dup2(fds[request["are_open"].index(number)], number)
        else:
            os.close(number)
    os.closerange(3, max(fds, default=2) + 1)
    if request["most_bytes"] is not None:
        resource.setrlimit(resource.RLIMIT_FSIZE, (request["most_bytes"],) * 2)
    sys.argv = [str(MAIN), *map(os.fsdecode, request["arguments"])]
    sys.path[0] = str(MAIN.parent)
    sys.stdin = sys.__stdin__ = stream(0, "rb", sys.stdin)
    sys.stdout = sys.__stdout__ = stream(1, "wb", sys.stdout)
    sys.stderr = sys.__stderr__ = stream(2, "wb", sys.stderr)


def stream(number, mode, like):
    """Return the text stream of a descriptor, as the interpreter makes it; None if it is closed."""
    try:
        os.fstat(number)
    except OSError:
        return None
    raw = open(number, mode, closefd=False)  # noqa: SIM115 - it lives as long as the process
    return io.TextIOWrapper(
        raw,
        encoding=like.encoding,
        errors=like.errors,
        newline="\n",
        line_buffering=number == 2 or os.isatty(number),
    )


if __name__ == "__main__":
    main()
