"""Who decides whether a tool may act, and what an answer means: only a plain yes lets one act.

Neither a terminal nor its libraries are needed here: `leftfold -p` asks nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import _
from app.ports import UNASKED, Approval, Proposal
from domain.calls import NOBODY

if TYPE_CHECKING:
    from domain.messages import ToolUseBlock

DECLINED = (
    "The user declined this call, and it was not run. Do not make it again in another form; "
    "ask what to do instead, or go on without it."
)
DECLINED_BECAUSE = (
    "The user declined this call as it is, and it was not run. The user says: {reason}"
)


_BEFORE_A_REASON = DECLINED_BECAUSE.partition("{reason}")[0]


def refusal(told: str) -> str | None:
    """Return for people what the result *told* says of a call that was not allowed to run.

    None if it is the result of one that ran.
    """
    if told == NOBODY:
        return _("refused, not run: nobody was there to ask")
    if told == DECLINED:
        return _("refused, not run")
    if told.startswith(_BEFORE_A_REASON):
        reason = told.removeprefix(_BEFORE_A_REASON)
        return _("refused, not run: {reason}").format(reason=reason)
    return None


def approval(answer: object, call: ToolUseBlock, *, reason: str = "") -> Approval:
    """Return what *answer* to the question about *call* decides, whatever it is.

    ``yes``, ``always`` and, for a call that has one, ``command`` (always this very command) let
    the call run. Everything else is a no; its *reason*, if there is one, is told to the model.
    """
    match answer:
        case "yes" | "always":
            return Approval(str(answer))
        case "command" if isinstance(command := call.input.get("command"), str):
            return Approval("always", command=command)
        case _:
            reason = reason.strip()
            told = DECLINED_BECAUSE.format(reason=reason) if reason else DECLINED
            return Approval("no", reason=told)


class AllowAll:
    """Lets every tool act: ``--yes``."""

    async def decide(self, proposal: Proposal) -> Approval:  # noqa: ARG002
        """Ask nobody."""
        return UNASKED


class RefuseAll:
    """Lets no tool act that needs approval, nobody being there to ask; *refused* counts them."""

    refused = 0

    async def decide(self, proposal: Proposal) -> Approval:  # noqa: ARG002
        """Refuse, and say why."""
        self.refused += 1
        return Approval("no", reason=NOBODY)
