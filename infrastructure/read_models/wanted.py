"""What is looked for in the texts of conversations."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence
    from datetime import datetime


class Wanted(NamedTuple):
    """A text with all *parts*, which are folded; *kind* and *tool*, if any; between two times."""

    parts: Sequence[str]
    kind: str | None = None
    tool: str | None = None
    failed: bool = False
    since: datetime | None = None
    until: datetime | None = None

    def is_when(self, time: datetime) -> bool:
        """Whether *time* is one that is wanted."""
        is_early = self.since is not None and time < self.since
        return not is_early and (self.until is None or time < self.until)
