"""The calls of one answer: those that can be run, and those that cannot, with the reason.

Models and servers ask for calls without an id, or give two calls of one answer the same id. Such a
call is neither dropped nor run: its result says what is wrong, and the model can ask again.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.messages import Json, JsonObject

DECISIONS = ("yes", "always", "no")

NOBODY = (
    "This tool needs the user's approval, and nobody is there to give it "
    "(the user can run leftfold with --yes to allow it)."
)
"""The reason of a no that no person said."""

OUTCOME_UNKNOWN = (
    "The outcome of this call is unknown: it was started, and interrupted before its result was "
    "recorded. It was not run again; check before you repeat it."
)
NEVER_STARTED = "This call was never started: the turn was interrupted before."

NO_ID = "This call was not run: it has no id. Make it again, with an id of its own."
SAME_ID = (
    "This call was not run: another call of the same answer has its id. Make it again, with an id "
    "of its own."
)
NO_NAME = "This call was not run: it names no tool."
NO_INPUT = "This call was not run: its input is no JSON object."


class Call(NamedTuple):
    """A call as an answer asks for it; *fault* says why it cannot be run, None if it can.

    *id* is the one that its result will name: None where no result can belong to it alone.
    """

    raw: JsonObject
    id: str | None
    fault: str | None


def calls_of(blocks: Sequence[Json]) -> list[Call]:
    """Return the calls among the raw *blocks* of an assistant's message, in order."""
    calls: list[Call] = []
    used: set[str] = set()
    for raw in blocks:
        if isinstance(raw, dict) and raw.get("type") == "tool_use":
            call_id = raw.get("id")
            is_first = isinstance(call_id, str) and call_id not in used
            calls.append(Call(raw, call_id if is_first else None, _fault(raw, used)))
            if isinstance(call_id, str):
                used.add(call_id)
    return calls


def _fault(raw: JsonObject, used: set[str]) -> str | None:
    call_id = raw.get("id")
    if not isinstance(call_id, str) or not call_id:
        return NO_ID
    if call_id in used:
        return SAME_ID
    if not isinstance(raw.get("name"), str):
        return NO_NAME
    return None if isinstance(raw.get("input"), dict) else NO_INPUT
