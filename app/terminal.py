"""Whether a person is at the other end: asked here, and nowhere else."""

from __future__ import annotations

import os
import sys


def is_typed_at() -> bool:
    """Whether standard input is a terminal: somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def is_looked_at() -> bool:
    """Whether standard output is a terminal: what is printed must not command it."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_dumb() -> bool:
    """Whether the terminal takes no escape codes, as ``TERM`` says."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def is_interactive() -> bool:
    """Whether a person can be asked, and sees what is asked: both are a terminal."""
    return is_typed_at() and is_looked_at()
