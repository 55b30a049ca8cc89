"""Compaction as a policy: when, where to cut, what to ask for, and what makes a good summary.

No model is called here. A cut keeps the recent past, never separates a call from its results, and
never loses the last thing the user said: a turn that is too long to be kept whole is split, and
what the user asked for in it goes into the summary word for word (cases K1, K3).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from domain.events import BranchSummarized, Compacted, Entry, MessageAppended, NoteAppended
from domain.projections.context import context, live_entries
from domain.raw_messages import result_text

if TYPE_CHECKING:
    from collections.abc import Generator, Iterator, Sequence

    from domain.conversation import Conversation
    from domain.events import Version
    from domain.limits import Room
    from domain.raw_messages import Json, JsonObject

_BYTES_PER_TOKEN = 4
_IMAGE_TOKENS = 1_600
_TOKENS_AROUND = 16  # what a message is wrapped in, and remarks that the projection adds
_LONGEST_RESULT = 2_000
_LONGEST_QUOTE = 8_000
_WORDS_AROUND = 700
_CUT_SHORT = ("interrupted", "failed")
_FILES = re.compile(r"^- (read|changed): `(.+)`$", re.MULTILINE)
_QUOTE_HEADING = "## The user's request, word for word"
_FILES_HEADING = "## Files read and changed"


# -- how much ----------------------------------------------------------------------------------


def estimate(value: object) -> int:
    """Return about how many tokens a JSON-like *value* is: four bytes of UTF-8 each."""
    return -(-len(msgspec.json.encode(value)) // _BYTES_PER_TOKEN)


def entry_tokens(entry: Entry) -> int:
    """Return about how many tokens *entry* is in the context."""
    match entry:
        case MessageAppended():
            images = sum(_is_image(raw) for raw in entry.said.blocks)
            size = 0 if images else len(entry.message)
            return size // _BYTES_PER_TOKEN + _TOKENS_AROUND + images * _IMAGE_TOKENS
        case Compacted(summary=text) | BranchSummarized(summary=text):
            return estimate(text)
        case NoteAppended(content=text, visible=True):
            return estimate(text)
        case _:
            return 0


def _is_image(raw: Json) -> bool:
    return isinstance(raw, dict) and raw.get("type") == "image"


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
    entries = live_entries(conversation, conversation.leaf)
    previous = None
    if entries and isinstance(entries[0], Compacted):
        previous, entries = entries[0], entries[1:]
    index = _first_kept(entries, keep)
    if index is None:
        return None
    turn_began = index
    while turn_began > 0 and not _is_prompt(entries[turn_began]):
        turn_began -= 1
    if not _is_prompt(entries[turn_began]):
        turn_began = index
    if turn_began == index - 1 > 0 and entry_tokens(entries[turn_began]) <= keep:
        index = turn_began  # the prompt alone is no turn to split
    return Cut(
        previous=previous,
        history=tuple(entries[:turn_began]),
        turn=tuple(entries[turn_began:index]),
        first_kept=entries[index].originator_version,
    )


def _first_kept(entries: Sequence[Entry], keep: int) -> int | None:
    """Return the index of the newest entry from which on *keep* tokens stay and pairs are whole."""
    kept = 0
    for index in range(len(entries) - 1, 0, -1):
        kept += entry_tokens(entries[index])
        if kept >= keep and _may_begin(entries[index]):
            return index
    return None


def _may_begin(entry: Entry) -> bool:
    """Whether the kept part may begin here: not with the results of calls that are cut off."""
    return not (isinstance(entry, MessageAppended) and entry.said.tool_results)


def _is_prompt(entry: Entry) -> bool:
    if not isinstance(entry, MessageAppended):
        return False
    said = entry.said
    return said.role == "user" and not said.tool_results


# -- what to ask for ---------------------------------------------------------------------------

_SYSTEM = (
    "You summarise conversations between a user and a coding agent, so that the agent can go on "
    "from your summary alone. You do not continue the conversation and you call no tools: you "
    "write the summary and nothing else."
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


def summary_requests(
    entries: Sequence[Entry],
    *,
    model: str,
    room: Room,
    previous: str,
    focus: str = "",
    is_turn: bool = False,
) -> Generator[JsonObject, str, None]:
    """Yield the request bodies that summarise *entries* piece by piece; each fits the window.

    Send the summary that one yields back in (``send``) as the previous summary of the next.
    """
    # Beside the piece there are the previous summary, the words around both, and the answer.
    for piece in _pieces(entries, room.limit - 2 * room.summary - _WORDS_AROUND):
        parts = ["Summarise this conversation" + (" so far, within one turn." if is_turn else ".")]
        if previous:
            parts.append(
                "There is a summary of what came before. Update it: keep what still holds, add "
                f"what is new.\n<summary>\n{previous}\n</summary>"
            )
        parts += [f"<conversation>\n{piece}\n</conversation>", _HEADINGS]
        if focus:
            parts.append(f"Pay special attention to: {_shortened(focus, _LONGEST_RESULT)}")
        text = "\n\n".join(parts)
        answered = yield {
            "model": model,
            "max_tokens": room.summary,
            "system": _SYSTEM,
            "messages": [{"role": "user", "content": [{"type": "text", "text": text}]}],
            "stream": True,
        }
        previous = answered or previous


def _pieces(entries: Sequence[Entry], tokens: int) -> Iterator[str]:
    """Yield *entries* as text, in pieces of at most about *tokens* tokens."""
    most = max(tokens * 3, 400)  # three bytes a token: safer than the estimate, for any script
    piece: list[str] = []
    size = 0
    for entry in entries:
        text = _shortened(_as_text(entry), most)
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
            role, blocks = entry.said
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
            return f"[Tool call] {name} {_shortened(shown, _LONGEST_RESULT)}"
        case {"type": "tool_result", "tool_use_id": str()}:
            text = result_text(raw.get("content"))
            return f"[Tool result] {_shortened(text, _LONGEST_RESULT)}"
        case _:
            return ""


def _shortened(text: str, most: int) -> str:
    """Return *text* in at most about *most* bytes: its beginning and its end."""
    raw = text.encode()
    if len(raw) <= most:
        return text
    half = most // 2
    head, tail = raw[:half].decode(errors="ignore"), raw[-half:].decode(errors="ignore")
    return f"{head}\n[… {len(raw) - 2 * half:,} bytes left out …]\n{tail}"


# -- the summary -------------------------------------------------------------------------------


def summary_text(cut: Cut, history: str, turn: str) -> str:
    """Return the summary that stands for what is cut off, from the model's two summaries.

    What the user asked for in a split turn follows word for word, and the files that were read
    and changed: neither is left to the model.
    """
    parts = [history] if history else []
    if turn:
        parts.append(f"## The turn under way\n{turn}")
    quote = _quote(cut)
    if quote:
        parts.append(f"{_QUOTE_HEADING}\n{quote}")
    files = _files(cut)
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
        return f"[User] {_shortened(prompt.said.text, _LONGEST_QUOTE)}"
    if cut.previous is None or any(map(_is_prompt, cut.history)):
        return ""
    return cut.previous.summary.partition(_QUOTE_HEADING)[2].partition(_FILES_HEADING)[0].strip()


def _files(cut: Cut) -> list[str]:
    """Return the files of all that was ever compacted, as lines: read, and changed."""
    found: dict[tuple[str, str], None] = {}
    if cut.previous is not None:
        listed = cut.previous.summary.partition(_FILES_HEADING)[2]
        found.update(dict.fromkeys(_FILES.findall(listed)))
    verbs = {"read": "read", "write": "changed", "edit": "changed"}
    for entry in (*cut.history, *cut.turn):
        if isinstance(entry, MessageAppended):
            for call in entry.said.tool_uses:
                verb, path = verbs.get(call["name"]), call["input"].get("path")
                if verb is not None and isinstance(path, str) and "\n" not in path:
                    found[verb, path] = None
    return [f"- {verb}: `{path}`" for verb, path in sorted(found)]
