"""What is measured on: messages of about 1 KB, and logs of them written by our own application.

The messages are of the kind and size of the peers' scripts (``../shared/peers/common.py``), not the
very same: user, assistant with a call, tool result, and again.
"""

import random
from contextlib import contextmanager
from datetime import UTC, datetime
from functools import partial
from itertools import islice
from pathlib import Path
from uuid import UUID

import msgspec

from app.application import Conversations
from domain.conversation import Conversation
from domain.events import MessageAppended

WORDS = [
    "def",
    "return",
    "import",
    "class",
    "self",
    "async",
    "await",
    "event",
    "session",
    "append",
    "replay",
    "fork",
    "resume",
    "message",
    "tool",
    "result",
    "stdout",
    "stderr",
    "error",
    "warning",
    "path/to/file.py",
    "line",
    "42",
    '"quoted"',
    "\\n",
    "{json:",
    "true}",
    "pytest",
    "passed",
    "failed",
    "0x7f",
    "git",
    "diff",
    "--stat",
    "commit",
    "refactor",
    "the",
    "a",
    "to",
    "of",
    "and",
    "in",
    "that",
    "is",
    "for",
    "it",
    "with",
    "as",
    "on",
    "be",
    "at",
    "by",
    "this",
    "from",
    "or",
    "an",
]
KINDS = 300
"""How many different messages there are: making text is no part of what is measured."""


def text(rng, size):
    words, length = [], 0
    while length < size:
        words.append(rng.choice(WORDS))
        length += len(words[-1]) + 1
    return " ".join(words)[:size]


def _message(number):
    rng = random.Random(number)
    match number % 3:
        case 0:
            return {"role": "user", "content": [{"type": "text", "text": text(rng, 930)}]}
        case 1:
            call = {"command": text(rng, 330), "timeout": 120}
            said = {"type": "text", "text": text(rng, 500)}
            asked = {"type": "tool_use", "id": "", "name": "bash", "input": call}
            return {"role": "assistant", "content": [said, asked]}
        case _:
            part = {"type": "text", "text": text(rng, 850)}
            result = {"type": "tool_result", "tool_use_id": "", "is_error": False}
            return {"role": "user", "content": [result | {"content": [part]}]}


_MESSAGES = [_message(number) for number in range(KINDS)]


def message(number):
    """Return message *number* of every conversation; calls and results carry ids of their own."""
    body = dict(_MESSAGES[number % KINDS])
    call_id = f"toolu_{number // 3:08d}"
    match number % 3:
        case 1:
            said, asked = body["content"]
            body["content"] = [said, asked | {"id": call_id}]
        case 2:
            body["content"] = [body["content"][0] | {"tool_use_id": call_id}]
    return body


def append(talk, number):
    """Append message *number* by the aggregate's own commands."""
    body = message(number)
    match number % 3:
        case 0:
            talk.append_prompt(body["content"][0]["text"])
        case 1:
            usage = {"input_tokens": 1000, "output_tokens": 300}
            talk.append_answer(body["content"], stop_reason="tool_use", usage=usage)
        case _:
            result = body["content"][0]
            talk.append_tool_result(result["tool_use_id"], result["content"])


def begin(conversation_id, timestamp, cwd="/work/shop"):
    talk = Conversation.start(conversation_id, timestamp=timestamp, cwd=cwd)
    talk.change_model("bench-model", max_tokens=8192)
    talk.change_thinking_level("off")
    talk.change_instructions("You are a coding agent.", [])
    return talk


@contextmanager
def conversations(folder: Path, *, durable=False, snapshots=True):
    """Run with an application over a store."""
    environment = {
        "LEFTFOLD_STORE": str(folder),
        "LEFTFOLD_DURABILITY": "fsync" if durable else "os",
        "IS_SNAPSHOTTING_ENABLED": "y" if snapshots else "n",
    }
    app = Conversations(environment)
    try:
        yield app
    finally:
        app.close()


def fill(folder: Path, entries, *, compact_at=None, kept=500, at_once=1, cwd="/work/shop") -> UUID:
    """Write a conversation of so many *entries*, one at a time as in life; return its id.

    With *compact_at*, a compaction stands after that many entries and keeps the last *kept*.
    """
    with conversations(folder) as app:
        at_hand = app.start(partial(begin, cwd=cwd))
        for first in range(0, entries, at_once):
            numbers = range(first, min(first + at_once, entries))
            at_hand.record(partial(_append_all, numbers=numbers))
            if numbers.stop == compact_at:
                newest = reversed(at_hand.conversation.entries)
                first_kept = next(islice(newest, min(kept, compact_at) - 1, None))
                at_hand.record(partial(_compact, first_kept=first_kept))
        return at_hand.id


def _append_all(talk, numbers):
    for number in numbers:
        append(talk, number)


def _compact(talk, first_kept):
    talk.compact("What happened.", first_kept=first_kept, tokens_before=0, reason="manual")


def state(number):
    """Return the bytes of a `MessageAppended` event with message *number*."""
    raw = msgspec.Raw(msgspec.json.encode(message(number)))
    now = datetime(2026, 12, 1, tzinfo=UTC)
    return msgspec.json.encode(MessageAppended(timestamp=now, parent=number - 1, message=raw))
