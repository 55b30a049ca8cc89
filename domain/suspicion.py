"""Which content a refusal means: the kind that it names, and the entries that hold it.

Servers name what they refuse by its place in the request (``messages.3.content.1``), by its kind,
or by neither. Pure: words in, entries out.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, NamedTuple

from domain.events import MessageAppended, Version
from domain.projections.context import live_entries
from domain.projections.parts import NEVER_WITHHELD, THINKING

if TYPE_CHECKING:
    from collections.abc import Iterator

    from domain.conversation import Conversation
    from domain.messages import Json, JsonObject

_IMAGE = (
    r"image|picture|photo|\bvision|multi-?modal|modalit|pixel|mmproj|\bpng|jpe?g|webp|\bgif"
    r"|图片|图像|图象|视觉|多模态"
)
_KINDS = (
    (("image",), _IMAGE),
    (("document",), r"document|pdf|\bpages?\b|文档"),
    (THINKING, r"thinking|signature|signed|reasoning|encrypted|思考|签名"),
)
_MEDIA = ("image", "document")
_OF_SOME_MEDIUM = re.compile(
    r"base64|\bmime|\bmedia\b|attachment|\bfile (?:data|type|is)|data ur[il]"
    r"|(?:expected|must be|should be) (?:an? )?(?:valid )?['`\"]?(?:string|text)\b"
    r"|content[ _-](?:type|block|part)|\bcontents? (?:must|should)"
    r"|(?:invalid|bad|unsupported|unprocessable) (?:\w+ )?(?:content|argument|request|input|entity)"
    r"|could not (?:process|decode|read)|failed to (?:load|process|decode)"
    r"|文件|附件|格式错误|参数(?:错误|非法|无效)",
    re.IGNORECASE,
)
"""Words about media that name no kind: a server that never took any may mean any kind."""
_PLACE = re.compile(
    r"messages[.\[](\d{1,9})\]?[.\[]content[.\[](\d{1,9})"
    r"(?:\]?\.(?:tool_result\.)?content[.\[](\d{1,9}))?"
)


class Suspects(NamedTuple):
    """Blocks of these *kinds*, in these *entries*."""

    entries: tuple[Version, ...]
    kinds: tuple[str, ...]


def suspects(conversation: Conversation, request: JsonObject, words: str) -> Suspects | None:
    """Return what the *words* of a refusal of *request* mean, of what is not withheld already.

    A named place counts most. Else it is what has come since the last answer, which shows that
    all before it was taken; else, if a kind is named, all of it. Of thinking it is always all:
    signatures hang together.
    None if the words name nothing that could be left out.
    """
    holders = _holders(conversation)
    place = _at_place(request, words)
    kinds_there = {kind for kind, _, _ in holders}
    kinds = named = _named(words, kinds_there)
    if not named and _OF_SOME_MEDIUM.search(words):
        kinds = tuple(kind for kind in _MEDIA if kind in kinds_there)
    if place is not None:
        if place.get("type") in NEVER_WITHHELD[:2] and not named:
            return None
        of_place = _kinds_of(str(place.get("type")))
        kinds = of_place if set(of_place) <= set(kinds) or not kinds else kinds
    holders = [holder for holder in holders if holder[0] in kinds]
    if not set(kinds) & set(THINKING):
        there = [holder for holder in holders if _is_same(holder[2], place)]
        since = _last_answer(conversation)
        new = [holder for holder in holders if holder[1] > since]
        holders = there or new or (holders if named else [])
    if not holders:
        return None
    entries = sorted({version for _, version, _ in holders})
    return Suspects(tuple(entries), tuple(sorted(set(kinds))))


def suspected_entry(conversation: Conversation, request: JsonObject, words: str) -> Version | None:
    """Return the entry that a refusal most likely means: at the place it names, else the newest."""
    place = _at_place(request, words)
    for entry in conversation.backwards(conversation.leaf):
        if not isinstance(entry, MessageAppended):
            continue
        if place is None and entry.content.role == "user":
            return entry.originator_version
        if any(_is_same(raw, place) for raw in _blocks(entry)):
            return entry.originator_version
    return None


def _holders(conversation: Conversation) -> list[tuple[str, Version, JsonObject]]:
    """Return the blocks that could be left out: kind, entry, block."""
    found = []
    for entry in live_entries(conversation, conversation.leaf):
        if isinstance(entry, MessageAppended):
            for raw in _blocks(entry):
                kind, version = str(raw.get("type")), entry.originator_version
                is_sent = (conversation.model or "", version, kind) not in conversation.withheld
                if is_sent and kind not in NEVER_WITHHELD:
                    found.append((kind, version, raw))
    return found


def _named(words: str, there: set[str]) -> tuple[str, ...]:
    known = [kinds for kinds, pattern in _KINDS if re.search(pattern, words, re.IGNORECASE)]
    ours = {kind for kinds, _ in _KINDS for kind in kinds}
    others = sorted(kind for kind in there - ours if kind and kind in words)
    return tuple(kind for kinds in known for kind in kinds if kind in there) + tuple(others)


def _kinds_of(kind: str) -> tuple[str, ...]:
    return THINKING if kind in THINKING else (kind,)


def _at_place(request: JsonObject, words: str) -> JsonObject | None:
    """Return the block at the place in *request* that the *words* name; of a result, its medium."""
    match = _PLACE.search(words)
    if match is None:
        return None
    try:
        block = request["messages"][int(match[1])]["content"][int(match[2])]
    except (IndexError, TypeError):
        return None
    if not isinstance(block, dict):
        return None
    content = block.get("content")
    inner = content if isinstance(content, list) else []
    if match[3] is not None and int(match[3]) < len(inner):
        return dict(inner[int(match[3])])
    named = [part for part in inner if part["type"] != "text" and part["type"] in words]
    return dict(named[0] if len(named) == 1 else block)


def _is_same(raw: JsonObject, sent: JsonObject | None) -> bool:
    """Whether the block *raw* of the log went out as *sent*: its bytes or its words tell."""
    if sent is None:
        return False
    raw, sent = _without_id(raw), _without_id(sent)
    return raw == sent or _data(raw) == _data(sent) != None  # noqa: E711 - both, and there


def _without_id(raw: JsonObject) -> JsonObject:
    return {k: v for k, v in raw.items() if k not in ("id", "tool_use_id", "cache_control")}


def _data(raw: JsonObject) -> Any:
    source = raw.get("source")
    return source.get("data") if isinstance(source, dict) else raw.get("signature")


def _blocks(entry: MessageAppended) -> Iterator[JsonObject]:
    """Yield the blocks of *entry*, and after each result those that it holds."""
    for raw in entry.content.blocks:
        if isinstance(raw, dict):
            yield raw
            inner: Json = raw.get("content") if raw.get("type") == "tool_result" else None
            if isinstance(inner, list):
                yield from (part for part in inner if isinstance(part, dict))


def _last_answer(conversation: Conversation) -> Version:
    """Return the newest answer of today's model on the path; 0 for none."""
    for entry in conversation.backwards(conversation.leaf):
        if (
            isinstance(entry, MessageAppended)
            and entry.request_digest is not None
            and entry.model == conversation.model
        ):
            return entry.originator_version
    return 0
