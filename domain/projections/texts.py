"""What can be found again: the texts of an event, how two texts are the same, and the place."""

from __future__ import annotations

import re
from bisect import bisect_left
from typing import TYPE_CHECKING, NamedTuple
from unicodedata import normalize

from domain.events import Entry
from domain.projections.transcript import items_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from datetime import datetime

    from domain.events import Event, Version
    from domain.messages import Json, JsonObject
    from domain.projections.transcript import Item, Kind

_ACCENTS = re.compile("[\u0300-\u036f]")
_UNSPOKEN = ("other", "gap")


class Text(NamedTuple):
    """One text of the entry *version*.

    *call* is the id of the call that it is, or answers; *tool* the call's tool, if the text names
    it: a result does not. *failed* says that a result is an error.
    """

    version: Version
    time: datetime
    kind: Kind
    text: str
    tool: str | None = None
    call: str | None = None
    failed: bool = False


def texts(event: Event) -> Iterator[Text]:
    """Yield what *event* lets people search for: what was said, called, printed and noted."""
    if isinstance(event, Entry):
        for item in items_of(event):
            if item.kind not in _UNSPOKEN:
                yield _text(item)


def _text(item: Item) -> Text:
    data: JsonObject = item.data
    bare = Text(item.version, item.timestamp, item.kind, item.text)
    match item.kind:
        case "tool_use":
            said = "\n".join((item.text, *_leaves(data["input"])))
            return bare._replace(text=said, tool=item.text, call=data["id"])
        case "tool_result":
            return bare._replace(call=data["tool_use_id"], failed=data.get("is_error") is True)
        case _:
            return bare


def _leaves(value: Json) -> Iterator[str]:
    """Yield the values in the arguments of a call, as texts."""
    match value:
        case dict():
            for one in value.values():
                yield from _leaves(one)
        case list():
            for one in value:
                yield from _leaves(one)
        case _:
            yield str(value)


def folded(text: str) -> str:
    """Return *text* as it is compared: without case, accents, and what breaks it into lines.

    A text is found in another if it stands in it, both folded.
    """
    if text.isascii():
        text = text.lower()
    else:
        bare = _ACCENTS.sub("", normalize("NFKD", text))
        text = normalize("NFKC", bare.casefold())
    return " ".join(text.replace("\0", " ").split())


def excerpt(text: str, wanted: str, width: int) -> str:
    """Return about *width* characters of *text*, on one line, around *wanted*, which is folded."""
    lines = (line for line in text.splitlines() if wanted in folded(line))
    line = " ".join(next(lines, text).split())
    if len(line) <= width:
        return line
    end = bisect_left(range(len(line)), True, key=lambda end: wanted in folded(line[:end]))  # noqa: FBT003
    start = max(min(end - (width + len(wanted)) // 2, len(line) - width), 0)
    stop = start + width
    return f"{'…' * (start > 0)}{line[start:stop]}{'…' * (stop < len(line))}"
