"""Where the program begins, however it is started: Ctrl+C first, then what takes time to import.

Until somebody owns the signals there is nothing to tidy up: what is in a log is whole at any
moment, so the program may end as if it were killed, but without a traceback.
"""

import _signal as signal  # type: ignore[import-not-found] # `signal` itself takes a while
import os
import sys

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl+C ends the start of it without a word."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    _open_what_is_closed()
    from app.cli import main as run  # noqa: PLC0415 - a tenth of a second, and more

    run()


def _open_what_is_closed() -> None:
    """Let what the caller has closed (``>&-``) be /dev/null: a file would get its number.

    A log with the number of the standard output would take what a child prints.
    """
    for number, name, mode in ((0, "stdin", "r"), (1, "stdout", "w"), (2, "stderr", "w")):
        if getattr(sys, name) is not None:
            continue
        nothing = os.open(os.devnull, os.O_RDWR)
        if nothing != number:
            os.dup2(nothing, number)
            os.close(nothing)
        stream = open(number, mode, encoding="utf-8", closefd=False)  # noqa: SIM115
        setattr(sys, name, stream)
        setattr(sys, f"__{name}__", stream)
