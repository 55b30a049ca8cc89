"""Kill an unmodified process at any of its system calls: a small ptrace, on Linux.

It needs no program installed, costs a fork a kill, and works the same on every processor: which
system calls touch a folder is told by their arguments (an open file below it, or a path).
"""

import ctypes
import os
import signal
import sys
from contextlib import suppress
from pathlib import Path

_TRACEME, _SYSCALL, _SETOPTIONS, _GET_SYSCALL_INFO = 0, 24, 0x4200, 0x420E
_SYSGOOD, _EXITKILL = 1, 1 << 20
_ENTRY = 1
_MOST_FDS = 1 << 16
_LONGEST_PATH = 512

AVAILABLE = sys.platform == "linux"


class _Info(ctypes.Structure):
    _fields_ = [
        ("op", ctypes.c_uint8),
        ("pad", ctypes.c_uint8 * 3),
        ("arch", ctypes.c_uint32),
        ("ip", ctypes.c_uint64),
        ("sp", ctypes.c_uint64),
        ("nr", ctypes.c_uint64),
        ("args", ctypes.c_uint64 * 6),
    ]


if AVAILABLE:
    _libc_ptrace = ctypes.CDLL(None, use_errno=True).ptrace
    _libc_ptrace.restype = ctypes.c_long
    _libc_ptrace.argtypes = [ctypes.c_long, ctypes.c_long, ctypes.c_void_p, ctypes.c_void_p]


def _ptrace(request, pid, address, data):
    result = _libc_ptrace(request, pid, address, data)
    if result < 0:
        number = ctypes.get_errno()
        raise OSError(number, f"ptrace: {os.strerror(number)}")
    return result


def killed_at(number, folder, begin, program):
    """Fork, run *begin* and then *program* in the child; kill it at its *number*-th call to *folder*.

    Calls of *program* are counted from 1; the call at which it dies is not carried out. *program*
    is given what *begin* returned.

    Returns:
        What it was about to do, as text; or None if it ended, well, before that.
    """
    pid = os.fork()
    if pid == 0:
        _run_as_child(begin, program)
    return _follow(pid, number, os.fsencode(folder))


def _run_as_child(begin, program):
    code = 1
    try:
        begun = begin()
        _ptrace(_TRACEME, 0, None, None)
        os.kill(os.getpid(), signal.SIGSTOP)
        program(begun)
        code = 0
    except BaseException:  # noqa: BLE001 - it is printed, and the child ends
        sys.excepthook(*sys.exc_info())
    finally:
        sys.stderr.flush()
        os._exit(code)


def _follow(pid, number, folder):
    _, status = os.waitpid(pid, 0)
    assert os.WIFSTOPPED(status), status
    _ptrace(_SETOPTIONS, pid, None, _SYSGOOD | _EXITKILL)
    info, count, passed_on = _Info(), 0, 0
    with Path(f"/proc/{pid}/mem").open("rb", buffering=0) as memory:
        while True:
            _ptrace(_SYSCALL, pid, None, passed_on)
            _, status = os.waitpid(pid, 0)
            if not os.WIFSTOPPED(status):
                assert os.WIFEXITED(status), f"it died of {status}"
                assert os.WEXITSTATUS(status) == 0, "the program failed; see above"
                return None
            passed_on = 0
            if os.WSTOPSIG(status) != signal.SIGTRAP | 0x80:
                passed_on = os.WSTOPSIG(status)
                continue
            _ptrace(_GET_SYSCALL_INFO, pid, ctypes.sizeof(info), ctypes.addressof(info))
            if info.op != _ENTRY:
                continue
            touched = _touched(pid, memory, info.args, folder)
            if touched is None:
                continue
            count += 1
            if count == number:
                os.kill(pid, signal.SIGKILL)
                _, status = os.waitpid(pid, 0)
                assert os.WIFSIGNALED(status), status
                return f"system call {info.nr} on {touched!r}"


def _touched(pid, memory, args, folder):
    """Return what below *folder* a system call with *args* is about, or None."""
    if args[0] < _MOST_FDS:
        with suppress(OSError):
            name = os.readlink(b"/proc/%d/fd/%d" % (pid, args[0]))  # noqa: PTH115 - bytes
            if name.startswith(folder):
                return name
    for address in args[0], args[1]:
        if address >= _MOST_FDS:
            with suppress(OSError, OverflowError, ValueError):
                memory.seek(address)
                data = memory.read(_LONGEST_PATH)
                if data.startswith(folder):
                    return data.partition(b"\0")[0]
    return None
