"""A path as other programs, and people, read it: messages of the API, Markdown. Pure."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import msgspec

from domain.projections.context import context
from domain.projections.message_builder import CONTINUE
from domain.projections.parts import text_block
from domain.projections.transcript import transcript

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.conversation import Conversation
    from domain.events import Version
    from domain.messages import JsonObject
    from domain.projections.transcript import Item

_NOTHING_TO_SAY = {"role": "user", "content": text_block(CONTINUE)}
_RUNS = re.compile("`+")


def messages(conversation: Conversation, leaf: Version | None) -> list[JsonObject]:
    """Return the messages that the model is sent on the path to *leaf*.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    found: list[JsonObject] = context(conversation, leaf)["messages"]
    return found[:-1] if found[-1:] == [_NOTHING_TO_SAY] else found


def markdown(conversation: Conversation, leaf: Version | None) -> Iterator[str]:
    """Yield the blocks of the transcript of the path to *leaf* as Markdown.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    yield f"# {conversation.name or conversation.id}"
    speaker = None
    for item in transcript(conversation, leaf):
        who = _SPEAKERS.get(item.kind)
        if who is not None and who != speaker:
            yield f"## {who}"
            speaker = who
        yield from _blocks(item)


_SPEAKERS = {"user": "User", "assistant": "Assistant", "thinking": "Assistant",
             "tool_use": "Assistant"}  # fmt: skip


def _blocks(item: Item) -> Iterator[str]:
    match item.kind:
        case "user" | "assistant":
            yield item.text
        case "thinking":
            yield "\n".join(f"> {line}" for line in item.text.splitlines())
        case "tool_use":
            yield f"**{item.text}**"
            for name, value in item.data["input"].items():
                yield _argument(name, value)
        case "tool_result":
            yield fenced(item.text)
        case "summary":
            yield f"*Summary of what came before:*\n\n{item.text}"
        case "note":
            yield f"*Note ({item.data['kind']}):*"
            yield fenced(item.text)
        case "gap" | "other":
            yield f"*{item.text}*"


def _argument(name: str, value: Any) -> str:
    text = value if isinstance(value, str) else msgspec.json.encode(value).decode()
    return f"{name}:\n\n{fenced(text)}" if "\n" in text else f"{name}: {_code(text)}"


def fenced(text: str, language: str = "") -> str:
    """Return *text* as a block of code, whatever backticks are in it."""
    longest = max((len(run) for run in _RUNS.findall(text)), default=0)
    fence = "`" * max(longest + 1, 3)
    return f"{fence}{language}\n{text}\n{fence}"


def _code(text: str) -> str:
    longest = max((len(run) for run in _RUNS.findall(text)), default=0)
    fence = "`" * (longest + 1)
    pad = " " if longest or not text.strip() else ""
    return f"{fence}{pad}{text}{pad}{fence}"
