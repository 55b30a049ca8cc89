"""Where the program begins, however it is started: Ctrl+C first, then what takes time to import.

Until somebody owns the signals there is nothing to tidy up: what is in a log is whole at any
moment, so the program may end as if it were killed, but without a traceback.
"""

import _signal as signal  # type: ignore[import-not-found] # `signal` itself takes a while
import os

_INTERRUPTED = 130


def main() -> None:
    """Run the command line; Ctrl+C ends the start of it without a word."""
    signal.signal(signal.SIGINT, lambda *_: os._exit(_INTERRUPTED))
    from app.cli import main as run  # noqa: PLC0415 - a tenth of a second, and more

    run()
