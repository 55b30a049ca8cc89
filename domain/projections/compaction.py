"""Compaction as a policy: when, where to cut, what to ask for, and what makes a good summary.

No model is called here. A cut keeps the recent past, never separates a call from its results, and
never loses the last thing the user said: a turn that is too long to be kept whole is split, and
what the user asked for in it goes into the summary word for word (cases K1, K3).
"""

from __future__ import annotations

import re
from operator import itemgetter
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from domain.events import BranchSummarized, Compacted, Entry, MessageAppended, NoteAppended, Version
from domain.projections.context import context, live_entries
from domain.text import decoded, nodes, shortened

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.conversation import Conversation
    from domain.limits import Room

_BYTES_PER_TOKEN = 4
_IMAGE_TOKENS = 1_600
_TOKENS_AROUND = 16  # what a message is wrapped in, and remarks that the projection adds
_LONGEST_QUOTE = 8_000
_CUT_SHORT = ("interrupted", "failed")
_FILES = re.compile(r"^- (read|changed): `(.+)`$", re.MULTILINE)
_QUOTE_HEADING = "## The user's request, word for word"
_FILES_HEADING = "## Files read and changed"


# -- how much ----------------------------------------------------------------------------------


def estimate(value: object) -> int:
    """Return about how many tokens a JSON-like *value* is: four bytes of UTF-8 each.

    The bytes of an image or of a document are not text, however many they are.
    """
    encoded = msgspec.json.encode(value)
    media = _media(value) if b'"base64"' in encoded else []
    size = len(encoded) - sum(map(len, media))
    return -(-size // _BYTES_PER_TOKEN) + len(media) * _IMAGE_TOKENS


def entry_tokens(entry: Entry) -> int:
    """Return about how many tokens *entry* is in the context."""
    match entry:
        case MessageAppended(message=message):
            has_media = b'"base64"' in bytes(message)
            size = estimate(decoded(message)) if has_media else len(message) // _BYTES_PER_TOKEN
            return size + _TOKENS_AROUND
        case Compacted(summary=text) | BranchSummarized(summary=text):
            return estimate(text)
        case NoteAppended(content=text, visible=True):
            return estimate(text)
        case _:
            return 0


def _media(value: object) -> list[str]:
    """Return the data of all images and documents in a JSON-like *value*."""
    found = (node for _, node in nodes(value) if isinstance(node, dict))
    sources = (node.get("data") for node in found if node.get("type") == "base64")
    return [data for data in sources if isinstance(data, str)]


def context_tokens(conversation: Conversation) -> int:
    """Return how long the next request is: what the API counted, and an estimate of the rest.

    Nothing that the API counted before the last compaction is trusted, nor a count of an answer
    that was cut short (case K4).
    """
    since = 0
    for entry in conversation.backwards(conversation.leaf):
        if isinstance(entry, Compacted):
            break
        counted = _counted(entry)
        if counted:
            return counted + since
        since += entry_tokens(entry)
    return estimate(context(conversation, conversation.leaf))


def _counted(entry: Entry) -> int:
    if not isinstance(entry, MessageAppended) or entry.stop_reason in (None, *_CUT_SHORT):
        return 0
    counts = (entry.usage or {}).items()
    return sum(n for kind, n in counts if kind.endswith("_tokens") and isinstance(n, int))


# -- where -------------------------------------------------------------------------------------


class Cut(NamedTuple):
    """What a compaction summarises, and the first entry that it keeps.

    *history* are whole turns; *turn* is the beginning of the turn that is split, if one is.
    """

    previous: Compacted | None
    history: tuple[Entry, ...]
    turn: tuple[Entry, ...]
    first_kept: Version


def find_cut(conversation: Conversation, keep: int) -> Cut | None:
    """Return where to cut so that at least *keep* tokens stay; None if there is nothing to cut."""
    previous, entries = _after_summary(conversation, conversation.leaf)
    index = _first_kept(entries, keep, is_open=bool(conversation.open_calls()))
    if index is None:
        return None
    turn = _turn_began(entries, index)
    if turn == index - 1 > 0 and entry_tokens(entries[turn]) <= keep:
        index = turn  # the prompt alone is no turn to split
    return _cut(previous, entries, index)


def cut_at(conversation: Conversation, leaf: Version, first_kept: Version | None) -> Cut:
    """Return the cut that kept the path to *leaf* from *first_kept* on; nothing, for None.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    previous, entries = _after_summary(conversation, leaf)
    kept = (n for n, entry in enumerate(entries) if entry.originator_version == first_kept)
    return _cut(previous, entries, next(kept, len(entries)))


def _after_summary(
    conversation: Conversation, leaf: Version | None
) -> tuple[Compacted | None, list[Entry]]:
    """Return the live entries of the path to *leaf*, the summary that they begin with apart."""
    entries = live_entries(conversation, leaf)
    if entries and isinstance(entries[0], Compacted):
        return entries[0], entries[1:]
    return None, entries


def _cut(previous: Compacted | None, entries: Sequence[Entry], index: int) -> Cut:
    turn = _turn_began(entries, index) if index < len(entries) else index
    return Cut(
        previous=previous,
        history=tuple(entries[:turn]),
        turn=tuple(entries[turn:index]),
        first_kept=entries[index].originator_version if index < len(entries) else 0,
    )


def _turn_began(entries: Sequence[Entry], index: int) -> int:
    """Return where the turn began that goes on at *index*; *index* itself, if that is not here."""
    began = index
    while began > 0 and not _is_prompt(entries[began]):
        began -= 1
    return began if _is_prompt(entries[began]) else index


def _first_kept(entries: Sequence[Entry], keep: int, *, is_open: bool) -> int | None:
    """Return the index of the newest entry from which on *keep* tokens stay and pairs are whole.

    No call is cut off from a result of it, wherever that stands, nor, while calls are open, from
    one that is still to come.
    """
    kept = 0
    for index in range(len(entries) - 1, 0, -1):
        entry = entries[index]
        kept += entry_tokens(entry)
        if isinstance(entry, MessageAppended):
            said = entry.content
            is_open = said.role != "assistant" and (is_open or bool(said.tool_results))
        if kept >= keep and not is_open:
            return index
    return None


def _is_prompt(entry: Entry) -> bool:
    if not isinstance(entry, MessageAppended):
        return False
    said = entry.content
    return said.role == "user" and not said.tool_results


# -- the summary -------------------------------------------------------------------------------


def summary_text(cut: Cut, history: str, turn: str, room: Room) -> str:
    """Return the summary that stands for what is cut off, from the model's two summaries.

    What the user asked for in a split turn follows word for word, and the files that were read
    and changed: neither is left to the model. All of it leaves *room* for what is said next.
    """
    parts = [history] if history else []
    if turn:
        parts.append(f"## The turn under way\n{turn}")
    most = room.summary * _BYTES_PER_TOKEN
    quote = _quote(cut)
    if quote:
        parts.append(f"{_QUOTE_HEADING}\n{shortened(quote, most)}")
    files = _files(cut, most // 2)
    if files:
        parts.append("\n".join([_FILES_HEADING, *files]))
    return "\n\n".join(parts)


def written_by_model(summary: str) -> str:
    """Return a summary without what `summary_text` added to it."""
    return summary.partition(_QUOTE_HEADING)[0].partition(_FILES_HEADING)[0].rstrip()


def _quote(cut: Cut) -> str:
    """Return what the user asked for in the turn that is split; it may have been split before."""
    if cut.turn:
        prompt = cut.turn[0]
        assert isinstance(prompt, MessageAppended)
        return f"[User] {shortened(prompt.content.text, _LONGEST_QUOTE)}"
    if cut.previous is None or any(map(_is_prompt, cut.history)):
        return ""
    return cut.previous.summary.partition(_QUOTE_HEADING)[2].partition(_FILES_HEADING)[0].strip()


def _files(cut: Cut, most: int) -> list[str]:
    """Return the files of all that was ever compacted, as lines: read, and changed.

    Of more than *most* bytes those that were changed, and the newest, are named.
    """
    found: dict[tuple[str, str], None] = {}
    if cut.previous is not None:
        listed = cut.previous.summary.partition(_FILES_HEADING)[2]
        found.update(dict.fromkeys(_FILES.findall(listed)))
    verbs = {"read": "read", "write": "changed", "edit": "changed"}
    for entry in (*cut.history, *cut.turn):
        if isinstance(entry, MessageAppended):
            for call in entry.content.tool_uses:
                verb, path = verbs.get(call["name"]), call["input"].get("path")
                if verb is not None and isinstance(path, str) and "\n" not in path:
                    found.pop((verb, path), None)
                    found[verb, path] = None
    newest_first, lines = list(reversed(found)), list[str]()
    for verb, path in sorted(newest_first, key=itemgetter(0)):
        line = f"- {verb}: `{path}`"
        most -= len(line.encode()) + 1
        if most >= 0:
            lines.append(line)
    return sorted(lines)
