"""The program is stopped by somebody else: no shell is told that the terminal was changed."""

import fcntl
import os
import pty
import signal
import subprocess
import sys
import termios
from array import array

from app.repl.unread_terminal import stoppable
from tests.app.programs import until

PROGRAM = """
import sys, tty
from app.repl.unread_terminal import modes_at_start, stoppable

modes_at_start()
with stoppable(lambda: sys.stdout.write("stopped ")):
    tty.setraw(0)
    sys.stdout.write(sys.stdin.read(1))
"""


def test_a_stop_from_outside_leaves_the_terminal_as_it_was_found():
    person, terminal = pty.openpty()

    def is_raw():
        return not termios.tcgetattr(terminal)[3] & (termios.ECHO | termios.ICANON)

    def is_typed():
        """Whether the kernel has brought what was written to this end."""
        count = array("i", [0])
        fcntl.ioctl(terminal, termios.FIONREAD, count)
        return count[0] > 0

    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=terminal, stdout=subprocess.PIPE, process_group=0
    ) as program:
        try:
            until(is_raw, program)
            os.kill(program.pid, signal.SIGTSTP)
            _pid, status = os.waitpid(program.pid, os.WUNTRACED)
            assert os.WIFSTOPPED(status)
            assert not is_raw()
            os.write(person, b"for the shell\n")
            until(is_typed, program)

            os.kill(program.pid, signal.SIGCONT)
            until(is_raw, program)
            os.write(person, b"x")
            assert program.communicate()[0] == b"stopped x"
        finally:
            program.kill()
    os.close(person)
    os.close(terminal)


def test_who_may_not_be_stopped_is_not():
    before = signal.signal(signal.SIGTSTP, signal.SIG_IGN)
    try:
        with stoppable(lambda: None):
            assert signal.getsignal(signal.SIGTSTP) is signal.SIG_IGN
    finally:
        signal.signal(signal.SIGTSTP, before)
