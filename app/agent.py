"""One turn of the agent, top to bottom: prompt → answer → tools → … → end.

Append, then believe: the prompt is in the log before the first byte goes to the model, an answer
before its tools run, the intent to run a tool before the tool does, and each result as soon as
that tool ends. Whatever stops a turn (Ctrl+C, an error, a crash) leaves a log from which the next
turn just works.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from dataclasses import dataclass, field
from time import monotonic
from typing import TYPE_CHECKING

from app.i18n import _
from app.refusals import Refusals
from app.turn_limits import DEFAULT_LIMITS, Spending, TurnLimits
from domain.answer import Answer
from domain.events import TurnError, Version
from domain.projections.context import PROJECTION
from domain.projections.requests import Requests
from domain.projections.usage import added, total
from domain.text import valid
from infrastructure.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Coroutine, Sequence

    from app.compactor import Compactor
    from app.open_conversation import OpenConversation
    from app.ports import Model, Screen
    from app.tool_calls import ToolCalls
    from domain.conversation import Conversation
    from domain.messages import JsonObject

MAX_CUT_OFF_ANSWERS = 2
"""How often in one turn the model may be asked again after an answer that ended in a call."""
MAX_PAUSES = 10
"""How often in one turn the model may pause (``pause_turn``) and be asked to go on."""
MAX_FULL_WINDOWS = 2
"""How often in one turn room may be made for an answer that filled the window."""
CUT_OFF = ("max_tokens", "refusal", "model_context_window_exceeded")
"""Stop reasons of answers that ended before the model was done."""


async def nothing(_prompt: str) -> Sequence[JsonObject]:
    """Attach nothing."""
    return ()


@dataclass(kw_only=True)
class Agent:
    """Runs turns in one conversation.

    Attributes:
        compactor: Makes room in it. What a summary spent for nothing, in a turn or by a command,
            is in the end of the next turn.
        prepare: Records, before each prompt, what the model is to be told from here on.
        attach: Returns what goes with a queued prompt: the files that it mentions, for example.
    """

    open_conversation: OpenConversation
    model: Model
    tool_calls: ToolCalls
    screen: Screen
    compactor: Compactor
    limits: TurnLimits = DEFAULT_LIMITS
    prepare: Callable[[Conversation], object] = lambda _: None
    attach: Callable[[str], Awaitable[Sequence[JsonObject]]] = nothing
    _requests: Requests | None = None
    _lost: JsonObject = field(default_factory=dict)
    _sent: int = 0

    async def run_turn(self, prompt: str, attachments: Sequence[JsonObject] = ()) -> str:
        """Say what is queued, then *prompt* with *attachments*; work until it is done.

        Returns the outcome: done, interrupted or failed. A failure is shown and in the log.

        Raises:
            NotRecordedError: the log could not take an event; the turn stopped there.
            InvalidCommandError: the prompt is blank; nothing happened.
        """
        return await self._begin(
            lambda conversation: conversation.append_prompt(prompt, attachments)
        )

    def is_waiting(self) -> bool:
        """Whether the last turn stopped, in a crash here, with calls that never started."""
        conversation = self.open_conversation.conversation
        calls = conversation.open_calls()
        was_asking = bool(calls) and conversation.last_turn is None and conversation.has_own_calls()
        return was_asking and not any(map(conversation.was_started, calls))

    async def go_on(self) -> str:
        """Take up what waits: calls, which are asked about again (case A11), or the queue."""
        if not self.is_waiting():
            return await self._begin()
        first = self.open_conversation.conversation.version + 1
        return await self._finish(self._go_on(first), first)

    async def _go_on(self, first: Version) -> None:
        await self.tool_calls.run(self.open_conversation.conversation.open_calls(), taken_up=True)
        await self._work(first)

    async def _begin(self, say: Callable[[Conversation], object] | None = None) -> str:
        """Answer what a crash left open, say what is queued and what is to be said: one save."""
        self.tool_calls.save_what_could_not_be_saved()
        queued = await self._attachments_of_queue()
        if say is None and not queued:  # it was taken back meanwhile
            return "done"
        first = self.open_conversation.conversation.version + 1

        def begin(conversation: Conversation) -> None:
            conversation.close_open_calls()
            self.prepare(conversation)
            conversation.deliver_prompts(queued)
            if say is not None:
                say(conversation)

        self.open_conversation.record(begin)
        return await self._finish(self._work(first), first)

    async def _finish(self, work: Coroutine[None, None, None], first: int) -> str:
        """Let *work* come to its end, whichever it is, and record that."""
        try:
            await work
        except asyncio.CancelledError:
            return self._end_turn("interrupted", first)
        except ModelError as problem:
            error = TurnError(problem.kind, str(problem), problem.request_id)
            return self._end_turn("failed", first, error)
        return self._end_turn("done", first)

    async def _work(self, first: Version) -> None:
        spending = Spending(self.limits, first, self._all_sent)
        while True:
            answer = await self._ask_in_room(spending)
            calls = self.open_conversation.conversation.open_calls()
            if calls and _is_cut_off(answer):
                # An input that may be cut off is never run (facts.md, trap 2; case A17).
                self.tool_calls.refuse_cut_off(answer.stop_reason or "")
                message = _("calls were cut off again and again ({reason})")
                message = message.format(reason=answer.stop_reason)
                spending.again("calls_cut_off", message, most=MAX_CUT_OFF_ANSWERS)
            elif calls:
                await self.tool_calls.run(calls)
            elif self.open_conversation.conversation.faulty_calls():  # the context answers them
                spending.again("faulty_calls", _("the model's calls make no sense"), most=2)
                continue
            await self._stop_or_make_room(answer, spending)
            # What was typed meanwhile: after the tools, or at the end as the next thing to do.
            if await self._deliver():
                spending.hear()
            elif calls:
                spending.see(self.open_conversation.conversation, calls)
            elif not self._must_ask_again(answer, spending):
                with suppress(ModelError):  # now, so that the next prompt need not wait
                    await self.compactor.make_room()
                if not await self._deliver():
                    return

    async def _stop_or_make_room(self, answer: Answer, spending: Spending) -> None:
        """End the turn after a refusal; make room where the answer filled the window."""
        if answer.stop_reason == "refusal":
            details = (answer.stop_details.get(key) for key in ("category", "explanation"))
            why = ": ".join(valid(text) for text in details if isinstance(text, str))
            message = _("the model refused to answer{why}").format(why=why and f" ({why})")
            advice = _("say it in other words, or go back with /tree")
            raise ModelError(message, advice=advice, kind="refusal")
        if answer.stop_reason == "model_context_window_exceeded":
            message = _("the window is full, and compaction makes no room: start with /new")
            spending.again("no_room", message, most=MAX_FULL_WINDOWS)
            if not await self.compactor.compact(reason="overflow", keep=1):
                raise ModelError(message, kind="no_room")

    def _must_ask_again(self, answer: Answer, spending: Spending) -> bool:
        """Whether the model is not done, though it called nothing and the user said nothing."""
        if answer.stop_reason == "pause_turn":
            message = _("the model pauses again and again")
            spending.again("paused_too_often", message, most=MAX_PAUSES)
            return True
        if answer.stop_reason == "model_context_window_exceeded":
            return True
        if answer.says_something:
            return False
        why = _("the model answered with nothing")
        message = _("{what}, twice: say it again").format(what=why)
        spending.again("empty_answer", message, most=1)
        self.screen.streamed({"type": "retry", "attempt": 1, "of": 1, "after": 0.0, "reason": why})
        return True

    @property
    def _all_sent(self) -> int:
        """How many requests have gone out, whatever came of them."""
        return self._sent + self.compactor.summariser.requests

    async def _ask_in_room(self, spending: Spending) -> Answer:
        """Ask, in a context that fits; what the server refuses is changed, and asked again."""
        await self.compactor.make_room()
        refusals = Refusals(self.compactor)
        while True:
            lost = added(self._lost, self.compactor.summariser.unrecorded)
            spending.ask(self.open_conversation.conversation, lost, self._all_sent)
            self.screen.asking("answer")
            try:
                return await self._ask()
            except ModelError as problem:
                await refusals.answer(problem)

    async def _deliver(self) -> bool:
        """Say the prompts that are queued; return whether there was any."""
        queued = await self._attachments_of_queue()
        if queued:
            self.open_conversation.record(lambda latest: latest.deliver_prompts(queued))
        return bool(queued)

    async def _attachments_of_queue(self) -> dict[Version, Sequence[JsonObject]]:
        """Return what goes with each queued prompt, those queued meanwhile among them."""
        found: dict[Version, Sequence[JsonObject]] = {}
        while True:
            queue = self.open_conversation.conversation.queue
            new = next((version for version in queue if version not in found), None)
            if new is None:
                return {version: found[version] for version in queue}
            found[new] = await self.attach(queue[new])

    async def _ask(self) -> Answer:
        """Send the context, append the answer, and return it."""
        conversation = self.open_conversation.conversation
        if self._requests is None or self._requests.conversation is not conversation:
            self._requests = Requests(conversation)  # the first, or read again after a failed save
        (request, proof), version = self._requests.request(conversation.leaf), conversation.version
        leaf, model = conversation.leaf, conversation.model
        answer, began = Answer(), monotonic()

        def append(content: list[JsonObject], stop_reason: str | None) -> None:
            self.open_conversation.record(
                lambda latest: latest.append_answer(
                    content,
                    stop_reason=stop_reason,
                    answers=leaf,
                    model=model,
                    usage=answer.usage,
                    response_id=answer.response_id,
                    duration=round(monotonic() - began, 3),
                    request_digest=proof,
                    request_version=version,
                    projection=PROJECTION,
                ),
                anywhere=True,  # it hangs from what it answers
            )

        self._sent += 1
        try:
            async for event in self.model.stream(request):
                if event["type"] == "retry":  # what came of the attempt before is void
                    self._sent += 1
                    self._lost, answer = added(self._lost, answer.usage), Answer()
                answer.apply(event)
                self.screen.streamed(event)
        except (ModelError, asyncio.CancelledError) as stopped:
            if answer.kept_if_cut_short:
                why = "failed" if isinstance(stopped, ModelError) else "interrupted"
                append(answer.kept_if_cut_short, why)
            else:
                self._lost = added(self._lost, answer.usage)
            raise
        append(answer.content, answer.stop_reason)
        self.compactor.keep_guess()
        self.screen.answered()
        return answer

    def _end_turn(self, outcome: str, first: int, error: TurnError | None = None) -> str:
        leaf = self.open_conversation.conversation.leaf

        def end(conversation: Conversation) -> None:
            if conversation.leaf == leaf:  # else another program works there
                conversation.close_open_calls()
            lost = added(self._lost, self.compactor.summariser.unrecorded)
            spent = added(total(conversation, since=first), lost)
            conversation.end_turn(outcome, error=error, spent=spent, lost=lost)

        self.open_conversation.record(end, anywhere=True)
        self._lost = self.compactor.summariser.unrecorded = {}
        self.screen.turn_ended(outcome, error)
        return outcome


def _is_cut_off(answer: Answer) -> bool:
    """Whether calls of *answer* may lack their end. The end has many names."""
    if answer.stop_reason in CUT_OFF:
        return True
    return answer.stop_reason != "tool_use" and not answer.calls_are_whole
