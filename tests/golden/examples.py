"""One full and one bare example of every event; their stored bytes are in events.jsonl.

Run ``python -m tests.golden.examples`` after adding an example to `LATER`: it adds the missing lines, and never
changes one that is there. A line that no longer matches is a broken file format, not a stale file.
"""

import json
from pathlib import Path
from uuid import UUID

import msgspec
from eventsourcing.persistence import JSONTranscoder

from domain import events
from infrastructure.mapper import ConversationMapper
from tests import builders as b

FILE = Path(__file__).with_name("events.jsonl")
ASKED = events.SummaryRequests(
    version=9,
    leaf=8,
    window=4000,
    projection="p2",
    steps=(events.SummaryStep("c1:00", "so far"), events.SummaryStep("c1:01")),
)
USAGE = {"input_tokens": 12, "output_tokens": 3, "cache_read_input_tokens": 7}

FULL = [
    b.started("/home/é", program="leftfold", version="0.1.0", metadata={"k": ["v", None]}),
    b.forked(12, entry=9, source_id=UUID("01920000-0000-7000-8000-000000000002")),
    b.user("a\u2028b\x85\0 𝄞"),
    b.assistant(
        b.thinking("hm", "sig=="), b.redacted("xyz"), b.text("yes"), b.tool_use("a", command="ls"),
        parent=3, stop_reason="tool_use", usage=USAGE, response_id="msg_1", duration=1.25,
        request_digest="c1:00", request_version=3,
    ),
    b.result("a", [b.text("out"), b.image()], is_error=True, parent=4),
    b.compacted(
        "the past", first_kept=3, parent=5, tokens_before=9000, model=b.MODEL, usage=USAGE, reason="full"
    ),
    b.branch_summarized("a try", left=6, parent=3, model=b.MODEL, usage=USAGE),
    b.note("listing", kind="shell", visible=True, parent=None),
    b.model("claude-test", 8192),
    b.thinking_level("high"),
    b.instructions("Be brief.", (b.BASH,)),
    b.tool_started("toolu_1"),
    b.queued("and then"),
    b.withdrawn(13),
    b.turn_ended("failed", error=events.TurnError("overloaded", "busy", "req_1"), spent=USAGE),
    b.moved(3),
    b.labelled(3, "here"),
    b.renamed("A name"),
    b.archived(),
]  # fmt: skip

BARE = [
    b.started("/w"),
    b.forked(1),
    b.message({"role": "user", "content": "hi"}, parent=None),
    b.compacted("s", parent=None),
    b.branch_summarized("s", left=1, parent=None),
    b.note("", kind="", visible=False, parent=None),
    b.model("m", 1),
    b.thinking_level("off"),
    b.instructions("", ()),
    b.tool_started(""),
    b.queued(""),
    b.withdrawn(1),
    b.turn_ended("done"),
    b.moved(None),
    b.labelled(1, None),
    b.renamed(None),
    b.archived(False),
]

LATER = [
    b.model("m", 1, caching=True),
    b.approved("toolu_1"),
    b.approved("toolu_2", "always", command="ls"),
    b.approved("toolu_3", "no", tool="write", reason="not there"),
    b.learned("m", context_window=8192, max_tokens=2048),
    b.learned("m"),
    b.withheld([3, 5], ["image", "document"], reason="Could not process image"),
    b.withheld([], []),
    b.compacted("s", first_kept=3, parent=None, asked=ASKED),
    b.branch_summarized(
        "s", left=1, parent=None, asked=msgspec.structs.replace(ASKED, is_whole=True, focus="é")
    ),
    b.result("toolu_4", "alpha", parent=5, seen={"/w/a.txt": "8ed3f6ad685b959ead7022518e1af76c"}),
    b.started("/home/me", seal="5ea1"),
    b.assistant(b.tool_use("a", command="ls"), parent=None, stop_reason="tool_use", seal="5ea1"),
    b.approved("toolu_2", "always", cwd="/home/me", seal="5ea1"),
    b.queued("and then", seal="5ea1"),
]

EXAMPLES = b.numbered(*FULL, *BARE, *LATER)
mapper = ConversationMapper(JSONTranscoder())


def golden():
    """The lines of the file: topic, version of the event, and its state as text."""
    return [json.loads(line) for line in FILE.read_bytes().split(b"\n") if line]


def _line(event):
    stored = mapper.to_stored_event(event)
    line = {
        "topic": stored.topic,
        "version": stored.originator_version,
        "state": stored.state.decode(),
    }
    return json.dumps(line, ensure_ascii=True) + "\n"


if __name__ == "__main__":
    written = len(golden()) if FILE.exists() else 0
    with FILE.open("a", encoding="ascii") as file:
        file.writelines(map(_line, EXAMPLES[written:]))
