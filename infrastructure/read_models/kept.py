"""What is kept of a conversation for a list: its row, and how far that is true."""

from __future__ import annotations

from typing import Final, NamedTuple

from domain.projections.catalogue import Row  # noqa: TC001 - msgspec reads the annotations
from infrastructure.jsonl.log_reader import State  # noqa: TC001
from infrastructure.jsonl.snapshots import Anchor  # noqa: TC001

NO_STATE: Final = (0, 0, 0)


class Kept(NamedTuple):
    """A row, and the state of the log that it is of.

    Attributes:
        anchor: Where the last event stands.
        directory: The real path of the row's directory.
        cost: What was spent up to the version *priced*, in US dollars; None if a price is unknown.
        priced: How far the cost was added up.
        findings: What is wrong with the log, as JSON, if it was looked through.
    """

    row: Row
    state: State
    anchor: Anchor | None = None
    directory: str | None = None
    cost: float | None = None
    priced: int = 0
    findings: str | None = None
