"""The requests behind a summary, made from the log alone: each can be rebuilt, and proven.

Where it fits the window, a summary is asked for at the end of the conversation's own request: its
prefix is in the server's cache, and the past is not read again at full price. Else the past is told
in pieces that fit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

import msgspec

from domain import tree
from domain.errors import UnknownEntryError
from domain.events import (
    BranchSummarized,
    Compacted,
    Entry,
    MessageAppended,
    NoteAppended,
    SummaryRequests,
    Version,
)
from domain.limits import Room
from domain.messages import Json, result_text, user_message
from domain.projections.compaction import Cut, cut_at, written_by_model
from domain.projections.context import build_messages, live_unread, request_fields
from domain.request import Request, form_of
from domain.text import shortened

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from domain.conversation import Conversation

_LONGEST_RESULT = 2_000
_WORDS_AROUND = 700
_BEGINNING = 80

_SYSTEM = (
    "You summarise conversations between a user and a coding agent, so that the agent can go on "
    "from your summary alone. You do not continue the conversation and you call no tools: you "
    "write the summary and nothing else."
)
_QUESTION = (
    "Summarise this conversation{part}, so that you can go on from your summary alone. Do not "
    "go on with the task and call no tools now: write the summary and nothing else."
)
_HEADINGS = """\
Use exactly these headings, and short points under each:
## Goal
## Constraints
## Progress
## Decisions
## Next steps
## Files
Keep names, paths, numbers and error messages exact. Under Progress tell what is done, what is \
under way and what is blocked."""


class Subject(NamedTuple):
    """What a summary is about: whole turns, and the beginning of one that is split.

    *previous* is the summary of what came before. *since* are the first words of a branch, where
    only that is meant.
    """

    history: tuple[Entry, ...]
    turn: tuple[Entry, ...] = ()
    previous: str = ""
    since: str = ""

    @classmethod
    def of_cut(cls, cut: Cut) -> Subject:
        """Return what a compaction at *cut* summarises."""
        previous = written_by_model(cut.previous.summary) if cut.previous else ""
        return cls(cut.history, cut.turn[1:] and cut.turn, previous)

    @classmethod
    def of_branch(cls, left: Sequence[Entry]) -> Subject:
        """Return the subject of a summary of the entries that are *left*."""
        said = (entry.content.prompt for entry in left if isinstance(entry, MessageAppended))
        words = " ".join(next(filter(str.strip, said), "").split())
        return cls(tuple(left), since=words[:_BEGINNING])


def summary_requests(
    conversation: Conversation,
    leaf: Version,
    subject: Subject,
    *,
    window: int,
    focus: str = "",
    is_whole: bool = False,
) -> Generator[Request, str, tuple[str, str]]:
    """Yield the requests for a summary of *subject*; return those of the past and of the turn.

    Each fits a *window* of so many tokens. Send in the answer to one to get the next.
    """
    if is_whole:
        return (yield whole_request(conversation, leaf, subject, window=window, focus=focus)), ""
    room = Room.of(window)
    model, most = conversation.model or "", conversation.known_limits.answer(room.summary)
    of_piece = _PieceRequests(model, most, room, focus)
    past = yield from of_piece.tell(subject.history, subject.previous)
    turn = yield from of_piece.tell(subject.turn, "", is_turn=True)
    return past, turn


def whole_request(
    conversation: Conversation, leaf: Version, subject: Subject, *, window: int, focus: str = ""
) -> Request:
    """Return the conversation's own request for the path to *leaf*, with a question at its end."""
    builder = build_messages(conversation, live_unread(conversation, leaf))
    fields = request_fields(conversation, may_think=builder.may_think)
    if "budget_tokens" not in fields.get("thinking", {}):
        fields["max_tokens"] = min(fields["max_tokens"], Room.of(window).summary)
    last = builder.last_message(question=question(subject, focus))
    return Request.of(fields, [*builder.pieces, last])


def question(subject: Subject, focus: str) -> str:
    """Return what is asked at the end of a conversation's own request."""
    part = f" from the words “{subject.since}” on" if subject.since else ""
    return "\n\n".join([_QUESTION.format(part=part), _HEADINGS, *_focus(focus)])


def rebuilt(conversation: Conversation, event: Compacted | BranchSummarized) -> list[Request]:
    """Return the requests behind the summary *event*, as recorded; nothing, if that is not known.

    *conversation* is as it was when they were made.

    Raises:
        UnknownEntryError: an entry that they were made from is missing.
    """
    asked = event.asked
    if asked is None:
        return []
    subject = _subject(conversation, event, asked)
    steps = summary_requests(
        conversation,
        asked.leaf,
        subject,
        window=asked.window,
        focus=asked.focus,
        is_whole=asked.is_whole,
    )
    requests, answer = [], None
    for step in asked.steps:
        try:
            requests.append(next(steps) if answer is None else steps.send(answer))
        except StopIteration:
            break
        answer = step.answer
    return requests


