"""``leftfold -p``: one turn without a REPL, and the three ways of printing it.

``text`` prints the final answer; ``json`` one object at the end; ``stream-json`` one object a
line as things happen (documented in docs/scripting.md).
"""

from __future__ import annotations

import asyncio
import errno
from typing import TYPE_CHECKING, Any, Literal

import click
import msgspec
from msgspec import UNSET

from app.errors import DONE, FAILED
from app.explanations import explanation
from app.headless import happenings
from app.i18n import _
from app.outputs import Problem, look_away, write
from app.signals import owned
from app.terminal import is_looked_at
from app.view.plain import complain, plain
from domain.events import MessageAppended
from domain.projections.usage import total

if TYPE_CHECKING:
    from uuid import UUID

    from app.agent import Agent
    from app.open_conversation import OpenConversation
    from app.ports import Screen
    from domain.conversation import Conversation
    from domain.events import TurnError
    from domain.messages import JsonObject, ToolUseBlock
    from domain.tool_use import ToolOutput


class SilentScreen:
    """Shows nothing while the turn runs."""

    def _nothing(self, *_args: Any, **_named: Any) -> None:
        """Show nothing."""

    asking = streamed = answered = compacting = compacted = turn_ended = _nothing
    tool_started = tool_printed = tool_ended = _nothing


class ToldScreen(SilentScreen):
    """Says on stderr why nothing happens: the request is sent again, and when."""

    def tool_ended(self, call: ToolUseBlock, output: ToolOutput) -> None:
        """Say that secrets were masked."""
        if output.masked:
            names = ", ".join(dict.fromkeys(output.masked))
            complain(
                _("masked in the output of {tool}: {names}").format(tool=call.name, names=names)
            )

    def streamed(self, event: JsonObject) -> None:
        """Say that a request failed for a moment only."""
        if event.get("type") == "retry":
            complain(
                _("retrying in {seconds:.0f} s, try {attempt} of {most} ({why})").format(
                    seconds=float(event.get("after") or 0),
                    attempt=event.get("attempt"),
                    most=event.get("of"),
                    why=" ".join(str(event.get("reason")).split()),
                )
            )


class StreamJSONScreen(SilentScreen):
    """Prints one JSON object a line for everything that happens.

    Results are printed as the log has them: those of calls that were refused, too.
    """

    def __init__(self, open_conversation: OpenConversation) -> None:
        self._open_conversation = open_conversation
        self._seen = open_conversation.conversation.version

    def streamed(self, event: JsonObject) -> None:
        """Print the API's own stream event."""
        self._print_results()
        happened(happenings.Streamed(event))

    def compacting(self, tokens: int) -> None:
        """Print that the context is about to be summarised, which takes a while."""
        happened(happenings.Compacting(tokens))

    def compacted(self, tokens: int) -> None:
        """Print that the context was summarised."""
        happened(happenings.Compacted(tokens))

    def tool_started(self, call: ToolUseBlock, summary: str) -> None:
        """Print which call begins."""
        self._print_results()
        happened(happenings.ToolStarted(call.raw, summary))

    def tool_printed(self, call: ToolUseBlock, text: str) -> None:
        """Print what a running tool printed."""
        happened(happenings.ToolPrinted(call.id, text))

    def tool_ended(self, call: ToolUseBlock, output: ToolOutput) -> None:  # noqa: ARG002
        """Print the result of a call."""
        self._print_results()

    def turn_ended(self, outcome: str, error: TurnError | None) -> None:  # noqa: ARG002
        """Print the results of calls that the end of the turn answered."""
        self._print_results()

    def _print_results(self) -> None:
        """Print the results that were recorded since the last time."""
        conversation = self._open_conversation.conversation
        if conversation.version == self._seen:
            return
        for entry in reversed(list(conversation.since(self._seen + 1))):
            if isinstance(entry, MessageAppended):
                for found in entry.content.tool_results:
                    happened(_tool_result(found))
        self._seen = conversation.version


def _tool_result(found: JsonObject) -> happenings.ToolResult:
    is_error = found.get("is_error") is True
    return happenings.ToolResult(found["tool_use_id"], found.get("content") or "", is_error)


