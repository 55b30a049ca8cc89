"""What is typed while nobody reads: not echoed, not edited by the system, taken as text."""

import os
import pty
import select
import sys
import termios
from contextlib import contextmanager

import pytest

from app.repl import unread_terminal as module
from app.repl.unread_terminal import quiet_terminal, typed_ahead


@contextmanager
def keyboard(monkeypatch):
    """A pseudo-terminal in the place of standard input: where its keys come from."""
    ours, theirs = pty.openpty()
    with os.fdopen(ours, "r+b", buffering=0) as keys, os.fdopen(theirs) as file:
        monkeypatch.setattr(sys, "stdin", file)
        monkeypatch.setattr(module, "is_interactive", lambda: True)
        yield keys


@pytest.mark.parametrize(
    ("typed", "text"),
    [
        ("next prompt\r", "next prompt"),
        ("one\rtwo\n", "one\ntwo"),
        ("\x1b[Aup\x1b[1;5C\x1bOP\x1b[200~paste\x1b[201~", "uppaste"),
        ("wordx\x7f", "word"),
        ("wrong\x7f\x7f\x08\x7f\x7fright", "right"),
        ("a\n\x7fb", "a\nb"),
        ("x\x00\x07\x1by\u202e", "xy"),
        ("字é", "字é"),
        ("", ""),
    ],
)
def test_it_is_text_without_other_keys(monkeypatch, typed, text):
    with keyboard(monkeypatch) as keys, quiet_terminal():
        keys.write(typed.encode())
        if typed:
            select.select([sys.stdin], [], [], 10)  # the system hands it over when it likes

        assert typed_ahead() == text
        assert typed_ahead() == ""


@pytest.mark.parametrize("term", ["xterm", "dumb"])
def test_the_terminal_echoes_and_edits_nothing_meanwhile(monkeypatch, term):
    """On a dumb one, where nobody reads meanwhile, Ctrl+C throws nothing away either."""
    monkeypatch.setenv("TERM", term)
    with keyboard(monkeypatch):
        before = termios.tcgetattr(sys.stdin)
        with quiet_terminal():
            local = termios.tcgetattr(sys.stdin)[3]
            assert not local & (termios.ECHO | termios.ICANON)
            assert local & termios.ISIG
            assert bool(local & termios.NOFLSH) == (term == "dumb")
        assert termios.tcgetattr(sys.stdin) == before
