"""Calls, results and roles: lays out what entries say as the messages of a request, as JSON.

A plain message is passed on as it stands in the log. What any other says is decoded, put into the
shape that the API takes, and encoded.
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any, Final, TypeAlias

import msgspec

from domain.block_shapes import is_name
from domain.calls import calls_of
from domain.events import MessageAppended
from domain.plain import ANSWER, RESULT, TEXTS, THINKS_FIRST, USER, USER_END
from domain.projections.media import Media, Plan
from domain.projections.parts import THINKING, Parts, call_block, text_block
from domain.unread import Run

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.conversation import Conversation
    from domain.events import Entry, Version
    from domain.messages import JsonObject
    from domain.projections.parts import Part

LOST = "(A message is missing here: this part of the conversation was lost.)"
CONTINUE = "(Continue.)"

_Asked: TypeAlias = "tuple[str | None, str, str | None]"
"""A call of the newest answer: its id in the log, its id in the request, why it cannot run."""

_encode = msgspec.json.encode
_ROUNDS = re.compile(rb"(?:[\x13\x17\x1f]\x02*\x01*)+(?=[\x03\x07\x0f\x13\x17\x1f])").match
"""Rounds and the next answer, by their kinds."""
_BETWEEN: Final = {
    (one, other): {
        (True, False): b"," + USER, (False, False): b",", (False, True): USER_END + b",",
    }.get((one >= ANSWER, other >= ANSWER), b"")
    for one in range(32) for other in range(32)
}  # fmt: skip
"""What is between the parts of two messages, by their kinds."""


class MessageBuilder:
    """Lays entries out as messages: alternating roles, every call answered once, in call order.

    Attributes:
        pieces: The messages that are whole, as JSON in pieces, with a comma behind each message:
            whatever is added, they stay.
        presumed: Calls among them without a result: id, version of the entry, what is known.
        media: The images and documents among them, and by which plan they have to be placed.
    """

    def __init__(self, conversation: Conversation, plan: Plan = Plan()) -> None:  # noqa: B008 - frozen
        self.pieces: list[bytes | memoryview] = []
        self.presumed: list[tuple[str, Version, str]] = []
        self.media = Media(plan)
        self._conversation = conversation
        self._parts = Parts(conversation, self.media)
        self._used_ids: set[str] = set()
        self._calls: list[_Asked] = []
        self._asked_at: Version = 0
        self._thinks_first = False
        self._results: dict[str | None, bytes | memoryview] = {}
        self._said: list[bytes | memoryview] = []

    @property
    def may_think(self) -> bool:
        """Whether a model that thinks by budget may: not in a tool loop that it began without."""
        return not self._calls or self._thinks_first

    def add(self, entry: Entry | Run) -> None:
        """Add what *entry*, the next one of the path, or a run of them, says."""
        if isinstance(entry, MessageAppended):
            entry = Run.of(entry)
        if isinstance(entry, Run):
            self._add_run(entry)
        else:
            self._add_decoded(entry)

    def last_message(self, *, otherwise: str = CONTINUE, question: str = "") -> bytes:
        """Return the message with which the user's turn would end now; nothing changes.

        It ends with a *question*, if there is one; if it says nothing, it says *otherwise*.
        """
        content: list[bytes | memoryview] = []
        for asked in self._calls:
            result = self._results.get(asked[0])
            content.append(self._unanswered(asked) if result is None else result)
        content += self._said
        if question or not content:
            content += map(_encode, text_block(question or otherwise))
        return b"".join((USER, b",".join(content), USER_END))

    # -- as it stands in the log ---------------------------------------------------------------

    def _add_run(self, run: Run) -> None:
        """Add what the messages of *run* say, the plain ones just as they are."""
        unread, kinds = run.unread, self._parts.kinds(run)
        ids = unread.shapes.ids[run.first : run.after]
        parts = unread.parts(run.first, run.after)
        place, versions = 0, run.versions
        while place < len(versions):
            if kinds[place] == TEXTS:
                self._said.append(parts[place])
            elif kinds[place] == RESULT and self._is_sent_as_it_is(ids[place][0]):
                self._results.setdefault(ids[place][0], parts[place])
            elif kinds[place] >= ANSWER and self._used_ids.isdisjoint(ids[place]):
                self._end_user_message()
                place = self._pass_on_rounds(place, kinds, ids, parts)
                calls: list[_Asked] = [(each, each, None) for each in ids[place]]
                self._begin_answer(versions[place], calls)
                self._thinks_first = bool(kinds[place] & THINKS_FIRST)
            else:
                self._add_decoded(unread.read(versions[place]))
            place += 1

    def _pass_on_rounds(
        self, first: int, kinds: bytes, ids: Sequence[tuple[str, ...]], parts: Sequence[memoryview]
    ) -> int:
        """Add the answer at the place *first*, and all rounds from there, up to the next answer.

        Return its place; if an id is not new, *first*: the answer is added alone.
        """
        rounds = _ROUNDS(kinds, first)
        last = rounds.end() if rounds else first
        calls = _calls(kinds, ids, first, last)
        if len(set(calls)) < len(calls) or not self._used_ids.isdisjoint(calls):
            last, calls = first, list(ids[first])
        self._used_ids.update(calls)
        pieces: list[bytes | memoryview] = [b","] * (2 * (last + 1 - first))
        pieces[::2] = parts[first : last + 1]
        pieces[1:-1:2] = map(
            _BETWEEN.__getitem__, zip(kinds[first:last], kinds[first + 1 : last + 1], strict=True)
        )
        self.pieces.append(b"".join(pieces))
        return last

    def _is_sent_as_it_is(self, call_id: str) -> bool:
        """Whether a call *call_id* of the newest answer, if there is one, has that id when sent."""
        for asked, sent_as, _ in self._calls:
            if asked == call_id:
                return sent_as == call_id
        return True

    # -- decoded, changed and encoded ----------------------------------------------------------

    def _add_decoded(self, entry: Entry) -> None:
        for part in self._parts.of(entry):
            self._add(part)

    def _add(self, part: Part) -> None:
        if part.role == "assistant":
            if part.blocks:
                # Between two answers in a row, the request of the second had this user message.
                self._end_user_message(otherwise=LOST if part.follows_loss else CONTINUE)
                self._add_answer(part)
            return
        for raw in part.blocks:
            if raw.get("type") != "tool_result":
                self._said.append(_encode(raw))
                continue
            call_id = raw["tool_use_id"]
            sent_as = next((sent_as for asked, sent_as, _ in self._calls if asked == call_id), None)
            if sent_as is not None:
                is_error = raw.get("is_error") is True
                result = _result(sent_as, raw["content"], is_error=is_error)
                self._results.setdefault(call_id, result)

    def _add_answer(self, part: Part) -> None:
        calls = [
            (call.id, self._unique_id(call.raw.get("id")), call.fault)
            for call in calls_of(part.blocks)
        ]
        self._begin_answer(part.version, calls)
        self._thinks_first = part.blocks[0]["type"] in THINKING
        ids = iter(calls)
        content = [
            raw if raw.get("type") != "tool_use" else call_block(raw, next(ids)[1])
            for raw in part.blocks
        ]
        self.pieces += (_encode({"role": "assistant", "content": content}), b",")

    def _unique_id(self, tool_use_id: object) -> str:
        """Return a valid id that no other call of the request has; a good one stays (case L1)."""
        base = tool_use_id if isinstance(tool_use_id, str) else ""
        if not is_name(base):
            base = re.sub(r"[^a-zA-Z0-9_-]", "_", base)[:100] or "call"
        unique, count = base, 1
        while unique in self._used_ids:
            count += 1
            unique = f"{base[:100]}_{count}"
        self._used_ids.add(unique)
        return unique

    # -- calls and their results ---------------------------------------------------------------

    def _begin_answer(self, version: Version, calls: list[_Asked]) -> None:
        self._calls, self._results, self._asked_at = calls, {}, version

    def _end_user_message(self, *, otherwise: str = CONTINUE) -> None:
        self.pieces += (self.last_message(otherwise=otherwise), b",")
        for call_id, _, fault in self._calls:
            if call_id is not None and fault is None and call_id not in self._results:
                self.presumed.append((call_id, self._asked_at, self._outcome_of(call_id)))
        self._calls, self._said = [], []

    def _unanswered(self, asked: _Asked) -> bytes:
        call_id, sent_as, fault = asked
        return _result(sent_as, fault or self._outcome_of(call_id or ""), is_error=True)

    def _outcome_of(self, call_id: str) -> str:
        return self._conversation.outcome_of(call_id, asked_at=self._asked_at)


def _result(call_id: str, content: Any, *, is_error: bool) -> bytes:
    block: JsonObject = {"type": "tool_result", "tool_use_id": call_id, "content": content}
    return _encode(block | {"is_error": True} if is_error else block)


def _calls(kinds: bytes, ids: Sequence[tuple[str, ...]], first: int, last: int) -> list[str]:
    """Return the ids of the calls of all answers at the places *first*…*last*."""
    pairs = zip(kinds[first : last + 1], ids[first : last + 1], strict=True)
    return [each for kind, named in pairs if kind >= ANSWER for each in named]
