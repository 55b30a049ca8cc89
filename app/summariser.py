"""Asks the model for summaries: at the end of its own request where that fits, else in pieces.

Only a whole summary is taken; what it was asked with is handed back, to be recorded and proven.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

from app.i18n import _
from domain.answer import Answer
from domain.events import SummaryRequests, SummaryStep, Version
from domain.limits import Room
from domain.projections.compaction import context_tokens, estimate
from domain.projections.context import PROJECTION
from domain.projections.parts import text_block
from domain.projections.summaries import Subject, question, summary_requests, whole_request
from domain.projections.usage import added
from domain.text import shortened, valid
from infrastructure.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable

    from app.ports import Model, Screen
    from domain.conversation import Conversation
    from domain.messages import JsonObject
    from domain.request import Request

MAX_REFUSALS = 6
"""How often limits are learned from refusals of one summary."""


@dataclass
class Summariser:
    """Gets summaries from *model*.

    Attributes:
        window: Tells how many tokens it takes in.
        learn: Takes a limit from a refusal, and says whether it is news.
        unrecorded: What summaries have used, good or not, that no event accounts for yet.
        requests: How many have gone out, whatever came of them.
    """

    model: Model
    screen: Screen
    window: Callable[[], int]
    learn: Callable[[ModelError], bool]
    unrecorded: JsonObject = field(default_factory=dict)
    requests: int = 0

    async def summarise(
        self, conversation: Conversation, subject: Subject, *, focus: str, may_be_whole: bool = True
    ) -> tuple[str, str, SummaryRequests]:
        """Return summaries of the past and of the turn in *subject*, and what they were asked with.

        Raises:
            ModelError: there was no good summary.
        """
        leaf, focus = conversation.leaf or 0, valid(focus)
        is_whole = may_be_whole and self._fits_whole(conversation, leaf, subject, focus)
        refusals = 0
        while True:
            try:
                return await self._drive(conversation, leaf, subject, focus, is_whole=is_whole)
            except ModelError as problem:
                refusals += 1
                may_shrink = refusals <= MAX_REFUSALS and self.learn(problem)
                is_its_form = problem.kind == "no_summary" or problem.is_unexplained
                if not may_shrink and not (is_whole and (is_its_form or problem.is_overflow)):
                    raise
                is_whole = False

    def _fits_whole(
        self, conversation: Conversation, leaf: Version, subject: Subject, focus: str
    ) -> bool:
        window = self.window()
        request = whole_request(conversation, leaf, subject, window=window, focus=focus)
        asked = estimate(*text_block(question(subject, focus)))
        return context_tokens(conversation) + asked + request.max_tokens <= window

    async def _drive(
        self,
        conversation: Conversation,
        leaf: Version,
        subject: Subject,
        focus: str,
        *,
        is_whole: bool,
    ) -> tuple[str, str, SummaryRequests]:
        """Ask step by step; each answer is part of the next request."""
        version, window = conversation.version, self.window()
        requests = summary_requests(
            conversation, leaf, subject, window=window, focus=focus, is_whole=is_whole
        )
        steps: list[SummaryStep] = []
        answer: str | None = None
        while True:
            try:
                request = next(requests) if answer is None else requests.send(answer)
            except StopIteration as end:
                past, turn = end.value
                break
            answer = await self._ask(request)
            steps.append(SummaryStep(request.digest(), answer))
        if steps:
            steps[-1] = SummaryStep(steps[-1].digest)  # no request holds the last answer
        asked = SummaryRequests(
            version=version,
            leaf=leaf,
            window=window,
            projection=PROJECTION,
            steps=tuple(steps),
            focus=focus,
            is_whole=is_whole,
        )
        return past, turn, asked

    async def _ask(self, request: Request) -> str:
        """Return the summary that the model writes; refuse one that is cut off, empty or a call.

        Of one that is far longer than it was to be, which no later request would have room for,
        the beginning and the end are taken.
        """
        answer = Answer()
        self.requests += 1
        self.screen.asking("summary")
        try:
            async for event in self.model.stream(request):
                if event["type"] == "retry":  # the summary itself is not for the screen
                    self.requests += 1
                    self.screen.streamed(event)
                    self.unrecorded, answer = added(self.unrecorded, answer.usage), Answer()
                answer.apply(event)
        finally:
            self.unrecorded = added(self.unrecorded, answer.usage)
        text = "\n".join(raw["text"] for raw in answer.content if raw.get("type") == "text")
        if answer.stop_reason != "end_turn" or not text.strip():
            message = _("the model wrote no whole summary ({reason}); nothing changed").format(
                reason=answer.stop_reason
            )
            raise ModelError(message, kind="no_summary")
        return shortened(valid(text).strip(), Room.of(self.window()).longest_summary)
