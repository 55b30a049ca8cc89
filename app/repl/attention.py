"""Calls a person who looks elsewhere: by the bell, and by the title of the terminal's window."""

from __future__ import annotations

from contextlib import contextmanager
from pathlib import Path
from time import monotonic
from typing import TYPE_CHECKING

from app.view.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from domain.conversation import Conversation

LONG = 10.0
"""Seconds of work after which its end is worth a bell: before that a person still looks."""
_LONGEST_TITLE = 60
_BELL = "\a"
_KEEP_TITLE, _GIVE_TITLE_BACK = "\x1b[22;2t", "\x1b]2;\a\x1b[23;2t"
_IDLE, _AT_WORK, _ASKING = "", "● ", "? "


class Attention:
    """Rings and names the window by *write*; the window gets its own title back at the end."""

    def __init__(
        self, write: Callable[[str], object], *, clock: Callable[[], float] = monotonic
    ) -> None:
        self._write = write
        self._clock = clock
        self._name = ""
        self._since = 0.0

    @contextmanager
    def kept(self) -> Iterator[None]:
        """Give the title of the window back in the end."""
        self._write(_KEEP_TITLE)
        try:
            yield
        finally:
            self._write(_GIVE_TITLE_BACK)

    def look_at(self, conversation: Conversation) -> None:
        """Name the window after a conversation, or where it works."""
        self._name = one_line(
            conversation.name or Path(conversation.cwd or "").name, _LONGEST_TITLE
        )
        self._show(_IDLE)

    def begins(self) -> None:
        """Work begins."""
        self._since = self._clock()
        self._show(_AT_WORK)

    @contextmanager
    def asking(self) -> Iterator[None]:
        """A question waits for an answer meanwhile."""
        self._write(_BELL)
        self._show(_ASKING)
        try:
            yield
        finally:
            self.begins()

    def ends(self, *, has_failed: bool) -> None:
        """Work has ended: that is worth a bell if it failed, or took long."""
        if has_failed or self._clock() - self._since >= LONG:
            self._write(_BELL)
        self._show(_IDLE)

    def _show(self, state: str) -> None:
        self._write(f"\x1b]2;{state}{self._name} · leftfold\a")
