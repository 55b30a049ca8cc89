"""Commands and questions about tool calls: approved, started, answered once."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.calls import DECISIONS, NEVER_STARTED, OUTCOME_UNKNOWN, Call, calls_of
from domain.commands.trigger import Commands, raw_json
from domain.errors import InvalidCommandError, UnknownCallError
from domain.events import MessageAppended, Version
from domain.messages import JsonObject, ToolUseBlock, tool_result_message
from domain.seals import is_sealed

if TYPE_CHECKING:
    from collections.abc import Mapping


class CallCommands(Commands):
    """The calls of the newest answer, from their approval to their results."""

    Event = events.Event

    # -- questions -----------------------------------------------------------------------------

    def open_calls(self) -> tuple[ToolUseBlock, ...]:
        """Return the calls of the newest assistant message that have no result yet, in order.

        Calls that cannot be run are not among them: see `faulty_calls`.
        """
        return self._newest_calls(self.leaf)[1]

    def is_open(self, tool_use_id: str) -> bool:
        """Whether a call of the newest assistant message can be run, and has no result yet."""
        return any(call.id == tool_use_id for call in self.open_calls())

    def faulty_calls(self) -> tuple[Call, ...]:
        """Return the calls of the newest assistant message that cannot be run.

        Their results, which say why, are the context's to make: none can be recorded for them.
        """
        answer = self._newest_answer(self.leaf)
        return (
            tuple(call for call in calls_of(answer.content.blocks) if call.fault) if answer else ()
        )

    def has_own_calls(self) -> bool:
        """Whether the newest answer, with its calls, was recorded here."""
        answer = self._newest_answer(self.leaf)
        return answer is not None and is_sealed(answer, self.seals)

    def _newest_calls(self, leaf: Version | None) -> tuple[Version, tuple[ToolUseBlock, ...]]:
        """Return the newest assistant message on the path to *leaf*, and its unanswered calls."""
        answered: set[str] = set()
        for entry in self.backwards(leaf):
            if not isinstance(entry, MessageAppended):
                continue
            said = entry.content
            if said.role == "assistant":
                calls = [call for call in calls_of(said.blocks) if not call.fault]
                open_calls = (call for call in calls if call.id not in answered)
                return entry.originator_version, tuple(ToolUseBlock(c.raw) for c in open_calls)
            answered.update(result["tool_use_id"] for result in said.tool_results)
        return 0, ()

    def _newest_answer(self, leaf: Version | None) -> MessageAppended | None:
        """Return the newest assistant message on the path to *leaf*."""
        for entry in self.backwards(leaf):
            if isinstance(entry, MessageAppended) and entry.content.role == "assistant":
                return entry
        return None

    def was_started(self, call: ToolUseBlock) -> bool:
        """Whether an open call of the newest assistant message has begun to run."""
        asked_at, _ = self._newest_calls(self.leaf)
        return self.outcome_of(call.id, asked_at=asked_at) == OUTCOME_UNKNOWN

    def outcome_of(self, tool_use_id: str, *, asked_at: Version) -> str:
        """Say what is known of a call without a result that the entry *asked_at* asked for.

        Models use ids again: only a start that belongs to this very call counts. Where events are
        lost after it, the start may have been among them.
        """
        starts = self._reach(asked_at).started_tools.get(tool_use_id, [])
        lost = [gap.leaf for gap in self.gaps if gap.first > asked_at]
        answers = (self._newest_answer(leaf) for leaf in (*starts, *lost))
        started = any(answer and answer.originator_version == asked_at for answer in answers)
        return OUTCOME_UNKNOWN if started else NEVER_STARTED

    def is_allowed(self, call: ToolUseBlock, *, cwd: str = "") -> bool:
        """Whether the user always allows *call* in *cwd*: its tool, or exactly its command.

        The permission must have been recorded here: a log from elsewhere gives none.
        """
        command = call.input.get("command")
        return any(
            said.tool == call.name
            and (said.command is None or said.command == command)
            and said.cwd == cwd
            and is_sealed(said, self.seals)
            for said in self.allowed
        )

    def allowed_elsewhere(self) -> list[events.ApprovalDecided]:
        """Return each "always" of this log that was not recorded here: it allows nothing."""
        return [said for said in self.allowed if not is_sealed(said, self.seals)]

    def _place_of_result(self, tool_use_id: str) -> Version | None:
        """Return what a result hangs from: the leaf, or the branch that was left while it ran.

        Raises:
            UnknownCallError: no such call is open in either.
        """
        if self.is_open(tool_use_id):
            return self.leaf
        tree = self._reach(1)
        for place in reversed(tree.started_tools.get(tool_use_id, [])):
            for version, entry in tree.entries.items():
                is_next = place is not None and tree.parents[version] == place
                if is_next and isinstance(entry, MessageAppended) and entry.content.tool_results:
                    place = version  # noqa: PLW2901 - the results that came before it
            if any(call.id == tool_use_id for call in self._newest_calls(place)[1]):
                return place
        raise UnknownCallError(tool_use_id)

    def _require_open(self, tool_use_id: str) -> None:
        if not self.is_open(tool_use_id):
            raise UnknownCallError(tool_use_id)

    # -- commands ------------------------------------------------------------------------------

    def decide(
        self,
        call: ToolUseBlock,
        decision: str,
        *,
        command: str | None = None,
        reason: str = "",
        cwd: str = "",
    ) -> None:
        """Record whether the user lets *call*, which works in *cwd*, run: yes, always or no.

        ``always`` holds for the tool from here on, or with a *command* for that command alone. A
        call that may not run gets *reason* as its result.

        Raises:
            UnknownCallError: the call is not open.
        """
        if decision not in DECISIONS:
            raise InvalidCommandError(f"{decision!r} is no decision: {', '.join(DECISIONS)}.")
        self._require_open(call.id)
        self._trigger(
            events.ApprovalDecided,
            with_seal=decision == "always",
            tool_use_id=call.id,
            tool=call.name,
            decision=decision,
            command=command,
            reason=reason,
            cwd=cwd,
        )
        if decision == "no":
            self.append_tool_result(call.id, reason, is_error=True)

    def start_tool(self, tool_use_id: str) -> None:
        """Record that a tool is about to run, before it does.

        Raises:
            UnknownCallError: no such call is open.
        """
        self._require_open(tool_use_id)
        self._trigger(events.ToolStarted, tool_use_id=tool_use_id)

    def append_tool_result(
        self,
        tool_use_id: str,
        content: str | list[JsonObject],
        *,
        is_error: bool = False,
        seen: Mapping[str, str] | None = None,
    ) -> None:
        """Append the result of one call. A call has one result, of whatever kind (case A3).

        *seen* are the files that the model knows whole from it, and their digests.

        Raises:
            UnknownCallError: no such call is open.
        """
        self._trigger(
            events.MessageAppended,
            parent=self._place_of_result(tool_use_id),
            message=raw_json(tool_result_message(tool_use_id, content, is_error=is_error)),
            seen=seen or {},
        )

    def close_open_calls(self) -> None:
        """Answer every open call with what is known: outcome unknown, or never started."""
        asked_at, calls = self._newest_calls(self.leaf)
        for call in calls:
            text = self.outcome_of(call.id, asked_at=asked_at)
            self.append_tool_result(call.id, text, is_error=True)
