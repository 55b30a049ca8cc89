"""What each entry of a path says: blocks that the API accepts in a message of that role."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.block_shapes import in_shape, is_name, misshapen, of_call
from domain.events import BranchSummarized, Compacted, Entry, MessageAppended, NoteAppended
from domain.plain import ANSWER, CUT_SHORT, NOT_PLAIN, THINKS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.conversation import Conversation
    from domain.events import Version
    from domain.messages import JsonObject
    from domain.projections.media import Media
    from domain.unread import Run, Unread

INTERRUPTED = "(Your previous answer was interrupted before it was finished.)"
NO_OUTPUT = "(no output)"

_THINKING = re.compile(rb"[\x07\x0f\x17\x1f]").search
"""Kinds of answers with thinking."""
THINKING = ("thinking", "redacted_thinking")
NEVER_WITHHELD = ("text", "tool_use", "tool_result")
_CHECKED_KINDS = (*NEVER_WITHHELD, *THINKING, "image", "document")


class Part(NamedTuple):
    """What one entry says, as one role.

    *follows_loss*: what came right before it is missing in the log.
    """

    role: str
    blocks: list[JsonObject]
    version: Version
    follows_loss: bool = False


class Parts:
    """Says what entries say to the model of *conversation*, as things are now."""

    def __init__(self, conversation: Conversation, media: Media) -> None:
        self._conversation = conversation
        self._media = media
        self._withheld: dict[Version, list[str]] = {}
        for model, version, kind in conversation.withheld:
            if model == (conversation.model or "") and kind not in NEVER_WITHHELD:
                self._withheld.setdefault(version, []).append(kind)

    def kinds(self, run: Run) -> bytes:
        """Return the kind of each message of *run*: which are sent as they stand in the log."""
        kinds = run.unread.shapes.kinds[run.first : run.after]
        if not (_THINKING(kinds) or self._withheld) and self._conversation.is_orderly:
            return kinds
        places = range(run.first, run.after)
        return bytes(
            kind if self._is_sent(kind, run.unread, place) else NOT_PLAIN
            for kind, place in zip(kinds, places, strict=True)
        )

    def _is_sent(self, kind: int, unread: Unread, place: int) -> bool:
        """Whether a message of that *kind* is sent as it stands in the log."""
        version = unread.versions[place]
        if version in self._withheld:
            return False
        if kind < ANSWER:
            return True
        if kind & THINKS and not self._is_of_model(unread.models[place]):
            return False
        return not self._follows_loss(version, unread.parents[place])

    def of(self, entry: Entry) -> list[Part]:
        """Return what *entry* says: one part, two, or none."""
        version = entry.originator_version
        match entry:
            case MessageAppended():
                return self._message_parts(entry)
            case Compacted(summary=summary):
                text = f"Summary of the conversation so far:\n\n{summary}"
                return [Part("user", text_block(text), version)]
            case BranchSummarized(summary=summary):
                text = f"Summary of a branch of this conversation that was left:\n\n{summary}"
                return [Part("user", text_block(text), version)]
            case NoteAppended(visible=True, content=content):
                return [Part("user", text_block(content), version)]
            case _:
                return []

    def _message_parts(self, entry: MessageAppended) -> list[Part]:
        version = entry.originator_version
        role, blocks, is_readable = entry.content
        if not is_readable:
            return []
        withheld = self._withheld.get(version, [])
        blocks = [raw for raw in blocks if isinstance(raw, dict)]
        if role == "user":
            said = [block for raw in blocks if (block := self._of_user(raw, withheld))]
            return [Part("user", said, version)]
        same_model = self._is_of_model(entry.model)
        left_out = misshapen(blocks)
        said = [
            block
            for index, raw in enumerate(blocks)
            if raw.get("type") not in withheld
            and (block := _of_assistant(raw, left_out.get(index), same_model=same_model))
        ]
        while said and said[-1]["type"] in THINKING:
            said.pop()  # the API refuses a message that ends in thinking
        parts = [Part("assistant", said, version, self._follows_loss(version, entry.parent))]
        if entry.stop_reason in CUT_SHORT:
            parts.append(Part("user", text_block(INTERRUPTED), version))
        return parts

    def _is_of_model(self, model: str | None) -> bool:
        """Whether *model*, which said something, is today's."""
        return model is not None and model == self._conversation.model

    def _follows_loss(self, version: Version, parent: Version | None) -> bool:
        """Whether what came right before the entry *version*, its *parent*, is missing."""
        conversation = self._conversation
        return not conversation.is_orderly and conversation.parent_of(version) != parent

    def _of_user(self, raw: JsonObject, withheld: Sequence[str]) -> JsonObject | None:
        """Return *raw* as the API takes it from a user; None for what it would refuse."""
        match raw.get("type"):
            case "text":
                text = raw.get("text")
                good = isinstance(text, str) and text.strip()
                return {"type": "text", "text": text} if good else None
            case "tool_result":
                if not isinstance(raw.get("tool_use_id"), str):
                    return None
                return raw | {"content": self._result(raw.get("content"), withheld)}
            case "image" | "document" as kind:
                return self._media.placed(raw, is_withheld=kind in withheld)
            case _:
                return None

    def _result(self, content: Any, withheld: Sequence[str]) -> str | list[JsonObject]:
        if isinstance(content, str):
            return content if content.strip() else NO_OUTPUT
        if not isinstance(content, list):
            return NO_OUTPUT
        inner = [raw for raw in content if isinstance(raw, dict)]
        inner = [raw for raw in inner if raw.get("type") != "tool_result"]
        return [part for raw in inner if (part := self._of_user(raw, withheld))] or NO_OUTPUT


