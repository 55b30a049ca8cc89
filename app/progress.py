"""How far a long work is."""

from __future__ import annotations

import sys
import time
from typing import Self

from app.terminal import is_told

_SILENT = 1.0
"""Seconds for which nothing is said of how far something is."""


class Progress:
    """Says on stderr, if it is a terminal, how far *what* is, from the second second on."""

    def __init__(self, what: str) -> None:
        self._what = what
        self._begun = time.monotonic()
        self._is_shown = False

    def tell(self, done: int, total: int) -> None:
        """Say that *done* of *total* is done."""
        if is_told() and time.monotonic() - self._begun > _SILENT:
            self._is_shown = True
            share = done / total if total else 1
            sys.stderr.write(f"\r{self._what}: {share:4.0%} ")
            sys.stderr.flush()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_error: object) -> None:
        if self._is_shown:
            sys.stderr.write("\r\033[K")
