"""What the loop and the tools tell one another: what a call would do, and what came of it."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from domain.text import valid_json

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path


@dataclass(frozen=True, slots=True)
class ToolOutput:
    """The result of one call: text or Messages-API content blocks, always valid UTF-8 (case E3).

    *seen* names the files that the model knows whole from this call on, and their digests. *masked*
    names the secrets that are not in it.
    """

    content: str | list[dict[str, Any]]
    is_error: bool = False
    seen: Mapping[str, str] = field(default_factory=dict)
    masked: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        object.__setattr__(self, "content", valid_json(self.content))


@dataclass(frozen=True, slots=True)
class Change:
    """What a call would make of a file.

    Attributes:
        path: The file as the call names it.
        target: The file that is written: absolute, with all symbolic links followed.
        before: Its text now; None if it is not there.
        after: Its text then.
    """

    path: str
    target: Path
    before: str | None
    after: str


@dataclass(frozen=True, slots=True)
class Plan:
    """What a call would do, found out before anybody is asked, without doing any of it.

    Attributes:
        problem: Why it cannot work: its result. Nobody need be asked.
        change: What it would make of a file, to be shown to the person who is asked.
        state: The state of that file. The call runs on it and on no other (case R12).
        unseen: Its result unless a person is asked, who is shown *change*: the model has not seen
            what would be lost.
    """

    problem: ToolOutput | None = None
    change: Change | None = None
    state: object = None
    unseen: ToolOutput | None = None