def text_block(text: str) -> list[JsonObject]:
    """Return *text* as the blocks of a message: none, if it is blank."""
    return [{"type": "text", "text": text}] if text.strip() else []


def _of_assistant(raw: JsonObject, fault: str | None, *, same_model: bool) -> JsonObject | None:
    """Return *raw*, verbatim if possible, as the API takes it back; None for what it refuses.

    *fault* names the field for which the API would refuse a block of a kind that is not ours.
    """
    match raw.get("type"):
        case "text":
            text = raw.get("text")
            return _plain(in_shape(raw)) if isinstance(text, str) and text.strip() else None
        case "tool_use":
            return raw  # in which shape it goes out, `call_block` says
        case "thinking":
            is_whole = isinstance(raw.get("thinking"), str) and _is_text(raw.get("signature"))
            return _plain(raw) if same_model and is_whole else None
        case "redacted_thinking":
            return _plain(raw) if same_model and _is_text(raw.get("data")) else None
        case str(kind) if kind not in _CHECKED_KINDS:
            why = f"(A block of type {kind!r} is left out here: its {fault!r} is none.)"
            return {"type": "text", "text": why} if fault else without_breakpoint(raw)
        case _:
            return None


def call_block(raw: JsonObject, sent_as: str) -> JsonObject:
    """Return a call in the one shape that the API takes, whatever is wrong with it.

    Its result tells the model that it cannot be run.
    """
    call, name = of_call(_plain(raw)), raw.get("name")
    if raw.get("id") != sent_as:
        call = call | {"id": sent_as}
    if not isinstance(name, str) or not is_name(name):
        name = name if isinstance(name, str) else ""
        call = call | {"name": re.sub(r"[^a-zA-Z0-9_-]", "_", name)[:128] or "unnamed"}
    return call if isinstance(raw.get("input"), dict) else call | {"input": {}}


def _is_text(value: Any) -> bool:
    return isinstance(value, str) and value != ""


def _plain(raw: JsonObject) -> JsonObject:
    """Return *raw* without breakpoints and without the nulls that dumping models adds (Z15)."""
    if "cache_control" not in raw and None not in raw.values():
        return raw
    return {k: item for k, item in without_breakpoint(raw).items() if item is not None}


def without_breakpoint(raw: JsonObject) -> JsonObject:
    """Return *raw* without a breakpoint of the API's cache: the request sets its own."""
    return {k: item for k, item in raw.items() if k != "cache_control"}
