"""What ``--json`` prints: a type for each output, from which the JSON and its schema come.

One vocabulary: a key means the same wherever it stands (docs/json.md says what). Times are UTC and
end in ``Z``; objects are compact; UTF-8 is not escaped, but for what a terminal would obey.
"""

from __future__ import annotations

import os
import re
import sys
from datetime import UTC, datetime
from functools import cache
from typing import Any, Literal, TypeAlias
from uuid import UUID  # noqa: TC003 - msgspec reads the annotations

import click
import msgspec

from app.view.plain import plain
from domain.projections.transcript import Kind as ItemKind  # noqa: TC001
from domain.text import valid_json

Version: TypeAlias = int


class Output(msgspec.Struct, frozen=True):
    """One JSON object."""


class Problem(Output, frozen=True):
    """Why something failed."""

    type: str
    message: str


# -- damage --------------------------------------------------------------------------------------


FindingKind: TypeAlias = Literal[
    "header", "damage", "checksum", "batch", "version", "event", "unknown", "parent", "request",
    "projection", "order", "error",
]  # fmt: skip
HARMLESS: tuple[FindingKind, ...] = ("projection",)
"""Kinds of findings that say something about this program, and nothing against the log."""


class Finding(Output, frozen=True):
    """One thing that is wrong with a log, or that could not be checked."""

    line: int | None
    offset: int | None
    version: Version | None
    what: str
    kind: FindingKind

    @property
    def is_harmless(self) -> bool:
        """Whether nothing is wrong with the log all the same."""
        return self.kind in HARMLESS


class Damage(Output, frozen=True):
    """What is wrong with a log, wherever it is read: in words, and each place."""

    message: str
    findings: tuple[Finding, ...]


class Damaged(Output, frozen=True):
    """The first line of `show`, `log` and `tree` of a damaged conversation."""

    id: UUID
    damage: Damage


class Unreadable(Output, frozen=True):
    """A conversation that a command over many cannot read: it costs the others nothing."""

    id: UUID
    error: Problem


# -- looking -------------------------------------------------------------------------------------


class Listed(Output, frozen=True):
    """A conversation in a list."""

    id: UUID
    version: Version
    events: int
    messages: int
    created: datetime
    updated: datetime
    cwd: str | None
    title: str
    name: str | None
    model: str | None
    tokens: dict[str, int]
    cost: float | None
    source_id: UUID | None
    labels: tuple[str, ...]
    archived: bool
    damage: Damage | msgspec.UnsetType = msgspec.UNSET


class Shown(Output, frozen=True):
    """Something that was said, done or lost, on the path."""

    kind: ItemKind
    version: Version
    timestamp: datetime
    text: str
    data: dict[str, Any]
    label: str | None


class Found(Output, frozen=True):
    """A text in which everything stands that was looked for; *text* is what is around it."""

    id: UUID
    version: Version
    timestamp: datetime
    kind: str
    tool: str | None
    failed: bool
    text: str


class Table(Output, frozen=True):
    """A table that can be asked."""

    table: str
    columns: tuple[str, ...]
    text: str


class LoggedEvent(Output, frozen=True):
    """An event of the log; `unreadable` instead of `state` if this version cannot read it."""

    version: Version
    v: Version
    topic: str
    state: dict[str, Any] | msgspec.UnsetType = msgspec.UNSET
    unreadable: str | msgspec.UnsetType = msgspec.UNSET
    reason: str | msgspec.UnsetType = msgspec.UNSET


class OrderedEvent(LoggedEvent, frozen=True, kw_only=True):
    """An event of `log --all`: also of which conversation, and where in the order of all events."""

    position: int
    id: UUID


class Spent(Output, frozen=True):
    """What was spent, and what for."""

    tokens: dict[str, int]
    cost: float | None
    seconds: float
    answers: int
    tool_calls: int
    failed_calls: int
    cached_share: float | None


class SpentOnBranch(Spent, frozen=True):
    """What was spent on the path to a leaf."""

    entries: int


class Statistics(Output, frozen=True):
    """What was spent in a conversation, by itself: a fork counts from where it was forked."""

    id: UUID
    name: str | None
    version: Version
    events: int
    messages: int
    total: Spent
    models: dict[str, Spent]
    branches: dict[str, SpentOnBranch]
    leaf: Version | None
    depth: int
    damage: Damage | msgspec.UnsetType = msgspec.UNSET


class Verified(Output, frozen=True):
    """What was checked in one conversation, and what was found."""

    id: UUID
    ok: bool
    events: int
    bytes: int | None
    requests_proven: int
    findings: tuple[Finding, ...]


