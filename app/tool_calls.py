"""The calls of one answer: asked about, started, run side by side, and recorded one by one."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from app.errors import NotRecordedError
from infrastructure.tools.output import StoppedError

if TYPE_CHECKING:
    from app.ports import Approver, OpenConversation, Screen, Toolbox, ToolOutput
    from domain.conversation import Conversation
    from domain.messages import ToolUseBlock

CUT_OFF = (
    "This call was cut off before its end ({reason}) and was not run. Make it again, shorter, or "
    "in several steps."
)


class ToolCalls:
    """Runs calls in one conversation: intent before effect, each result as soon as it is there."""

    def __init__(
        self, at_hand: OpenConversation, toolbox: Toolbox, approver: Approver, screen: Screen
    ) -> None:
        self._at_hand = at_hand
        self._toolbox = toolbox
        self._approver = approver
        self._screen = screen
        self._unsaved: list[tuple[str, ToolOutput]] = []

    async def run(self, calls: tuple[ToolUseBlock, ...]) -> None:
        """Run the calls that the user allows, side by side; record each result as it comes."""
        allowed = [call for call in calls if await self._is_allowed(call)]
        try:
            async with asyncio.TaskGroup() as group:
                for call in allowed:
                    group.create_task(self._run_tool(call))
        except BaseExceptionGroup as problems:
            raise problems.exceptions[0] from None

    async def _is_allowed(self, call: ToolUseBlock) -> bool:
        tool = self._toolbox.tools.get(call.name)
        if tool is None or not tool.needs_approval:
            return True
        if self._at_hand.conversation.is_allowed(call):
            return True
        approval = await self._approver.decide(call, tool.summary(call.input))
        if approval is None:
            return True
        decision, command, reason = approval
        self._at_hand.record(
            lambda talk: talk.decide(call, decision, command=command, reason=reason)
        )
        return decision != "no"

    async def _run_tool(self, call: ToolUseBlock) -> None:
        tool = self._toolbox.tools.get(call.name)
        self._at_hand.record(lambda talk: talk.start_tool(call.id))
        self._screen.tool_started(call, tool.summary(call.input) if tool else call.name)
        try:
            output = await self._toolbox.run(
                call, lambda text: self._screen.tool_printed(call, text)
            )
        except StoppedError as stopped:
            self._end(call, stopped.output)
            raise
        self._end(call, output)

    def _end(self, call: ToolUseBlock, output: ToolOutput) -> None:
        try:
            self._record_result(call.id, output)
        except NotRecordedError:
            # The tool has run: its result is offered again, before the next turn (case A8).
            self._unsaved.append((call.id, output))
            raise
        self._screen.tool_ended(call, output)

    def _record_result(self, tool_use_id: str, output: ToolOutput) -> None:
        def append(talk: Conversation) -> None:
            talk.append_tool_result(tool_use_id, output.content, is_error=output.is_error)

        self._at_hand.record(append)

    def save_what_could_not_be_saved(self) -> None:
        """Record the results of tools that have run, where the log could not take them.

        Raises:
            NotRecordedError: it still cannot; what is left is kept for the next time.
        """
        while self._unsaved:
            tool_use_id, output = self._unsaved[-1]
            if any(call.id == tool_use_id for call in self._at_hand.conversation.open_calls()):
                self._record_result(tool_use_id, output)
            self._unsaved.pop()

    def refuse_cut_off(self, reason: str) -> None:
        """Answer every open call, unrun: the answer that asked for them ended early."""

        def refuse(talk: Conversation) -> None:
            for call in talk.open_calls():
                talk.append_tool_result(call.id, CUT_OFF.format(reason=reason), is_error=True)

        self._at_hand.record(refuse)
