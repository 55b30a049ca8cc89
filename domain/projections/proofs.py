"""The one walk that proves digests: every request that was recorded, rebuilt from the log alone."""

from __future__ import annotations

from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple, TypeAlias

import msgspec

from domain.conversation import Conversation
from domain.events import BranchSummarized, Compacted, Event, MessageAppended, Version
from domain.projections.requests import Requests
from domain.projections.summaries import digests_of
from domain.request import CANONICAL_FORM, FORM, form_of

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    Answer: TypeAlias = MessageAppended | Compacted | BranchSummarized


class Proof(NamedTuple):
    """A request of *answer*: the digest that was *recorded*, and the one *computed* from the log.

    None is computed where the events are missing that it was made from.
    """

    answer: Answer
    recorded: str
    computed: str | None

    @property
    def projection(self) -> str | None:
        """The version of the projection that made the request, if it was recorded."""
        if isinstance(self.answer, MessageAppended):
            return self.answer.projection
        return self.answer.asked.projection if self.answer.asked else None

    @property
    def holds(self) -> bool:
        """Whether the request is proven."""
        return self.computed == self.recorded


def proofs(events: Sequence[Event]) -> Iterator[Proof]:
    """Yield a proof for every request that was recorded with what came of it."""
    answers: dict[Version, list[Answer]] = {}
    for event in events:
        if (version := _made_at(event)) is not None:
            answers.setdefault(version, []).append(event)  # type: ignore[arg-type]
    if not events:
        return
    conversation = Conversation.blank(events[0].originator_id, events[0].timestamp)
    requests = {form: Requests(conversation, form) for form in (FORM, CANONICAL_FORM)}
    for event in events:
        conversation.fold(event)
        for answer in answers.pop(event.originator_version, ()):
            if isinstance(answer, MessageAppended):
                of_form = requests[form_of(str(answer.request_digest))]
                computed: list[str | None] = [of_form.digest(conversation.leaf)]
            else:
                computed = digests_of(conversation, answer)
            yield from map(Proof, repeat(answer), _recorded(answer), computed)
    for orphans in answers.values():
        for answer in orphans:
            yield from (Proof(answer, recorded, None) for recorded in _recorded(answer))


def with_proofs_that_hold(events: Sequence[Event]) -> tuple[list[Event], int]:
    """Return the events without the request digests that cannot be proven, and how many went."""
    wrong = {proof.answer.originator_version for proof in proofs(events) if not proof.holds}
    kept = []
    for event in events:
        if event.originator_version not in wrong:
            kept.append(event)
        elif isinstance(event, MessageAppended):
            kept.append(
                msgspec.structs.replace(
                    event, request_digest=None, request_version=None, projection=None
                )
            )
        else:
            kept.append(msgspec.structs.replace(event, asked=None))
    return kept, len(wrong)


def _made_at(event: Event) -> Version | None:
    """Return the version of the log from which the requests of *event* were made, if any were."""
    match event:
        case MessageAppended(request_digest=str(), request_version=version):
            return version or 0
        case Compacted(asked=asked) | BranchSummarized(asked=asked) if asked is not None:
            return asked.version
        case _:
            return None


def _recorded(answer: Answer) -> list[str]:
    if isinstance(answer, MessageAppended):
        return [str(answer.request_digest)]
    return [step.digest for step in answer.asked.steps] if answer.asked else []
