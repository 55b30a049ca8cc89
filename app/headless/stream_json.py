"""``leftfold --input stream-json``: another program drives a conversation, a JSON object a line.

It sends prompts, interruptions and approvals on standard input, and reads on standard output what
``--output stream-json`` prints, a ``result`` after each turn (documented in docs/scripting.md).
A line that makes no sense is answered by an ``error``, and nothing else happens.
"""

from __future__ import annotations

import asyncio
import json
from dataclasses import dataclass, field
from functools import partial
from typing import TYPE_CHECKING, Any

from app.approvers import approval
from app.errors import DONE
from app.explanations import EXPECTED, message_of
from app.headless import happenings
from app.headless.one_turn import failure, happened, result_of
from app.ports import Approval
from app.signals import owned
from app.standard_input import LONGEST, lines_of
from app.suggestions import suggestion
from domain.calls import DECISIONS, NOBODY

if TYPE_CHECKING:
    from collections.abc import Callable, Coroutine

    from app.agent import Agent
    from app.ports import Proposal
    from domain.messages import JsonObject, ToolUseBlock

    _Job = Callable[[], Coroutine[Any, Any, None]]

_MOST_WAITING = 16
"""Lines that wait to be obeyed; the sender of more has to wait itself."""
_LONGEST = 80
"""Characters of what makes no sense that the answer repeats."""


class _RefusedError(Exception):
    """What is wrong with a line; it becomes the answer."""


class ProgramApprover:
    """Asks the program at the other end; once it has hung up, nobody is there to ask."""

    def __init__(self) -> None:
        self._asked: dict[str, tuple[ToolUseBlock, asyncio.Future[Approval]]] = {}
        self._is_there = True

    async def decide(self, proposal: Proposal) -> Approval:
        """Return what the program decided of a call."""
        call, summary, _change = proposal
        if not self._is_there:
            return Approval("no", reason=NOBODY)
        answer: asyncio.Future[Approval] = asyncio.get_running_loop().create_future()
        self._asked[call.id] = call, answer
        happened(happenings.ApprovalNeeded(call.id, call.name, call.input, summary))
        try:
            return await answer
        finally:
            self._asked.pop(call.id, None)

    def answer(self, line: JsonObject) -> None:
        """Take the answer of an ``approve`` line."""
        tool_use_id, decision = line.get("tool_use_id"), line.get("decision")
        reason, alone = line.get("reason"), line.get("command", False)
        if not isinstance(tool_use_id, str) or tool_use_id not in self._asked:
            raise _RefusedError(f"no approval of {_quoted(tool_use_id)} is needed")
        if decision not in DECISIONS:
            raise _RefusedError(
                f"decision {_quoted(decision)}: choose one of {', '.join(DECISIONS)}"
            )
        if not isinstance(reason, str | None) or not isinstance(alone, bool):
            raise _RefusedError("reason has to be text, command true or false")
        call, answer = self._asked[tool_use_id]
        if answer.done():
            raise _RefusedError(f"{_quoted(tool_use_id)} has been answered")
        if alone and "command" not in call.input:
            raise _RefusedError("this call has no command that could always be allowed")
        said = "command" if alone and decision == "always" else decision
        answer.set_result(approval(said, call, reason=reason or ""))

    def hang_up(self) -> None:
        """Nobody will answer any more: what was asked is refused."""
        self._is_there = False
        for _, answer in self._asked.values():
            if not answer.done():
                answer.set_result(Approval("no", reason=NOBODY))


