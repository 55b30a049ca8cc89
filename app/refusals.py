"""What is done about a refusal, so that the conversation always goes on.

A limit that the server names is taken. Content that it names is left out. Where it says that the
request is too long, room is made, in whatever window turns out to be the model's. Each of these is
a fact in the log: the next request, and its proof, are made by it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from app.i18n import _
from domain.projections.context import context
from domain.refused_fields import refused_field
from domain.suspicion import suspected_entry, suspects
from infrastructure.errors import ModelError

if TYPE_CHECKING:
    from app.compactor import Compactor
    from domain.conversation import Conversation

MAX_ANSWERS = 6
"""How often in a row a refused request is changed and sent again."""

_MAY_NAME_CONTENT = frozenset({400, 415, 422, 500, 501})


@dataclass
class Refusals:
    """Answers the refusals of one request, each of which may uncover the next."""

    compactor: Compactor
    _answered: int = 0
    _has_made_room: bool = False

    async def answer(self, problem: ModelError) -> None:
        """Change what *problem* names; when this returns, it makes sense to ask again.

        Raises:
            ModelError: *problem*, with the next step: there is nothing to change.
        """
        self._answered += 1
        try:
            if self._answered > MAX_ANSWERS or not await self._change(problem):
                raise problem
        except ModelError as end:
            self.compactor.take_back_guess()
            raise (self._with_next_step(end) if end is problem else end) from problem

    async def _change(self, problem: ModelError) -> bool:
        """Change what *problem* names: a limit, a field of the request, or what is said in it."""
        if problem.max_tokens is not None and self.compactor.learn(max_tokens=problem.max_tokens):
            return True
        if field := self._refused_field(problem):
            return self._drop_field(field, problem)
        return self._leave_out(problem) or await self._make_room(problem)

    def _drop_field(self, field: str, problem: ModelError) -> bool:
        """Go on without the *field* that the refusal names, where nothing else depends on it."""
        if field != "cache_control" or not self.compactor.open_conversation.conversation.caching:
            return False
        self.compactor.open_conversation.record(
            lambda latest: latest.change_model(
                latest.model or "", max_tokens=latest.max_tokens or 1, caching=False
            )
        )
        self._say_again(problem)
        return True

    def _refused_field(self, problem: ModelError) -> str | None:
        if problem.is_overflow or problem.status not in _MAY_NAME_CONTENT:
            return None
        conversation = self.compactor.open_conversation.conversation
        return refused_field(context(conversation, conversation.leaf), problem.reason)

    def _leave_out(self, problem: ModelError) -> bool:
        """Withhold what the refusal names; False if that is nothing, or left out already."""
        if problem.is_overflow or problem.status not in _MAY_NAME_CONTENT:
            return False
        conversation = self.compactor.open_conversation.conversation
        meant = suspects(conversation, context(conversation, conversation.leaf), problem.reason)
        if meant is None:
            return False
        self.compactor.open_conversation.record(
            lambda latest: latest.withhold(meant.entries, meant.kinds, reason=problem.reason)
        )
        self._say_again(problem)
        return True

    def _say_again(self, problem: ModelError) -> None:
        again = _("{reason}; asked again without it").format(reason=problem.reason)
        self.compactor.screen.streamed(
            {"type": "retry", "attempt": self._answered, "of": MAX_ANSWERS, "after": 0.0,
             "reason": again}
        )  # fmt: skip

    async def _make_room(self, problem: ModelError) -> bool:
        """Compact, in the window that the refusal names or in a smaller one than was believed."""
        if not problem.is_overflow:
            is_possible = problem.is_unexplained and not self._has_made_room
            if not is_possible or not self.compactor.is_nearly_full():
                return False
        is_learned = self.compactor.learn_window(problem, is_first=not self._has_made_room)
        self._has_made_room = True
        keeps = (None, 1) if is_learned else (1,)
        for keep in keeps:
            if await self.compactor.compact(reason="overflow", keep=keep):
                return True
        return is_learned

    def _with_next_step(self, problem: ModelError) -> ModelError:
        """Return *problem* with what a person can do about it."""
        advice = self._advice(problem, self.compactor.open_conversation.conversation)
        return replace(problem, message=problem.reason, advice=advice) if advice else problem

    def _advice(self, problem: ModelError, conversation: Conversation) -> str | None:
        if problem.is_overflow:
            window = self.compactor.window
            return _(
                "the model is taken to have a window of {window:,} tokens (the setting is "
                "context_window, or LEFTFOLD_CONTEXT_WINDOW): shorten the prompt, go back with "
                "/tree, or start with /new"
            ).format(window=window)
        if field := self._refused_field(problem):
            return _about_field(field)
        if not problem.is_unexplained:
            return None
        request = context(conversation, conversation.leaf)
        if "thinking" in request and "thinking" in problem.reason:
            return _about_field("thinking")
        entry = suspected_entry(conversation, request, problem.reason)
        if entry is None:
            return None
        is_prompt = not conversation.entry(entry).content.tool_results  # type: ignore[attr-defined]
        place = entry if is_prompt else conversation.parent_of(entry)
        return _(
            "entry {entry} is suspected; go on before it with /tree {place}, or in a copy with "
            "/fork {place}"
        ).format(entry=entry, place=place)


def _about_field(field: str) -> str:
    """Say what avoids a *field* of the request that the server does not take."""
    root = re.match(r"\w+", field)
    match root and root[0]:
        case "thinking" | "output_config" | "budget_tokens" | "effort":
            return _("let the model think no more, with /thinking off")
        case "tools" | "tool_choice" | "input_schema" | "strict":
            return _(
                "the server does not take {field}: choose a model that can call tools, with "
                "/model, or other tools, with --tools"
            ).format(field=field)
        case _:
            return _(
                "the server does not take {field}: check ANTHROPIC_BASE_URL and "
                "ANTHROPIC_CUSTOM_HEADERS, or choose another model with /model"
            ).format(field=field)
