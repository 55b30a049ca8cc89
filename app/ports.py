"""What the loop needs from the world, as protocols. Adapters satisfy them by shape alone."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, NamedTuple, Protocol, TypeAlias

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Callable, Mapping

    from domain.events import TurnError
    from domain.messages import JsonObject, ToolUseBlock
    from domain.request import Request
    from domain.tool_use import Change, Plan, ToolOutput


Purpose: TypeAlias = Literal["answer", "summary"]
"""What a request is for."""


class Model(Protocol):
    """Something that answers requests of the Messages API."""

    def stream(self, request: Request) -> AsyncIterator[JsonObject]:
        """Send *request*, byte for byte, and yield the raw stream events of the answer.

        Raises:
            ModelError: there is no answer, or it broke off.
        """


class Tool(Protocol):
    """Something that the model may call."""

    @property
    def name(self) -> str:
        """The name by which the model calls it."""

    @property
    def needs_approval(self) -> bool:
        """Whether the user is asked first."""

    def definition(self) -> dict[str, Any]:
        """Return name, description and input schema, as the API takes them."""

    def summary(self, arguments: dict[str, Any]) -> str:
        """Return one line for people: what this call would do."""


class Toolbox(Protocol):
    """The tools at hand, ready to run in the conversation's directory."""

    @property
    def tools(self) -> Mapping[str, Tool]:
        """The tools by name."""

    async def plan(self, call: ToolUseBlock, seen: Mapping[str, str]) -> Plan:
        """Find out what *call* would do; *seen* are the files that the model knows whole."""

    async def run(
        self,
        call: ToolUseBlock,
        on_output: Callable[[str], None],
        *,
        state: object,
        seen: Mapping[str, str],
    ) -> ToolOutput:
        """Run *call* to its end, on the *state* on which it was planned and on no other.

        Whatever goes wrong is a result with ``is_error``.
        """


class Proposal(NamedTuple):
    """A call that would act: *summary* names it in a line, *change* is what becomes of a file."""

    call: ToolUseBlock
    summary: str
    change: Change | None = None


class Approval(NamedTuple):
    """What was decided of a call: *decision* is yes, always, no, or that nobody had to be asked.

    *command*: always means this command alone. *reason* is told to the model after a no.
    """

    decision: str
    command: str | None = None
    reason: str = ""


UNASKED = Approval("unasked")
"""The call may run, and no decision is recorded: nobody was asked."""


class Approver(Protocol):
    """Who decides whether a tool may act."""

    async def decide(self, proposal: Proposal) -> Approval:
        """Return what was decided of a call."""


class Screen(Protocol):
    """Who watches a turn."""

    def asking(self, purpose: Purpose) -> None:
        """A request goes out: from here on the model is waited for."""

    def streamed(self, event: JsonObject) -> None:
        """Show a raw stream event of the answer that is arriving."""

    def answered(self) -> None:
        """The answer is complete, and in the log."""

    def tool_started(self, call: ToolUseBlock, summary: str) -> None:
        """A tool begins to run."""

    def tool_printed(self, call: ToolUseBlock, text: str) -> None:
        """A running tool printed *text*."""

    def tool_ended(self, call: ToolUseBlock, output: ToolOutput) -> None:
        """A tool is done, and its result is in the log."""

    def compacting(self, tokens: int) -> None:
        """A context of about *tokens* tokens is about to be summarised."""

    def compacted(self, tokens: int) -> None:
        """The context is summarised; it is about *tokens* tokens now."""

    def turn_ended(self, outcome: str, error: TurnError | None) -> None:
        """The turn is over: done, interrupted or failed."""
