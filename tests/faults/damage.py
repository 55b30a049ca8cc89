"""Logs as commands write them, and everything that may happen to their bytes.

    history = data.draw(histories())          # a `History`: its id, bytes and lines
    hurt = data.draw(corrupted(history))      # the same bytes after one to three misfortunes
    with hospital(history, hurt) as conversations: …

All is deterministic: ids, times and the header do not depend on when or where a test runs.
"""

import re
import shutil
import tempfile
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from uuid import UUID

from eventsourcing.persistence import JSONTranscoder
from hypothesis import strategies as st

from app.application import Conversations
from domain.conversation import Conversation
from domain.events import Forked
from domain.projections.context import PROJECTION
from domain.projections.requests import Requests
from infrastructure.jsonl import life_cycle
from infrastructure.jsonl.line import encode_header
from infrastructure.jsonl.store import Store
from infrastructure.mapper import ConversationMapper
from tests import builders as b

CHILD = UUID("01920000-0000-7000-8000-000000000002")
CREATED = "2026-01-02T03:04:05.000000Z"
WORDS = (
    "hello", 'a "quoted" }{ {"v":3} word', "two\nlines", "\u2028\x85 separators", "\0 nul", "\U0001d11e",
    "long " * 60, "back\\slash",
)  # fmt: skip
SCRATCH = "/dev/shm" if Path("/dev/shm").is_dir() else None
mapper = ConversationMapper(JSONTranscoder())


@dataclass(frozen=True)
class History:
    """A log as it was written."""

    id: UUID
    data: bytes

    @property
    def lines(self):
        """The lines of its events, without the header and without newlines."""
        return self.data.split(b"\n")[1:-1]


# -- logs written by commands --------------------------------------------------------------------


