"""The calls of one answer: planned, asked about, carried out, and recorded one by one."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from itertools import groupby
from typing import TYPE_CHECKING

from app.errors import NotRecordedError
from app.ports import UNASKED, Approval, Approver, Proposal, Screen, Toolbox
from domain.projections.context import seen
from infrastructure.tools.output import StoppedError

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from app.open_conversation import OpenConversation
    from domain.conversation import Conversation
    from domain.messages import ToolUseBlock
    from domain.tool_use import Plan, ToolOutput

CUT_OFF = (
    "This call was cut off before its end ({reason}) and was not run. Make it again, shorter, or "
    "in several steps."
)


@dataclass
class ToolCalls:
    """Runs calls in one conversation: intent before effect, each result as soon as it is there.

    *cwd* is where the tools run: an "always" holds there.
    """

    open_conversation: OpenConversation
    toolbox: Toolbox
    approver: Approver
    screen: Screen
    cwd: str = ""
    _is_taking_up: bool = False
    _unsaved: list[tuple[str, ToolOutput]] = field(default_factory=list)

    async def run(self, calls: tuple[ToolUseBlock, ...], *, taken_up: bool = False) -> None:
        """Run the calls in their order: those that only read side by side, any other alone.

        Of calls that are *taken up* from a log whatever acts is asked about, also what was always
        allowed: a log that was cut short shows calls as waiting that have run.

        What acts is planned when what stands before it is done, then asked about, then carried out
        on the state that was planned on (cases R5, R12).
        """
        self._is_taking_up = taken_up
        for acts, group in groupby(calls, self._acts):
            if acts:
                for call in group:
                    await self._run_call(call)
            else:
                await self._run_side_by_side(group)

    def _acts(self, call: ToolUseBlock) -> bool:
        tool = self.toolbox.tools.get(call.name)
        return tool is not None and tool.needs_approval

    def _summary(self, call: ToolUseBlock) -> str:
        tool = self.toolbox.tools.get(call.name)
        return call.name if tool is None else tool.summary(call.input)

    async def _run_side_by_side(self, calls: Iterable[ToolUseBlock]) -> None:
        try:
            async with asyncio.TaskGroup() as group:
                for call in calls:
                    group.create_task(self._run_call(call))
        except BaseExceptionGroup as problems:
            raise problems.exceptions[0] from None

    async def _run_call(self, call: ToolUseBlock) -> None:
        conversation = self.open_conversation.conversation
        files = seen(conversation, conversation.leaf) if self._acts(call) else {}
        plan = await self.toolbox.plan(call, files)
        problem = plan.problem
        if problem is None and self._acts(call):
            match (await self._approval(call, plan)).decision:
                case UNASKED.decision:
                    problem = plan.unseen
                case "yes" | "always":
                    pass
                case _:
                    return
        if problem is not None:
            self.screen.tool_started(call, self._summary(call))
            self._end(call, problem)
        else:
            await self._carry_out(call, plan, files)

    async def _approval(self, call: ToolUseBlock, plan: Plan) -> Approval:
        """Return what was decided of *call*, recorded if somebody was asked.

        That is yes, always or unasked; whatever else an approver says is a no.
        """
        is_allowed = self.open_conversation.conversation.is_allowed(call, cwd=self.cwd)
        if is_allowed and not self._is_taking_up:
            return UNASKED
        approval = await self.approver.decide(Proposal(call, self._summary(call), plan.change))
        if approval == UNASKED:
            return approval
        decision, command, reason = approval
        if decision not in ("yes", "always"):
            decision, command = "no", None
        self.open_conversation.record(
            lambda latest: latest.decide(
                call, decision, command=command, reason=reason, cwd=self.cwd
            )
        )
        return Approval(decision, command, reason)

    async def _carry_out(self, call: ToolUseBlock, plan: Plan, files: Mapping[str, str]) -> None:
        self.open_conversation.record(lambda conversation: conversation.start_tool(call.id))
        self.screen.tool_started(call, self._summary(call))
        try:
            output = await self.toolbox.run(
                call,
                lambda text: self.screen.tool_printed(call, text),
                state=plan.state,
                seen=files,
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
        self.screen.tool_ended(call, output)

    def _record_result(self, tool_use_id: str, output: ToolOutput) -> None:
        self.open_conversation.record(
            lambda latest: latest.append_tool_result(
                tool_use_id, output.content, is_error=output.is_error, seen=output.seen
            ),
            anywhere=True,
        )

    def save_what_could_not_be_saved(self) -> None:
        """Record the results of tools that have run, where the log could not take them.

        Raises:
            NotRecordedError: it still cannot; what is left is kept for the next time.
        """
        while self._unsaved:
            tool_use_id, output = self._unsaved[-1]
            if self.open_conversation.conversation.is_open(tool_use_id):
                self._record_result(tool_use_id, output)
            self._unsaved.pop()

    def refuse_cut_off(self, reason: str) -> None:
        """Answer every open call, unrun: the answer that asked for them ended early."""

        def refuse(latest: Conversation) -> None:
            for call in latest.open_calls():
                latest.append_tool_result(call.id, CUT_OFF.format(reason=reason), is_error=True)

        self.open_conversation.record(refuse)
