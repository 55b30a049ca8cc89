"""Calls, results and roles: lays out what entries say as the messages of a request."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from domain.calls import calls_of
from domain.projections.media import Media, Plan
from domain.projections.parts import Parts, call_block, text_block

if TYPE_CHECKING:
    from domain.calls import Call
    from domain.conversation import Conversation
    from domain.events import Entry, Version
    from domain.messages import JsonObject
    from domain.projections.parts import Part

LOST = "(A message is missing here: this part of the conversation was lost.)"
CONTINUE = "(Continue.)"

_VALID_ID = re.compile(r"[a-zA-Z0-9_-]{1,128}")


class _Asked(NamedTuple):
    """A call of the newest answer, and the id that it has in the request."""

    call: Call
    sent_as: str


class MessageBuilder:
    """Lays entries out as messages: alternating roles, every call answered once, in call order.

    Attributes:
        messages: The messages that are whole: whatever is added, they stay as they are.
        presumed: Calls among them without a result: id, version of the entry, what is known.
        media: The images and documents among them, and by which plan they have to be placed.
    """

    def __init__(self, conversation: Conversation, plan: Plan = Plan()) -> None:  # noqa: B008 - frozen
        self.messages: list[JsonObject] = []
        self.presumed: list[tuple[str, Version, str]] = []
        self.media = Media(plan)
        self._conversation = conversation
        self._parts = Parts(conversation, self.media)
        self._used_ids: set[str] = set()
        self._calls: list[_Asked] = []
        self._asked_at: Version = 0
        self._results: dict[str, JsonObject] = {}
        self._said: list[JsonObject] = []

    def add(self, entry: Entry) -> None:
        """Add what *entry*, the next one of the path, says."""
        for part in self._parts.of(entry):
            self._add(part)

    def last_message(self, *, otherwise: str = CONTINUE) -> JsonObject:
        """Return the message with which the user's turn would end now; nothing changes."""
        content = [self._answer(asked) for asked in self._calls]
        content += self._said or ([] if content else text_block(otherwise))
        return {"role": "user", "content": content}

    def _add(self, part: Part) -> None:
        if part.role == "assistant":
            if part.blocks:
                # Between two answers in a row, the request of the second had this user message.
                self._end_user_message(otherwise=LOST if part.follows_loss else CONTINUE)
                self._begin_assistant_message(part)
            return
        awaited = {asked.call.id for asked in self._calls}
        for raw in part.blocks:
            if raw.get("type") != "tool_result":
                self._said.append(raw)
            elif raw["tool_use_id"] in awaited:
                self._results.setdefault(raw["tool_use_id"], raw)

    def _begin_assistant_message(self, part: Part) -> None:
        self._results, self._asked_at = {}, part.version
        calls = calls_of(part.blocks)
        self._calls = [_Asked(call, self._unique_id(call.raw.get("id"))) for call in calls]
        ids = iter(self._calls)
        content = [
            raw if raw.get("type") != "tool_use" else call_block(raw, next(ids).sent_as)
            for raw in part.blocks
        ]
        self.messages.append({"role": "assistant", "content": content})

    def _end_user_message(self, *, otherwise: str) -> None:
        self.messages.append(self.last_message(otherwise=otherwise))
        for call, _ in self._calls:
            if call.id is not None and call.fault is None and call.id not in self._results:
                known = self._conversation.outcome_of(call.id, asked_at=self._asked_at)
                self.presumed.append((call.id, self._asked_at, known))
        self._calls, self._said = [], []

    def _answer(self, asked: _Asked) -> JsonObject:
        call = asked.call
        result = self._results.get(call.id) if call.id is not None else None
        if result is None:
            text = call.fault or self._conversation.outcome_of(
                call.id or "", asked_at=self._asked_at
            )
            result = {"content": text, "is_error": True}
        answer: JsonObject = {
            "type": "tool_result",
            "tool_use_id": asked.sent_as,
            "content": result["content"],
        }
        return answer | {"is_error": True} if result.get("is_error") is True else answer

    def _unique_id(self, tool_use_id: object) -> str:
        """Return a valid id that no other call of the request has; a good one stays (case L1)."""
        base = tool_use_id if isinstance(tool_use_id, str) else ""
        if _VALID_ID.fullmatch(base) is None:
            base = re.sub(r"[^a-zA-Z0-9_-]", "_", base)[:100] or "call"
        unique, count = base, 1
        while unique in self._used_ids:
            count += 1
            unique = f"{base[:100]}_{count}"
        self._used_ids.add(unique)
        return unique
