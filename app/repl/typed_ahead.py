"""What is typed while nobody reads it: kept off the screen, taken later, or thrown away."""

from __future__ import annotations

import os
import re
import select
import sys
import termios
from contextlib import nullcontext, suppress
from typing import TYPE_CHECKING

from prompt_toolkit.input.typeahead import clear_typeahead
from prompt_toolkit.utils import is_dumb_terminal

from app.repl.prompt import is_interactive
from app.repl.suspending import modes_meanwhile
from domain.text import valid

if TYPE_CHECKING:
    from contextlib import AbstractContextManager

    from prompt_toolkit.input import Input

    from app.repl.suspending import Modes

_PIECE = 65536
_OTHER_KEYS = re.compile("\x1b(?:\\[[0-9;?]*[@-~]|O.)")
_DELETED = re.compile("[^\n\x7f\x08][\x7f\x08]")


def quiet_terminal() -> AbstractContextManager[None]:
    """Keep what is typed meanwhile off the screen; the next prompt gets it, key by key.

    The system would edit whole lines of it: it took the end of a paste for a deleted word, say. On
    a dumb terminal, where nobody reads meanwhile, it would also throw all of it away at Ctrl+C.
    """

    def quiet(modes: Modes) -> Modes:
        modes[3] &= ~(termios.ECHO | termios.ICANON)
        modes[3] |= termios.NOFLSH if is_dumb_terminal() else 0
        return modes

    return modes_meanwhile(quiet) if is_interactive() else nullcontext()


def typed_ahead() -> str:
    """Take what was typed at a terminal while nobody read it; as text, without other keys."""
    typed = b""
    if is_interactive():
        with suppress(OSError, ValueError):
            while select.select([sys.stdin], [], [], 0)[0]:
                if not (piece := os.read(sys.stdin.fileno(), _PIECE)):
                    break
                typed += piece
    text = _OTHER_KEYS.sub("", valid(typed.decode("utf-8", "replace")).replace("\r", "\n"))
    while (edited := _DELETED.sub("", text)) != text:
        text = edited
    return "".join(each for each in text if each.isprintable() or each == "\n").strip()


def throw_away_input(source: Input) -> None:
    """Forget what was typed and not read yet."""
    clear_typeahead(source)
    with suppress(OSError, ValueError, NotImplementedError, termios.error):
        if os.isatty(source.fileno()):
            termios.tcflush(source.fileno(), termios.TCIFLUSH)
