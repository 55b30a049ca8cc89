"""Compaction, done: asks the model for a summary, and records it only if it is a good one.

The policy is `domain.projections.compaction`; here are the requests, the refusals and the
retries. What fails or is interrupted leaves the log as it was (case K6).
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass
from http import HTTPStatus
from typing import TYPE_CHECKING

from app.i18n import _
from app.summariser import Summariser
from domain.limits import Room
from domain.projections.compaction import context_tokens, find_cut, summary_text
from domain.projections.summaries import Subject
from infrastructure.errors import ModelError

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from app.open_conversation import OpenConversation
    from app.ports import Model, Screen
    from domain.conversation import Conversation
    from domain.events import Entry, Version

SMALLEST_GUESS = 4_096
"""The smallest window that is tried where nobody says how large it is."""
SHARES = (1, 0.5, 0)
"""How much of what is usually kept stays, the first time that room is made and the next ones."""


@dataclass
class Compactor:
    """Makes room in the open conversation.

    *window_of* tells how many tokens a model can take in; nobody is asked about a context of up to
    *surely_fits* tokens.

    Attributes:
        summariser: Asks for the summaries, and counts what that takes.
    """

    open_conversation: OpenConversation
    model: InitVar[Model]
    screen: Screen
    window_of: Callable[[str], int]
    surely_fits: int = 0
    _believed: int | None = None  # the window, before it was guessed to be smaller

    def __post_init__(self, model: Model) -> None:
        self.summariser = Summariser(model, self.screen, lambda: self.window, self._learn_from)

    def is_needed(self) -> bool:
        """Whether the next request would not leave room for its answer."""
        conversation = self.open_conversation.conversation
        surely_fits = 0 if conversation.known_limits.context_window else self.surely_fits
        tokens = context_tokens(conversation)
        return tokens > surely_fits and tokens > self.room.limit

    def is_nearly_full(self) -> bool:
        """Whether the context fills most of the window, as far as anybody knows."""
        return 2 * context_tokens(self.open_conversation.conversation) > self.room.limit

    async def make_room(self, *, reason: str = "threshold") -> None:
        """Compact until the next request fits, keeping less and less of the recent past.

        Raises:
            ModelError: it does not fit even so, or there was no good summary.
        """
        for share in SHARES:
            if not self.is_needed():
                return
            await self.compact(reason=reason, keep=max(int(self.room.keep * share), 1))
        if self.is_needed():
            room = self.room
            tokens = context_tokens(self.open_conversation.conversation)
            message = _(
                "the conversation needs about {tokens:,} tokens and the model takes in "
                "{window:,}, of which {reserve:,} are for the answer; compaction "
                "could not make room: choose a larger model, or start anew with /new; the window "
                "is the setting context_window, or LEFTFOLD_CONTEXT_WINDOW"
            ).format(tokens=tokens, window=room.window, reserve=room.reserve)
            raise ModelError(message, kind="no_room")

    async def compact(self, *, reason: str, keep: int | None = None, focus: str = "") -> bool:
        """Summarise all but about *keep* tokens; return False if there was nothing to summarise.

        Raises:
            ModelError: there was no good summary; nothing changed.
        """
        conversation = self.open_conversation.conversation
        cut = find_cut(conversation, self.room.keep if keep is None else keep)
        if cut is None:
            return False
        before = context_tokens(conversation)
        self.screen.compacting(before)
        past, turn, asked = await self.summariser.summarise(
            conversation, Subject.of_cut(cut), focus=focus, may_be_whole=reason != "overflow"
        )
        self._record(
            lambda latest: latest.compact(
                summary_text(cut, past, turn, self.room),
                first_kept=cut.first_kept,
                tokens_before=before,
                reason=reason,
                model=conversation.model,
                usage=self.summariser.unrecorded,
                asked=asked,
            )
        )
        self.screen.compacted(context_tokens(self.open_conversation.conversation))
        return True

    async def rotated(self, *, focus: str = "") -> Callable[[Conversation], None]:
        """Return the command that begins a new conversation from a summary of this one.

        Raises:
            ModelError: there was no good summary, or there is nothing to summarise.
        """
        conversation = self.open_conversation.conversation
        cut = find_cut(conversation, self.room.keep)
        if cut is None:
            raise ModelError(_("There is nothing to compact yet."), kind="nothing_to_compact")
        self.screen.compacting(context_tokens(conversation))
        past, turn, _asked = await self.summariser.summarise(
            conversation, Subject.of_cut(cut), focus=focus
        )
        summary, usage = summary_text(cut, past, turn, self.room), self.summariser.unrecorded
        return lambda new: new.carry_over(conversation, summary, cut.first_kept, usage=usage)

    async def leave_branch(
        self, target: Version | None, left: Sequence[Entry], *, focus: str = ""
    ) -> None:
        """Move the leaf to *target*, and say there what happened in the entries that are *left*.

        Raises:
            ModelError: there was no good summary; nothing changed.
        """
        conversation = self.open_conversation.conversation
        summary, _turn, asked = await self.summariser.summarise(
            conversation, Subject.of_branch(left), focus=focus
        )
        self._record(
            lambda latest: latest.leave_branch(
                target,
                summary,
                asked=asked,
                model=conversation.model,
                usage=self.summariser.unrecorded,
            )
        )

    def _record(self, command: Callable[[Conversation], object]) -> None:
        """Record a summary wherever the leaf is by now: it was paid for."""
        self.open_conversation.record(command, anywhere=True)
        self.summariser.unrecorded = {}

    @property
    def window(self) -> int:
        """How many tokens today's model takes in: as is known of it, or as its server has said."""
        conversation = self.open_conversation.conversation
        return conversation.known_limits.within(self.window_of(conversation.model or ""))

    @property
    def room(self) -> Room:
        """How that window is used."""
        return Room.of(self.window)

    def learn(self, **limit: int) -> bool:
        """Record a limit of today's model (see `Limits`); return whether that is news."""
        conversation = self.open_conversation.conversation
        before = conversation.version
        self.open_conversation.record(
            lambda latest: latest.learn_limits(latest.model or "", **limit)
        )
        return self.open_conversation.conversation.version > before

    def learn_window(self, problem: ModelError, *, is_first: bool = False) -> bool:
        """Learn the window from an overflow; return whether it is smaller than was believed.

        Where the server names none, half of what it refused is tried, and half of that the next
        time: the request and the longest answer to it, which many count as well. The *first* time
        a context that may well be longer than it was counted proves nothing; what would fit any
        window never does, whatever the server says.
        """
        window, named = self.window, problem.context_window
        if named is not None:
            self._believed = None
            return named < window and self.learn(context_window=named)
        if problem.status == HTTPStatus.REQUEST_ENTITY_TOO_LARGE:
            return False  # too many bytes, whatever the window is
        conversation = self.open_conversation.conversation
        sent = problem.requested_tokens or context_tokens(conversation)
        refused = sent + conversation.known_limits.answer(conversation.max_tokens or 1)
        if refused <= SMALLEST_GUESS or (is_first and 2 * sent > window):
            return False
        guess = max(min(window, refused) // 2, SMALLEST_GUESS)
        is_learned = guess < window and self.learn(context_window=guess)
        if is_learned:
            self._believed = self._believed or window
        return is_learned

    def keep_guess(self) -> None:
        """Believe in the window that was guessed: there was an answer in it."""
        self._believed = None

    def take_back_guess(self) -> None:
        """Believe in the window as before it was guessed: a smaller one helped nothing."""
        if self._believed is not None:
            self.learn(context_window=self._believed)
            self._believed = None

    def _learn_from(self, problem: ModelError) -> bool:
        """Learn a limit from the refusal of a summary; return whether there was one."""
        if problem.max_tokens is not None:
            return self.learn(max_tokens=problem.max_tokens)
        return problem.is_overflow and self.learn_window(problem)
