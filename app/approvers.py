"""Who decides whether a tool may act, and what an answer means: only a plain yes lets one act.

Neither a terminal nor its libraries are needed here: `leftfold -p` asks nobody.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.ports import UNASKED, Approval

if TYPE_CHECKING:
    from app.ports import Proposal
    from domain.messages import ToolUseBlock

NOBODY = (
    "This tool needs the user's approval, and nobody is there to give it "
    "(the user can run leftfold with --yes to allow it)."
)
DECLINED = (
    "The user declined this call, and it was not run. Do not make it again in another form; "
    "ask what to do instead, or go on without it."
)
DECLINED_BECAUSE = (
    "The user declined this call as it is, and it was not run. The user says: {reason}"
)


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
    """Lets no tool act that needs approval: nobody is there to ask."""

    async def decide(self, proposal: Proposal) -> Approval:  # noqa: ARG002
        """Refuse, and say why."""
        return Approval("no", reason=NOBODY)