@dataclass
class Driver:
    """One conversation, driven from outside."""

    agent: Agent
    approver: ProgramApprover | None
    began: happenings.Began
    _inbox: asyncio.Queue[_Job] = field(default_factory=asyncio.Queue)
    _room: asyncio.Semaphore = field(default_factory=lambda: asyncio.Semaphore(_MOST_WAITING))
    _turn: asyncio.Task[str] | None = None
    _since: int = 0
    _line: int = 0
    _exit_code: int | None = None
    _is_leaving: bool = False

    async def run(self) -> int:
        """Do what the lines say until they end; return the exit code."""
        with owned(lambda code: self._inbox.put_nowait(partial(self._leave, code))):
            happened(self.began)
            listening = asyncio.ensure_future(self._listen())
            if self.agent.is_waiting():
                await self._begin(self.agent.go_on())
            while self._exit_code is None or self._turn is not None:
                await (await self._inbox.get())()
            listening.cancel()
        return self._exit_code

    async def _listen(self) -> None:
        """Put lines into the inbox, and wait while it is full."""
        try:
            async for line in lines_of():
                await self._room.acquire()
                self._inbox.put_nowait(partial(self._take_line, line))
        finally:
            self._inbox.put_nowait(self._end_of_input)

    async def _end_of_input(self) -> None:
        if self.approver is not None:
            self.approver.hang_up()
        if self._exit_code is None:
            self._exit_code = DONE

    async def _take_line(self, line: bytes) -> None:
        self._room.release()
        self._line += 1
        if not line.strip() or (self._exit_code is not None):
            return
        try:
            await self._obey(_parsed(line))
        except _RefusedError as refused:
            self._complain(str(refused))
        except EXPECTED as error:
            self._complain(message_of(error))

    async def _obey(self, said: JsonObject) -> None:
        match said.get("type"):
            case "prompt":
                await self._prompt(said.get("text"))
            case "interrupt":
                if self._turn is None:
                    raise _RefusedError("no turn is running")
                self._interrupt()
            case "approve":
                if self.approver is None:
                    raise _RefusedError("with --yes no approval is needed")
                self.approver.answer(said)
            case "quit":
                await self._leave(DONE)
            case str(unknown):
                near = suggestion(unknown[:_LONGEST], ("prompt", "interrupt", "approve", "quit"))
                raise _RefusedError(f"there is no type {_quoted(unknown)}; {near}")
            case _:
                raise _RefusedError("an object with a type is expected")

    async def _prompt(self, text: Any) -> None:
        if not isinstance(text, str) or not text.strip():
            raise _RefusedError("a prompt needs some text")
        if self._turn is None:
            await self._begin(self.agent.run_turn(text))
            return
        self.agent.open_conversation.record(lambda conversation: conversation.queue_prompt(text))
        happened(happenings.Queued(self.agent.open_conversation.conversation.version, text))

    # -- turns ---------------------------------------------------------------------------------

    async def _begin(self, turn: Coroutine[Any, Any, str]) -> None:
        self._since = self.agent.open_conversation.conversation.version + 1
        self._turn = asyncio.ensure_future(turn)
        self._turn.add_done_callback(lambda _: self._inbox.put_nowait(self._end))
        await asyncio.sleep(0)  # an interruption that follows at once finds the prompt recorded

    async def _end(self) -> None:
        """Tell how the turn ended; go on with what was queued when it was nearly over."""
        turn, self._turn = self._turn, None
        assert turn is not None
        if not turn.cancelled() and (error := turn.exception()) is not None:
            if not isinstance(error, EXPECTED):
                raise error
            happened(failure("not_recorded", message_of(error), self.began.id))
            return
        conversation = self.agent.open_conversation.conversation
        happened(result_of(conversation, self._since))
        is_done = not turn.cancelled() and turn.result() == "done"
        if is_done and conversation.queue and not self._is_leaving:
            await self._begin(self.agent.go_on())

    def _interrupt(self) -> None:
        """Stop the turn, once: a second time would disturb its tidying up."""
        if self._turn is not None and not self._turn.cancelling():
            self._turn.cancel()

    async def _leave(self, code: int) -> None:
        self._is_leaving = True
        if not self._exit_code:
            self._exit_code = code
        self._interrupt()

    def _complain(self, message: str) -> None:
        happened(happenings.Complaint(self._line, message))


def _quoted(value: Any) -> str:
    text = repr(value)
    return text if len(text) <= _LONGEST else f"{text[:_LONGEST]}…"


def _parsed(line: bytes) -> JsonObject:
    if len(line) > LONGEST:
        raise _RefusedError(f"this line is longer than {LONGEST:,} bytes")
    try:
        said = json.loads(line.decode(), object_pairs_hook=_once, parse_constant=_no_number)
    except (ValueError, RecursionError) as error:
        raise _RefusedError(f"this is no JSON: {error}") from None
    if not isinstance(said, dict):
        raise _RefusedError("an object with a type is expected")
    return said


def _once(pairs: list[tuple[str, Any]]) -> JsonObject:
    """Return an object whose keys are all different: of two answers, none is believed."""
    found = dict(pairs)
    if len(found) < len(pairs):
        raise _RefusedError("a key stands there twice in one object")
    return found


def _no_number(constant: str) -> float:
    raise _RefusedError(f"this is no JSON: {constant} is no number")
