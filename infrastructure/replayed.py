"""Events as a replay takes them: in place of messages stand runs of some that nobody has read."""

from __future__ import annotations

from functools import cached_property
from typing import TYPE_CHECKING, Any

import msgspec

from domain.events import MessageAppended
from domain.unread import Bodies, Run
from infrastructure.event_store import ConversationEvents, placed
from infrastructure.jsonl.one_pass import NotAsWrittenError

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from uuid import UUID

    from domain.events import Event, Version
    from domain.unread import Source, Told, Unread
    from infrastructure.jsonl.one_pass import Block


class ReplayedEvents(ConversationEvents):
    """Events of conversations, of which messages are unread."""

    def _of_block(self, originator_id: UUID, block: Block) -> Iterator[Any]:
        unread = messages_of(block, Piece(originator_id, block.data, block.lines[0].version))
        facts: list[tuple[int, Event]] = []
        if len(unread.versions) < len(block.lines):
            for place, line in enumerate(block.lines):
                if type(line.state) is not MessageAppended:
                    facts.append((place - len(facts), placed(originator_id, line)))
        return in_order(unread, facts)


class Piece:
    """Lines of a log that follow one another: their bytes, and the version of the *first*."""

    def __init__(self, originator_id: UUID, data: bytes, first: Version) -> None:
        self._id, self._data, self._first = originator_id, data, first

    @cached_property
    def _starts(self) -> list[int]:
        """Where each line begins, and where one more would."""
        data, after = self._data, 0
        return [0, *(after := data.index(b"\n", after) + 1 for _ in range(data.count(b"\n")))]

    def line(self, version: Version) -> memoryview:
        """Return the line *version*."""
        place = version - self._first
        return memoryview(self._data)[self._starts[place] : self._starts[place + 1]]

    def find(self, version: Version, part: memoryview) -> int:
        """Return where *part* of the line *version* begins, or the same bytes before it."""
        return self._data.index(part, self._starts[version - self._first])

    def message(self, version: Version) -> MessageAppended:
        """Return the message *version*."""
        message = _read_line(self.line(version)).state
        msgspec.structs.force_setattr(message, "originator_id", self._id)
        msgspec.structs.force_setattr(message, "originator_version", version)
        return message


class _MessageLine(msgspec.Struct):
    state: MessageAppended


_read_line = msgspec.json.Decoder(_MessageLine).decode


def messages_of(block: Block, source: Source) -> Unread:
    """Return the messages of *block*; what they have alike is kept once.

    Raises:
        NotAsWrittenError: one was written by a newer version of this program.
    """
    lines = [line for line in block.lines if type(line.state) is MessageAppended]
    messages = [line.state for line in lines]
    if {message.written_as for message in messages} - {1}:
        raise NotAsWrittenError
    alike: dict[str | None, str | None] = {}
    return Bodies(
        source,
        [line.version for line in lines],
        [message.parent for message in messages],
        [alike.setdefault(message.model, message.model) for message in messages],
        bodies=[message.message for message in messages],
        stop_reasons=[alike.setdefault(m.stop_reason, m.stop_reason) for m in messages],
    )


def in_order(unread: Unread, facts: Iterable[tuple[int, Event]]) -> Iterator[Told]:
    """Yield the messages as runs, and *facts* among them, each behind so many messages."""
    first = 0
    for after, event in facts:
        if first < after:
            yield Run(unread, first, after)
            first = after
        yield event
    if first < len(unread.versions):
        yield Run(unread, first, len(unread.versions))