def screen(output: str, open_conversation: OpenConversation) -> Screen:
    """Return the screen for ``--output``."""
    return StreamJSONScreen(open_conversation) if output == "stream-json" else ToldScreen()


async def run(agent: Agent, prompt: str, output: str, *, began: happenings.Began) -> int:
    """Run one turn; print by *output*, what *began* first; return the exit code.

    A signal ends the turn as Ctrl+C does: everything that happened is in the log.
    """
    since = agent.open_conversation.conversation.version + 1
    if output == "stream-json":
        happened(began)
    turn = asyncio.create_task(agent.run_turn(prompt))
    code = await _ended(turn)
    if not turn.cancelled() and (error := turn.exception()) is not None:
        told = explanation(error)
        if told is None or output == "text":
            raise error
        _print_result(failure("not_recorded", told[0], began.id), output)
        return code or told[1]
    result = result_of(agent.open_conversation.conversation, since)
    _print_result(msgspec.structs.replace(result, damage=began.damage), output)
    return code or (DONE if result.outcome == "done" else FAILED)


async def _ended(turn: asyncio.Task[str]) -> int:
    """Wait for the end of a turn; return the exit code of the signal that ended it, or 0."""
    codes: list[int] = []

    def stop(code: int) -> None:
        codes.append(code)
        if not turn.cancelling():  # a second time would disturb its tidying up
            turn.cancel()

    with owned(stop):
        await asyncio.wait([turn])
    return codes[0] if codes else DONE


def result_of(conversation: Conversation, since: int) -> happenings.Result:
    """Return what came of the turn that began with version *since*."""
    answers = [
        entry
        for entry in conversation.since(since)
        if isinstance(entry, MessageAppended) and entry.content.role == "assistant"
    ]
    end = conversation.last_turn
    if end is not None and end.originator_version < since:
        end = None  # of the turn before: this one had hardly begun
    failed = None if end is None else end.error
    return happenings.Result(
        id=conversation.id,
        version=conversation.version,
        outcome=_outcome(end.outcome if end else "interrupted"),
        text=answers[0].content.text if answers else "",
        stop_reason=answers[0].stop_reason if answers else None,
        usage=total(conversation, since=since),
        error=Problem(failed.type, failed.message) if failed else UNSET,
    )


def _outcome(said: str) -> Literal["done", "interrupted", "failed"]:
    """Return how a turn ended; what an edited log says in other words is a failure."""
    return "done" if said == "done" else "interrupted" if said == "interrupted" else "failed"


def failure(kind: str, message: str, conversation_id: UUID | None = None) -> happenings.Result:
    """Return the result of a run that failed before its turn could say so."""
    return happenings.Result(
        id=conversation_id,
        version=None,
        outcome="failed",
        text="",
        stop_reason=None,
        usage={},
        error=Problem(kind, message),
    )


def _print_result(result: happenings.Result, output: str) -> None:
    """Print the result; say on stderr why a turn failed or stopped early, whatever the output."""
    if output != "text":
        happened(result, is_last=True)
    elif result.text:
        click.echo(plain(result.text) if is_looked_at() else result.text)
    if result.error:
        complain(result.error.message)
    elif output != "text":
        return
    elif result.outcome == "interrupted":
        complain(_("interrupted"))
    elif result.stop_reason not in ("end_turn", "stop_sequence"):
        said = _("the answer stopped early ({stop_reason})")
        complain(said.format(stop_reason=result.stop_reason))


_FULL = frozenset({errno.ENOSPC, errno.EDQUOT, errno.EFBIG})


def happened(line: happenings.Happening, *, is_last: bool = False) -> None:
    """Print what happens meanwhile. A reader that stops costs the turn nothing.

    Raises:
        OSError: the *last* line, for which a program waits, finds no room on the disk.
    """
    try:
        write(line)
    except OSError as error:
        if error.errno not in _FULL:
            look_away()
        elif is_last:
            look_away()  # what is left of it cannot be printed at the end, either
            raise OSError(error.errno, error.strerror, _("standard output")) from error
