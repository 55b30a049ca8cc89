"""How much a model takes in and may say: the room in its window, and what its server has told."""

from __future__ import annotations

from typing import NamedTuple

RESERVE = 16_384
"""Tokens of the window that are kept free for the answer."""

KEEP = 20_000
"""Tokens of the recent past that a compaction keeps as they are."""


class Room(NamedTuple):
    """How a window of *window* tokens is used. Small windows are divided in quarters."""

    window: int
    reserve: int
    keep: int

    @classmethod
    def of(cls, window: int) -> Room:
        """Return how to use a *window*."""
        return cls(window, min(RESERVE, window // 4), min(KEEP, window // 4))

    @property
    def limit(self) -> int:
        """The largest context, in tokens, that leaves room for the answer."""
        return self.window - self.reserve

    @property
    def summary(self) -> int:
        """How long a summary may be, in tokens."""
        return max(self.reserve // 2, 1)

    @property
    def longest_summary(self) -> int:
        """How many bytes of a summary are taken, however long a model or a log makes it.

        Six a token: a summary in any script that is as long as it may be is taken whole.
        """
        return self.summary * 6


class Limits(NamedTuple):
    """What the server of a model has said of its limits, in tokens; None where it has not."""

    context_window: int | None = None
    max_tokens: int | None = None

    def and_then(self, context_window: int | None, max_tokens: int | None) -> Limits:
        """Return these limits with those that were learned later; None changes nothing."""
        return Limits(
            context_window if context_window and context_window > 0 else self.context_window,
            max_tokens if max_tokens and max_tokens > 0 else self.max_tokens,
        )

    def within(self, window: int) -> int:
        """Return the *window* that is believed in, or the smaller one that the server named."""
        return min(window, self.context_window or window)

    def answer(self, max_tokens: int) -> int:
        """Return how long an answer may be that was to have up to *max_tokens*; at least one."""
        if self.max_tokens is not None:
            max_tokens = min(max_tokens, self.max_tokens)
        if self.context_window is not None:
            max_tokens = min(max_tokens, Room.of(self.context_window).reserve)
        return max(max_tokens, 1)
