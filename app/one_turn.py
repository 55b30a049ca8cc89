"""``leftfold -p``: one turn without a REPL, and the three ways of printing it.

``text`` prints the final answer; ``json`` one object at the end; ``stream-json`` one object a
line as things happen (documented in docs/scripting.md).
"""

from __future__ import annotations

import asyncio
import json
import sys
from contextlib import suppress
from typing import TYPE_CHECKING

import click

from app.errors import DONE, FAILED
from app.i18n import _
from app.repl.console import Terminal
from app.repl.plain import plain
from app.signals import owned
from domain.events import MessageAppended
from domain.projections.usage import total

if TYPE_CHECKING:
    from uuid import UUID

    from app.agent import Agent
    from app.ports import OpenConversation, Purpose, Screen, ToolOutput
    from domain.conversation import Conversation
    from domain.events import TurnError, Version
    from domain.messages import JsonObject, ToolUseBlock


class SilentScreen:
    """Shows nothing while the turn runs."""

    def asking(self, purpose: Purpose) -> None:
        """Show nothing."""

    def streamed(self, event: JsonObject) -> None:
        """Show nothing."""

    def answered(self) -> None:
        """Show nothing."""

    def tool_started(self, call: ToolUseBlock, summary: str) -> None:
        """Show nothing."""

    def tool_printed(self, call: ToolUseBlock, text: str) -> None:
        """Show nothing."""

    def tool_ended(self, call: ToolUseBlock, output: ToolOutput) -> None:
        """Show nothing."""

    def compacting(self, tokens: int) -> None:
        """Show nothing."""

    def compacted(self, tokens: int) -> None:
        """Show nothing."""

    def turn_ended(self, outcome: str, error: TurnError | None) -> None:
        """Show nothing."""


class StreamJSONScreen(SilentScreen):
    """Prints one JSON object a line for everything that happens."""

    def streamed(self, event: JsonObject) -> None:
        """Print the API's own stream event."""
        happened({"type": "stream", "event": event})

    def compacting(self, tokens: int) -> None:
        """Print that the context is about to be summarised, which takes a while."""
        happened({"type": "compacting", "tokens": tokens})

    def compacted(self, tokens: int) -> None:
        """Print that the context was summarised."""
        happened({"type": "compacted", "tokens": tokens})

    def tool_started(self, call: ToolUseBlock, summary: str) -> None:
        """Print which call begins."""
        happened({"type": "tool_started", "call": call.model_dump(), "summary": summary})

    def tool_printed(self, call: ToolUseBlock, text: str) -> None:
        """Print what a running tool printed."""
        happened({"type": "tool_output", "tool_use_id": call.id, "text": text})

    def tool_ended(self, call: ToolUseBlock, output: ToolOutput) -> None:
        """Print the result of a call."""
        result = {"content": output.content, "is_error": output.is_error}
        happened({"type": "tool_result", "tool_use_id": call.id, **result})


def screen(output: str) -> Screen:
    """Return the screen for ``--output``."""
    return StreamJSONScreen() if output == "stream-json" else SilentScreen()


async def run(agent: Agent, at_hand: OpenConversation, prompt: str, output: str) -> int:
    """Run one turn; print by *output*; return the exit code.

    A signal ends the turn as Ctrl+C does: everything that happened is in the log.
    """
    since = at_hand.conversation.version + 1
    if output == "stream-json":
        happened(about(at_hand.conversation))
    turn = asyncio.ensure_future(agent.run_turn(prompt))
    codes: list[int] = []

    def stop(code: int) -> None:
        codes.append(code)
        if not turn.cancelling():  # a second time would disturb its tidying up
            turn.cancel()

    with owned(stop), suppress(asyncio.CancelledError):
        await turn
    result = result_of(at_hand.conversation, since)
    _print_result(result, output)
    if codes:
        return codes[0]
    return DONE if result["outcome"] == "done" else FAILED


def about(talk: Conversation) -> JsonObject:
    """Return the first line of ``stream-json``: which conversation this is."""
    return {
        "type": "conversation",
        "id": str(talk.id),
        "cwd": talk.cwd,
        "model": talk.model,
        "restored": talk.message_count(),
    }


def result_of(talk: Conversation, since: int) -> JsonObject:
    """Return what came of the turn that began with version *since*."""
    answers = [
        entry
        for entry in talk.since(since)
        if isinstance(entry, MessageAppended) and entry.said.role == "assistant"
    ]
    end = talk.last_turn
    if end is not None and end.originator_version < since:
        end = None  # of the turn before: this one had hardly begun
    result = _result(
        talk.id,
        end.outcome if end else "interrupted",
        version=talk.version,
        text=answers[0].said.text if answers else "",
        stop_reason=answers[0].stop_reason if answers else None,
        usage=total(talk, since=since),
    )
    if end is not None and end.error is not None:
        result["error"] = {"type": end.error.type, "message": end.error.message}
    return result


def not_recorded(conversation_id: UUID, message: str) -> JsonObject:
    """Return what came of a turn whose end the log could not take; *message* says why."""
    error = {"type": "not_recorded", "message": message}
    return {**_result(conversation_id, "failed"), "error": error}


def _result(
    conversation_id: UUID,
    outcome: str,
    *,
    version: Version | None = None,
    text: str = "",
    stop_reason: str | None = None,
    usage: JsonObject | None = None,
) -> JsonObject:
    return {
        "type": "result",
        "id": str(conversation_id),
        "version": version,
        "outcome": outcome,
        "text": text,
        "stop_reason": stop_reason,
        "usage": usage or {},
    }


def _print_result(result: JsonObject, output: str) -> None:
    if output != "text":
        click.echo(json.dumps(result, ensure_ascii=True))
        return
    if result["text"]:
        click.echo(plain(result["text"]) if sys.stdout.isatty() else result["text"])
    if "error" in result:
        click.echo(f"leftfold: {plain(result['error']['message'])}", err=True)
    elif result["outcome"] == "interrupted":
        click.echo(_("leftfold: interrupted"), err=True)
    elif result["stop_reason"] not in ("end_turn", "stop_sequence"):
        click.echo(
            _("leftfold: the answer stopped early ({stop_reason})").format(
                stop_reason=result["stop_reason"]
            ),
            err=True,
        )


def happened(value: JsonObject) -> None:
    """Print what happens meanwhile. Whoever stops reading costs the turn nothing."""
    out = Terminal(sys.stdout)
    out.write(f"{json.dumps(value, ensure_ascii=True)}\n")
    out.flush()
