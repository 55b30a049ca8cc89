"""A system that fails: stands in for ``os`` or ``fcntl`` in `infrastructure.jsonl.disk`."""

import errno
import fcntl
import os


class Failing:
    """``os`` (or *real*), of whose calls to *functions* one fails, or all from one on.

    Args:
        number: Which call fails, counted from 1.
        error: An errno, or an exception; "short" makes a write end half-way instead, and
            ("short", n) before its last n bytes.
        functions: Names of those that are counted.
        lasting: All later ones fail as well.
        after: The call is carried out, and then fails.

    Attributes:
        failed: The names of the calls that failed.
    """

    def __init__(self, number, error, functions, *, lasting=False, after=False, real=os):
        self.failed = []
        self.real = real
        self._left, self._error, self._functions = number, error, frozenset(functions)
        self._lasting, self._after = lasting, after

    def __getattr__(self, name):
        real = getattr(self.real, name)
        if name not in self._functions:
            return real

        def call(*arguments, **named):
            self._left -= 1
            if self._left > 0 or (self._left < 0 and not self._lasting):
                return real(*arguments, **named)
            self.failed.append(name)
            if "short" in str(self._error):
                fd, data = arguments
                missing = len(data) // 2 if self._error == "short" else self._error[1]
                return real(fd, data[: len(data) - missing])
            if self._after:
                real(*arguments, **named)
            raise self._exception()

        return call

    def _exception(self):
        if isinstance(self._error, int):
            return OSError(self._error, os.strerror(self._error))
        return self._error


def without_locks(number=errno.ENOLCK):
    """``fcntl`` of a file system that has no locks."""
    return Failing(1, number, ["flock"], lasting=True, real=fcntl)