class VerifiedOrder(Output, frozen=True):
    """What was checked in the order over all conversations: the last line of a `verify` of all."""

    order: str
    ok: bool
    records: int
    findings: tuple[Finding, ...]


class Setting(Output, frozen=True):
    """The value of a setting, and who said so."""

    value: Any
    from_: Literal["default", "flag", "environment", "project", "user"] = msgspec.field(name="from")
    place: str | None


# -- doing ---------------------------------------------------------------------------------------


class ForkMade(Output, frozen=True):
    """A copy of a conversation."""

    id: UUID
    source_id: UUID
    source_version: Version
    entry: Version | None


class NameGiven(Output, frozen=True):
    """A conversation has this name from here on."""

    id: UUID
    version: Version
    name: str | None


class LabelGiven(Output, frozen=True):
    """An entry has this label from here on."""

    id: UUID
    version: Version
    target: Version
    label: str | None


class PutAway(Output, frozen=True):
    """A conversation is archived from here on, or not any more."""

    id: UUID
    version: Version
    archived: bool


class Deleted(Output, frozen=True):
    """A conversation is in the trash."""

    id: UUID
    path: str


TrashKind: TypeAlias = Literal["conversation", "damaged", "foreign"]


class InTrash(Output, frozen=True):
    """A thing in the trash: a conversation, one of which nothing can be read, or something else."""

    id: UUID | None
    kind: TrashKind
    deleted: datetime
    title: str
    bytes: int
    path: str


class Restored(Output, frozen=True):
    """A conversation is out of the trash again."""

    id: UUID
    path: str


class Purged(Output, frozen=True):
    """A thing that was in the trash is erased."""

    id: UUID | None
    path: str
    bytes: int
    side_files_kept: bool


class Fate(Output, frozen=True):
    """What became of one damaged place: saved, saved in part, or lost."""

    line: int | None
    offset: int | None
    version: Version | None
    reason: str
    fate: str


class Recovered(Output, frozen=True):
    """A new conversation of what could be saved of a damaged one."""

    id: UUID
    source_id: UUID
    source: UUID
    events: int
    saved: int
    in_part: int
    lost: tuple[tuple[Version, Version], ...]
    proofs_kept: int
    proofs_dropped: int
    fates: tuple[Fate, ...]


class Exported(Output, frozen=True):
    """A conversation in the form of other programs: in a file, or in the *content* here."""

    id: UUID
    format: str
    path: str | None
    content: str | None


class Imported(Output, frozen=True):
    """What was taken over of a file that another program wrote."""

    id: UUID
    source: str
    format: str
    new: bool
    added: int
    known: int
    messages: int
    notes: int
    damaged: int
    unfinished: bool


class NotImported(Output, frozen=True):
    """A file that was not taken over: it costs the others nothing."""

    source: str
    error: Problem


# -- writing -------------------------------------------------------------------------------------


def write(value: object) -> None:
    """Print *value*, an `Output` or a mapping of them, as one line of JSON, whatever the locale.

    Raises:
        BrokenPipeError: nobody reads any more.
    """
    click.echo(encoded(value) + b"\n", nl=False)


def look_away() -> None:
    """Send what is still printed nowhere: nobody reads it, and that is no error of ours."""
    nothing = os.open(os.devnull, os.O_WRONLY)
    os.dup2(nothing, sys.stdout.fileno())
    os.close(nothing)


def encoded(value: object) -> bytes:
    r"""Return *value* as JSON in one line of UTF-8.

    What `plain` would make visible is written as ``\uXXXX``: the same JSON, and harmless on a
    terminal. Text that is not valid Unicode is made so.
    """
    try:
        data = msgspec.json.encode(value)
    except UnicodeEncodeError:
        data = msgspec.json.encode(valid_json(msgspec.to_builtins(value)))
    return data if data.isascii() and b"\x7f" not in data else _harmless(data.decode()).encode()


def utc(time: datetime) -> datetime:
    """Return *time* in UTC: it is written with a ``Z``."""
    return time.astimezone(UTC)


_UNUSUAL = re.compile(r"[^ -~]")


def _harmless(text: str) -> str:
    return _UNUSUAL.sub(lambda found: _written(found[0]), text)


@cache
def _written(character: str) -> str:
    if plain(character) == character:
        return character
    units = character.encode("utf-16-be")
    return "".join(f"\\u{units[at]:02x}{units[at + 1]:02x}" for at in range(0, len(units), 2))
