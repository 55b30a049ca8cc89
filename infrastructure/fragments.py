"""What can be read of damaged bytes of a log: an event whose envelope is broken, or words.

The state of an event may be whole though its line is not. Where it is not either, the texts in it
are what a person wants back.
"""

from __future__ import annotations

import base64
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from domain.events import TOPICS, Version
from domain.renumbering import Words
from domain.text import decoded, valid

if TYPE_CHECKING:
    from collections.abc import Iterable

_SHORTEST_TEXT = 4
_VERSION = re.compile(rb'"v"\s*:\s*(\d{1,10})\b')
_TOPIC = re.compile(rb'"topic"\s*:\s*"(\w{1,40})"')
_STATE = re.compile(rb'"state"\s*:\s*(?=\{)')
_STATE64 = re.compile(rb'"state64"\s*:\s*"([A-Za-z0-9+/]+=*)"')
_ROLE = re.compile(r'"role"\s*:\s*"(user|assistant)"')
_TEXTS = re.compile(
    r'"(?:text|content|summary|system|command|thinking|name)"\s*:\s*"((?:[^"\\]|\\.)*)', re.DOTALL
)
_SPOKEN = (b"Compacted", b"BranchSummarized", b"NoteAppended", b"PromptQueued")
_KINDS = (
    ("MessageAppended", {"parent", "message"}),
    ("Compacted", {"parent", "summary", "first_kept"}),
    ("BranchSummarized", {"parent", "summary", "from"}),
    ("NoteAppended", {"parent", "kind", "content", "visible"}),
    ("ToolStarted", {"tool_use_id"}),
    ("InstructionsChanged", {"system", "tools"}),
    ("ModelChanged", {"model", "max_tokens"}),
    ("Started", {"cwd"}),
)


class Record(NamedTuple):
    """A whole state, and what is known of its event: version 0 and no topic, if nothing."""

    version: Version
    topic: str
    state: bytes


def record_in(raw: bytes) -> Record | None:
    """Return the record in *raw* if all of its state can be read; None if not."""
    start = _STATE.search(raw) or _STATE64.search(raw)
    if start is None:
        return None
    try:
        if start.re is _STATE64:
            state = base64.b64decode(start[1], validate=True)
            keys: Iterable[str] = ()
        else:  # characters are bytes, so the end is an offset
            text = str(raw[start.end() :], "latin-1")
            _, length = json.JSONDecoder(strict=False).raw_decode(text)
            state = raw[start.end() : start.end() + length]
            keys = decoded(state).keys()
    except (ValueError, RecursionError, AttributeError):
        return None
    head = raw[: start.start()]
    number, named = _VERSION.search(head), _TOPIC.search(head)
    topic = named[1].decode() if named else ""
    if topic not in TOPICS:
        topic = next((name for name, needed in _KINDS if needed <= set(keys)), "")
    return Record(int(number[1]) if number else 0, topic, state)


def words_in(raw: bytes) -> Words | None:
    """Return what a person may have said, or read, in the damaged bytes *raw*."""
    text = raw.decode("utf-8", "replace")
    role, topic = _ROLE.search(text), _TOPIC.search(raw)
    found = [_unescaped(match[1]) for match in _TEXTS.finditer(text)]
    said = "\n".join(part for part in found if part.strip(" \n\0\ufffd"))
    if len(said) < _SHORTEST_TEXT:
        return None
    visible = role is not None or (topic is not None and topic[1] in _SPOKEN)
    return Words(role[1] if role else "", valid(said), visible)


def _unescaped(text: str) -> str:
    """Return the string whose JSON *text* may end in the middle of an escape."""
    for cut in range(min(len(text), 6) + 1):
        try:
            return str(json.loads(f'"{text[: len(text) - cut]}"', strict=False))
        except ValueError:
            continue
    return text