class Scribe:
    """Does with a conversation what the agent does, and saves as it does."""

    def __init__(self):
        self.talk = b.new_conversation()
        self.requests = Requests(self.talk)
        self.saves, self.count = [], 0
        self.prompt()

    def save(self):
        pending = self.talk.collect_events()
        if pending:
            self.saves.append([mapper.to_stored_event(event) for event in pending])

    def word(self):
        self.count += 1
        return f"{self.count} {WORDS[self.count % len(WORDS)]}"

    def prompt(self):
        self.talk.close_open_calls()
        self.talk.append_prompt(self.word())
        self.save()

    def _answer(self, *blocks, stop_reason):
        self.talk.append_answer(
            list(blocks),
            stop_reason=stop_reason,
            usage={"input_tokens": 3, "output_tokens": 2},
            request_digest=self.requests.digest(self.talk.leaf),
            request_version=self.talk.version,
            projection=PROJECTION,
        )
        self.save()

    def answer(self):
        self._answer(b.text(self.word()), stop_reason="end_turn")
        self.talk.end_turn("done")
        self.save()

    def call(self):
        """Three calls: one has its result, one was started, one was not."""
        self.talk.close_open_calls()
        names = [f"call_{self.count}_{place}" for place in "abc"]
        calls = [b.tool_use(name, command=self.word()) for name in names]
        self._answer(b.thinking("hm"), *calls, stop_reason="tool_use")
        for name in names[:2]:
            self.talk.start_tool(name)
            self.save()
        self.talk.append_tool_result(names[0], self.word())
        self.save()

    def branch(self):
        self.talk.move_leaf(sorted(self.talk.entries)[len(self.talk.entries) // 2])
        self.save()

    def leave(self):
        self.talk.leave_branch(min(self.talk.entries), self.word())
        self.save()

    def compact(self):
        path = self.talk.path(self.talk.leaf)
        kept = path[len(path) // 2].originator_version
        self.talk.compact(self.word(), first_kept=kept, tokens_before=9, reason="size")
        self.save()

    def mark(self):
        self.talk.label(self.talk.leaf, self.word().split()[0] + " mark")
        self.talk.rename(self.word())
        self.talk.append_note("note", self.word(), visible=True)
        self.save()

    def withhold(self):
        entries = self.talk.path(self.talk.leaf)
        self.talk.withhold([each.originator_version for each in entries], ["thinking"], reason="no")
        self.save()

    def queue(self):
        self.talk.queue_prompt(self.word())
        self.save()


DEEDS = ("prompt", "answer", "call", "branch", "leave", "compact", "mark", "queue", "withhold")


def history_of(deeds, *, forked_at=None):
    """Return the log of *deeds*; *forked_at*: of a fork of it (0…1 of its entries) that went on."""
    scribe = Scribe()
    for deed in deeds:
        getattr(scribe, deed)()
    with tempfile.TemporaryDirectory(dir=SCRATCH) as folder:
        store = Store(Path(folder), durable=False)
        for save in scribe.saves:
            store.insert(save)
        history = b.ID
        if forked_at is not None:
            history = CHILD
            _fork(store, scribe, forked_at)
        data = store.path_of(history).read_bytes()
        store.close()
    body = data.split(b"\n", 1)[1]
    return History(history, encode_header(str(history), CREATED) + body)


def _fork(store, scribe, forked_at):
    entries = sorted(scribe.talk.entries)
    entry = entries[int(forked_at * (len(entries) - 1))]
    forked = Forked(
        originator_id=CHILD,
        originator_version=entry + 1,
        timestamp=b.NOW,
        source_id=b.ID,
        source_version=entry,
        entry=entry,
    )
    life_cycle.fork(store, b.ID, entry, CHILD, [mapper.to_stored_event(forked)])
    stored = store.log(CHILD).read()
    talk = Conversation.replay(
        None, [mapper.to_domain_event(_stored(CHILD, line)) for line in stored]
    )
    talk.clock = b.Clock()
    talk.close_open_calls()
    talk.append_prompt("in the fork")
    store.insert([mapper.to_stored_event(event) for event in talk.collect_events()])


def _stored(conversation, line):
    from eventsourcing.persistence import StoredEvent

    return StoredEvent(conversation, line.version, line.topic, line.state)


histories = st.builds(
    history_of,
    st.lists(st.sampled_from(DEEDS), max_size=8),
    forked_at=st.none() | st.none() | st.floats(0, 1),
)

# -- what may happen to bytes --------------------------------------------------------------------


def _place(draw, data):
    return draw(st.integers(0, max(len(data) - 1, 0)))


def _bits(draw, data):
    hurt = bytearray(data)
    for _ in range(draw(st.integers(1, 4))):
        hurt[_place(draw, data)] ^= 1 << draw(st.integers(0, 7))
    return bytes(hurt)


def _cut(draw, data):
    start = _place(draw, data)
    return data[:start] + data[start + draw(st.integers(1, 300)) :]


def _insertion(draw, data):
    place = _place(draw, data)
    return data[:place] + draw(st.binary(min_size=1, max_size=40)) + data[place:]


def _nul_run(draw, data):
    start, length = _place(draw, data), draw(st.integers(1, 500))
    length = min(length, len(data) - start)
    return data[:start] + b"\0" * length + data[start + length :]


def _end_lost(draw, data):
    return data[: _place(draw, data)]


def _glue(draw, data):
    newlines = [match.start() for match in re.finditer(b"\n", data)]
    place = draw(st.sampled_from(newlines or [0]))
    return data[:place] + data[place + 1 :]


def _split(draw, data):
    place = _place(draw, data)
    return data[:place] + b"\n" + data[place:]


def _crlf(_, data):
    return data.replace(b"\n", b"\r\n")


def _bom(draw, data):
    lines = data.split(b"\n")
    place = draw(st.sampled_from([0, draw(st.integers(0, len(lines) - 1))]))
    lines[place] = b"\xef\xbb\xbf" + lines[place]
    return b"\n".join(lines)


def _doubled_lines(draw, data):
    lines = data.splitlines(keepends=True)
    first = draw(st.integers(0, len(lines) - 1))
    run = lines[first : first + draw(st.integers(1, 4))]
    place = draw(st.integers(first, len(lines)))
    return b"".join([*lines[:place], *run, *lines[place:]])


def _moved_lines(draw, data):
    lines = data.splitlines(keepends=True)
    first = draw(st.integers(0, len(lines) - 1))
    run = lines[first : first + draw(st.integers(1, 3))]
    del lines[first : first + len(run)]
    place = draw(st.integers(0, len(lines)))
    return b"".join([*lines[:place], *run, *lines[place:]])


def _lost_lines(draw, data):
    lines = data.splitlines(keepends=True)
    first = draw(st.integers(0, len(lines) - 1))
    del lines[first : first + draw(st.integers(1, 4))]
    return b"".join(lines)


def _foreign_lines(draw, data):
    lines, foreign = data.splitlines(keepends=True), FOREIGN.data.splitlines(keepends=True)
    first = draw(st.integers(0, len(foreign) - 1))
    run = foreign[first : first + draw(st.integers(1, 4))]
    place = draw(st.integers(0, len(lines)))
    return b"".join([*lines[:place], *run, *lines[place:]])


def _header_changed(draw, data):
    head = draw(
        st.sampled_from(
            [b"", b"???\n", b"{}\n", encode_header(str(b.SOURCE), CREATED), b'{"format":"pi/3"}\n']
        )
    )
    return head + data.partition(b"\n")[2]


def _first_event_lost(_, data):
    head, _, rest = data.partition(b"\n")
    return head + b"\n" + rest.partition(b"\n")[2]


def _blanks(draw, data):
    lines = data.split(b"\n")
    lines[draw(st.integers(0, len(lines) - 1))] += draw(
        st.sampled_from([b" ", b"\t", b"\r", b"\n"])
    )
    return b"\n".join(lines)


FOREIGN = history_of(["answer", "call", "prompt", "answer"])
KINDS = {
    function.__name__.strip("_"): function
    for function in (
        _bits, _cut, _insertion, _nul_run, _end_lost, _glue, _split, _crlf, _bom, _doubled_lines,
        _moved_lines, _lost_lines, _foreign_lines, _header_changed, _first_event_lost, _blanks,
    )
}  # fmt: skip


@st.composite
def corrupted(draw, history, kinds=tuple(KINDS), most=3):
    """The bytes of *history* after one to *most* misfortunes of these *kinds*."""
    data = history.data
    for kind in draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=most)):
        if data.strip():
            data = KINDS[kind](draw, data)
    return data


@contextmanager
def hospital(history, data):
    """A store that holds nothing but the damaged *data*, and the application over it."""
    folder = Path(tempfile.mkdtemp(dir=SCRATCH))
    try:
        (folder / f"{history.id}.jsonl").write_bytes(data)
        environment = {"LEFTFOLD_STORE": str(folder), "LEFTFOLD_DURABILITY": "os"}
        with Conversations(environment, clock=b.Clock()) as conversations:
            yield conversations
    finally:
        shutil.rmtree(folder)