def digests_of(conversation: Conversation, event: Compacted | BranchSummarized) -> list[str | None]:
    """Return the digest of each request behind *event*; None for one that cannot be rebuilt."""
    steps = event.asked.steps if event.asked else ()
    try:
        requests = rebuilt(conversation, event)
    except UnknownEntryError:
        requests = []
    found: list[str | None] = [
        request.digest(form_of(step.digest)) for request, step in zip(requests, steps, strict=False)
    ]
    return found + [None] * (len(steps) - len(found))


def _subject(
    conversation: Conversation, event: Compacted | BranchSummarized, asked: SummaryRequests
) -> Subject:
    if isinstance(event, Compacted):
        return Subject.of_cut(cut_at(conversation, asked.leaf, event.first_kept))
    ancestor = tree.common_ancestor(conversation.parents, asked.leaf, event.parent)
    left = [e for e in conversation.path(asked.leaf) if e.originator_version > (ancestor or 0)]
    return Subject.of_branch(left)


# -- in pieces -----------------------------------------------------------------------------------


class _PieceRequests(NamedTuple):
    """Makes requests to *model* that tell the past in pieces."""

    model: str
    max_tokens: int
    room: Room
    focus: str

    def tell(
        self, entries: Sequence[Entry], previous: str, *, is_turn: bool = False
    ) -> Generator[Request, str, str]:
        """Yield a request for each piece of *entries*; return the last answer, or *previous*."""
        # Beside the piece there are the previous summary, the words around both, and the answer.
        room = self.room.limit - 2 * self.room.summary - _WORDS_AROUND
        if len(previous.encode()) > self.room.limit * 4:  # of a larger window, or of another hand
            previous = shortened(previous, self.room.longest_summary)
        for piece in _pieces(entries, room):
            text = self._text(piece, previous, is_turn=is_turn)
            answer = yield Request.of(
                {
                    "model": self.model,
                    "max_tokens": self.max_tokens,
                    "system": _SYSTEM,
                    "stream": True,
                },
                [msgspec.json.encode(user_message(text))],
            )
            previous = answer or previous
        return previous

    def _text(self, piece: str, previous: str, *, is_turn: bool) -> str:
        parts = ["Summarise this conversation" + (" so far, within one turn." if is_turn else ".")]
        if previous:
            parts.append(
                "There is a summary of what came before. Update it: keep what still holds, add "
                f"what is new.\n<summary>\n{previous}\n</summary>"
            )
        parts += [f"<conversation>\n{piece}\n</conversation>", _HEADINGS, *_focus(self.focus)]
        return "\n\n".join(parts)


def _focus(focus: str) -> list[str]:
    return [f"Pay special attention to: {shortened(focus, _LONGEST_RESULT)}"] if focus else []


def _pieces(entries: Sequence[Entry], tokens: int) -> Iterator[str]:
    """Yield *entries* as text, in pieces of at most about *tokens* tokens."""
    most = max(tokens * 3, 400)  # three bytes a token: safer than the estimate, for any script
    piece: list[str] = []
    size = 0
    for entry in entries:
        text = shortened(_as_text(entry), most)
        length = len(text.encode())
        if piece and size + length > most:
            yield "\n".join(piece)
            piece, size = [], 0
        if text:
            piece.append(text)
            size += length
    if piece:
        yield "\n".join(piece)


def _as_text(entry: Entry) -> str:
    match entry:
        case MessageAppended():
            role, blocks, _ = entry.content
            who = "[Assistant]" if role == "assistant" else "[User]"
            return "\n".join(line for raw in blocks if (line := _block_as_text(who, raw)))
        case BranchSummarized(summary=summary):
            return f"[Summary of a branch] {summary}"
        case NoteAppended(content=content, visible=True):
            return f"[Note] {content}"
        case _:
            return ""


def _block_as_text(who: str, raw: Json) -> str:
    match raw:
        case {"type": "text", "text": str(text)} if text.strip():
            return f"{who} {text}"
        case {"type": "tool_use", "id": str(), "name": str(name), "input": dict(arguments)}:
            shown = msgspec.json.encode(arguments).decode()
            return f"[Tool call] {name} {shortened(shown, _LONGEST_RESULT)}"
        case {"type": "tool_result", "tool_use_id": str()}:
            text = result_text(raw.get("content"))
            return f"[Tool result] {shortened(text, _LONGEST_RESULT)}"
        case _:
            return ""
