"""Lines for people: one for each entry of a tree, or event of a log, or row of a table."""

from __future__ import annotations

import json
from datetime import UTC
from itertools import zip_longest
from typing import TYPE_CHECKING, Any

import msgspec

from app.i18n import _
from app.view.plain import cells, fitted, plain
from domain.events import Event, MessageAppended, Unrecognised
from domain.messages import result_text
from domain.text import decoded

if TYPE_CHECKING:
    from collections.abc import Collection, Sequence

    from domain.projections.outline import TreeEntry

_LONGEST = 2_000
"""Cells of a line that nobody sees on a screen: what a tool printed may be long."""

_DEEPEST = 12


def tree_line(row: TreeEntry, note: str = "", *, width: int | None = None) -> str:
    """Return an entry of a tree, in *width* cells at most; a *note* stands before its words."""
    mark = "·" if row.is_compacted else "●" if row.is_on_path else "○"
    indent = "│ " * min(row.depth, _DEEPEST)
    label = f" [{row.label}]" if row.label else ""
    leaf = _(" ◀ leaf") if row.is_leaf else ""
    text = f"{row.version:6} {indent}{mark} {row.kind:10}{plain(label)}{note} {plain(row.text)}"
    return (text if width is None else fitted(text, width - cells(leaf))) + leaf


def log_line(event: Event, width: int | None = None) -> str:
    """Return an event as one line for people, of *width* cells at most: when, what, the gist."""
    when = event.timestamp.astimezone().strftime("%H:%M:%S")
    topic = event.topic if isinstance(event, Unrecognised) else event.TOPIC
    line = f"{event.originator_version:6}  {when}  {topic:20}  {_gist(event)}"
    return fitted(" ".join(plain(line).splitlines()).expandtabs(1), width or _LONGEST)


def _gist(event: Event) -> str:
    match event:
        case Unrecognised(reason=reason):
            return f"({reason})"
        case MessageAppended():
            content = event.content
            calls = [
                f"{call['name']} {json.dumps(call['input'], ensure_ascii=False)}"
                for call in content.tool_uses
            ]
            results = [f"→ {result_text(result.get('content'))}" for result in content.tool_results]
            return f"{content.role}: " + " · ".join([content.text, *calls, *results]).strip(" ·")
        case _:
            state = state_of(event)
            state.pop("timestamp", None)
            return json.dumps(state, ensure_ascii=False)


def state_of(event: Event) -> dict[str, Any]:
    """Return the data of an event, without what the envelope says."""
    event = msgspec.structs.replace(event, timestamp=event.timestamp.astimezone(UTC))
    state: dict[str, Any] = decoded(msgspec.json.encode(event))
    del state["originator_id"], state["originator_version"]
    return state


def columns(
    rows: Sequence[Sequence[str]], *, left: Collection[int] = (0,), widest: int | None = None
) -> list[str]:
    """Return *rows* as lines: the columns in *left* begin, the others end, below one another.

    A text of more than *widest* cells stands out of its column.
    """
    widths = [max(map(cells, column)) for column in zip_longest(*rows, fillvalue="")]
    if widest is not None:
        widths = [min(width, widest) for width in widths]
    lines = []
    for row in rows:
        padded = []
        for number, (text, width) in enumerate(zip(row, widths, strict=False)):
            blanks = " " * (width - cells(text))
            padded.append(text + blanks if number in left else blanks + text)
        lines.append("  ".join(padded).rstrip())
    return lines
