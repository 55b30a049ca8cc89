"""The catalogue: one row per conversation, enough to find it again; and what its answers spent."""

from __future__ import annotations

from datetime import datetime  # noqa: TC003 - msgspec reads the annotations
from typing import TYPE_CHECKING, NamedTuple
from uuid import UUID  # noqa: TC003

from domain.events import (
    Archived,
    BranchSummarized,
    Compacted,
    Event,
    Forked,
    LabelChanged,
    MessageAppended,
    ModelChanged,
    Renamed,
    Started,
    TurnEnded,
    Version,
)
from domain.projections.usage import TOKEN_KINDS, added

if TYPE_CHECKING:
    from collections.abc import Iterable

    from domain.messages import JsonObject

TITLE_LENGTH = 80

CATALOGUED = (Renamed.TOPIC, Archived.TOPIC, ModelChanged.TOPIC)
"""The facts that a title shows: of each, the newest counts, wherever it stands."""


class Row(NamedTuple):
    """What a list shows of one conversation.

    Attributes:
        events: The version of its last event.
        messages: How many messages there are, on all branches.
        prompt: The beginning of the first prompt.
        model: The model of the next request.
        models: All models that were chosen, each once.
        source_id: The conversation that this one is a fork of.
        labels: The labels of entries, by version.
        tokens: What was spent, by kind: by itself, for a fork counts from where it was forked.
    """

    id: UUID
    events: Version
    messages: int
    created: datetime
    updated: datetime
    cwd: str | None
    prompt: str
    name: str | None
    model: str | None
    models: tuple[str, ...]
    archived: bool
    source_id: UUID | None
    labels: dict[Version, str]
    tokens: dict[str, int]

    @property
    def title(self) -> str:
        """The name, or what the first prompt begins with."""
        return self.name or self.prompt


class Answer(NamedTuple):
    """What an answer, or a summary, spent: the tokens that *usage* says, of *model*."""

    version: Version
    time: datetime
    model: str | None
    usage: JsonObject


class Summary(NamedTuple):
    """The row of a conversation, and its answers, as far as they are new."""

    row: Row
    answers: tuple[Answer, ...]


def summary(events: Iterable[Event], before: Row | None = None) -> Summary | None:
    """Return what *events* make of a conversation whose row was *before*; None if there is nothing.

    What a fork inherited is its parent's: neither tokens nor answers before it count. So the events
    of a fork are to be given all at once.
    """
    fold = _Fold(before)
    for event in events:
        fold.add(event)
    return fold.summary()


def row(events: Iterable[Event]) -> Row:
    """Return the row of a conversation that has *events*.

    Raises:
        ValueError: there are none.
    """
    found = summary(events)
    if found is None:
        raise ValueError("no events, no row")
    return found.row


class _Fold:
    def __init__(self, before: Row | None) -> None:
        self._first: Event | None = None
        self._last: Event | None = None
        self._before = before
        self._answers: list[Answer] = []
        self._messages = before.messages if before else 0
        self._cwd, self._name, self._model = (
            (before.cwd, before.name, before.model) if before else (None, None, None)
        )
        self._models = dict.fromkeys(before.models if before else ())
        self._is_archived = before is not None and before.archived
        self._source_id = before.source_id if before else None
        self._labels = dict(before.labels) if before else {}
        self._tokens = dict(before.tokens if before else {})
        self._prompt = before.prompt if before else ""

    def add(self, event: Event) -> None:
        self._first, self._last = self._first or event, event
        match event:
            case MessageAppended():
                self._messages += 1
                self._spend(event)
                self._prompt = self._prompt or _prompt_of(event)
            case Compacted() | BranchSummarized():
                self._spend(event)
            case TurnEnded(lost=lost):
                self._tokens = added(self._tokens, lost) if lost else self._tokens
            case Forked(source_id=source_id):
                self._source_id, self._tokens = source_id, {}
                self._answers.clear()
            case _:
                self._change(event)

    def _change(self, event: Event) -> None:
        match event:
            case Started(cwd=value):
                self._cwd = value
            case Renamed(name=value):
                self._name = value
            case ModelChanged(model=value):
                self._model = value
                self._models[value] = None
            case Archived(archived=flag):
                self._is_archived = flag
            case LabelChanged(target=target, label=label) if label is not None:
                self._labels[target] = label
            case LabelChanged(target=target):
                self._labels.pop(target, None)

    def _spend(self, event: MessageAppended | Compacted | BranchSummarized) -> None:
        if event.usage:
            for kind in TOKEN_KINDS:  # as `added` does, without a new mapping each time
                count = event.usage.get(kind)
                if count and isinstance(count, int):
                    self._tokens[kind] = self._tokens.get(kind, 0) + count
            self._answers.append(
                Answer(event.originator_version, event.timestamp, event.model, event.usage)
            )

    def summary(self) -> Summary | None:
        if self._first is None or self._last is None:
            return self._before and Summary(self._before, ())
        before = self._before
        made = Row(
            id=self._last.originator_id,
            events=self._last.originator_version,
            messages=self._messages,
            created=before.created if before else self._first.timestamp,
            updated=self._last.timestamp,
            cwd=self._cwd,
            prompt=self._prompt,
            name=self._name,
            model=self._model,
            models=tuple(self._models),
            archived=self._is_archived,
            source_id=self._source_id,
            labels=self._labels,
            tokens=self._tokens,
        )
        return Summary(made, tuple(self._answers))


def _prompt_of(message: MessageAppended) -> str:
    """Return what a prompt begins with; nothing if *message* is something else."""
    content = message.content
    if content.role != "user" or not content.is_readable:
        return ""
    return " ".join(content.prompt.split())[:TITLE_LENGTH]
