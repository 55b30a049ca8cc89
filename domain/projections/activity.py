"""Activity: what was asked, answered, called and refused, as rows that can be counted.

An event is read by itself. Which call a decision, a start or a result belongs to is known where the
rows meet: it is the newest call before it that has its id.
"""

from __future__ import annotations

import json
import posixpath
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

from domain.events import (
    ApprovalDecided,
    Archived,
    BranchSummarized,
    Compacted,
    Forked,
    MessageAppended,
    ModelChanged,
    Renamed,
    Started,
    ToolStarted,
    TurnEnded,
)
from domain.projections.transcript import items_of
from domain.projections.usage import TOKEN_KINDS
from domain.text import valid, valid_json

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.events import Event
    from domain.messages import Json, JsonObject

_MOST = 2**63
"""What a number in a table is less than; a log that was made by hand may have any."""


class Heading(NamedTuple):
    """The conversation has this *value* in the *column* from here on."""

    column: str
    value: str | int | None


class Prompt(NamedTuple):
    """A person said *text*."""

    text: str


class Request(NamedTuple):
    """The model was asked: for an answer, a summary, or what was *lost* on the way.

    The tokens are None where the server did not count them.
    """

    kind: str
    model: str | None
    stop_reason: str | None
    seconds: float | None
    input_tokens: int | None
    output_tokens: int | None
    cache_read_input_tokens: int | None
    cache_creation_input_tokens: int | None


class ToolCall(NamedTuple):
    """The model asked for a call; *input* is JSON, the *command* and the *path* are out of it."""

    tool_use_id: str
    tool: str
    model: str | None
    input: str
    command: str | None
    path: str | None


class Decision(NamedTuple):
    """It was said whether a call may run."""

    tool_use_id: str
    decision: str
    reason: str


class Start(NamedTuple):
    """A call began to run."""

    tool_use_id: str


class Result(NamedTuple):
    """A call ended, or was refused, with this *text*."""

    tool_use_id: str
    failed: bool
    text: str


class Turn(NamedTuple):
    """A turn ended."""

    outcome: str
    error_type: str | None
    error: str | None


Activity: TypeAlias = Heading | Prompt | Request | ToolCall | Decision | Start | Result | Turn


def activity(event: Event) -> Iterator[Activity]:
    """Yield what *event* adds to the tables."""
    match event:
        case MessageAppended():
            yield from _of_message(event)
        case Compacted(model=model, usage=usage) | BranchSummarized(model=model, usage=usage):
            if model is not None or usage:
                kind = "compaction" if isinstance(event, Compacted) else "branch_summary"
                yield Request(kind, model, None, None, *_tokens(usage))
        case ApprovalDecided(tool_use_id=tool_use_id, decision=decision, reason=reason):
            yield Decision(tool_use_id, decision, reason)
        case ToolStarted(tool_use_id=tool_use_id):
            yield Start(tool_use_id)
        case TurnEnded(outcome=outcome, error=error, lost=lost):
            if lost:
                yield Request("lost", None, None, None, *_tokens(lost))
            yield Turn(outcome, *((error.type, error.message) if error else (None, None)))
        case _:
            yield from _headings(event)


def _of_message(event: MessageAppended) -> Iterator[Activity]:
    content = event.content
    if content.role == "assistant" or event.usage:
        tokens = _tokens(event.usage)
        yield Request("answer", event.model, event.stop_reason, event.duration, *tokens)
    elif content.is_readable and content.prompt.strip():
        yield Prompt(content.prompt)
    for item in items_of(event):
        data = item.data
        if item.kind == "tool_use":
            arguments = data["input"]
            command, path = _text(arguments, "command"), _text(arguments, "path", "file_path")
            yield ToolCall(data["id"], item.text, event.model, _json(arguments), command, path)
        elif item.kind == "tool_result":
            yield Result(data["tool_use_id"], data.get("is_error") is True, item.text)


def _headings(event: Event) -> Iterator[Heading]:
    match event:
        case Started(cwd=cwd):
            yield Heading("cwd", cwd)
        case Renamed(name=name):
            yield Heading("name", name)
        case ModelChanged(model=model):
            yield Heading("model", model)
        case Archived(archived=archived):
            yield Heading("archived", int(archived))
        case Forked(source_id=source_id, source_version=version):
            yield Heading("source_id", str(source_id))
            yield Heading("source_version", version)


def _tokens(usage: JsonObject | None) -> tuple[int | None, ...]:
    """Return the tokens of *usage* by kind, in the order of a `Request`."""
    if not usage:
        return (None,) * len(TOKEN_KINDS)
    return tuple(_number(usage.get(kind)) for kind in TOKEN_KINDS)


def _number(count: Json) -> int:
    is_one = isinstance(count, int) and -_MOST < count < _MOST
    return int(count) if is_one else 0


def _text(arguments: JsonObject, *names: str) -> str | None:
    """Return the first of the arguments *names* that is a text; agents call them differently."""
    texts = (value for name in names if isinstance(value := arguments.get(name), str))
    return next(texts, None)


def _json(arguments: JsonObject) -> str:
    return valid(json.dumps(valid_json(arguments), ensure_ascii=False, separators=(",", ":")))


def absolute(path: str, cwd: str | None) -> str:
    """Return the file that a call in *cwd* names *path*; no link is followed."""
    if path.startswith("~"):
        return path
    return posixpath.normpath(posixpath.join(cwd or "", path))
