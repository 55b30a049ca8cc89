"""Commands of the REPL that show something, and change nothing."""

from __future__ import annotations

import asyncio
import json
from typing import TYPE_CHECKING

from app.figures import statistics, text_of
from app.i18n import _
from app.references import entry_version
from app.view.console import width
from app.view.lines import columns, log_line
from domain.errors import InvalidCommandError
from domain.events import BranchSummarized, Compacted, MessageAppended, NoteAppended
from domain.messages import Json, JsonObject, result_text
from domain.projections.compaction import context_tokens, entry_tokens, estimate
from domain.projections.context import context, live_entries

if TYPE_CHECKING:
    from app.repl.desk import Desk
    from domain.conversation import Conversation

_EVENTS_SHOWN = 20
_SECONDS_BETWEEN_LOOKS = 0.3


async def show(desk: Desk, arguments: str) -> None:
    """Print all of one entry: what was shortened when it came."""
    conversation = desk.require_recorded()
    if arguments:
        version = entry_version(conversation, arguments)
    else:
        results = [e for e in conversation.messages() if e.content.tool_results]
        if not results:
            raise InvalidCommandError(_("No tool has run on this path yet."))
        version = results[-1].originator_version
    match conversation.entries[version]:
        case MessageAppended() as entry:
            for raw in entry.content.blocks:
                desk.say(_whole(raw) or json.dumps(raw, ensure_ascii=False, indent=2))
        case Compacted(summary=text) | BranchSummarized(summary=text) | NoteAppended(content=text):
            desk.say(text)


def _whole(raw: Json) -> str:
    """Return the text of a block, if it has one."""
    match raw:
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return text
        case {"type": "tool_result", "tool_use_id": str()}:
            return result_text(raw.get("content"))
        case _:
            return ""


async def log(desk: Desk, arguments: str) -> None:
    """Print the last events; with ``follow`` also new ones, until a key is pressed."""
    conversation = desk.require_recorded()
    if arguments not in ("", "follow"):
        raise InvalidCommandError(
            _("/log takes nothing or follow, not {arguments!r}.").format(arguments=arguments)
        )
    shown = max(conversation.version - _EVENTS_SHOWN, 0)
    if arguments and desk.is_interactive:
        how = _("any key") if desk.is_at_terminal else "Ctrl+C"
        desk.say(_("({key} ends this)").format(key=how), "dim")
    while True:
        events = desk.factory.conversations.events_of(desk.open_conversation.id, since=shown + 1)
        for event in events:
            desk.say(log_line(event, width(desk.console)))
            shown = event.originator_version
        if not arguments or not desk.is_interactive:
            return
        if await desk.type_ahead.pressed(_SECONDS_BETWEEN_LOOKS):
            return


async def show_context(desk: Desk, arguments: str) -> None:
    """Print how large the parts of the next request are, or the request."""
    conversation = desk.factory.foreseen(desk.conversation)
    request = context(conversation, conversation.leaf)
    if arguments == "json":
        desk.say(json.dumps(request, ensure_ascii=False, indent=2))
    elif arguments:
        raise InvalidCommandError(
            _("/context takes nothing or json, not {arguments!r}.").format(arguments=arguments)
        )
    else:
        window = await asyncio.to_thread(desk.factory.window_of, conversation.model or "")
        window = conversation.known_limits.within(window)
        for row in context_rows(conversation, request, window):
            desk.say(row)


def context_rows(conversation: Conversation, request: JsonObject, window: int) -> list[str]:
    """Return the parts of a request with about how many tokens they take: they add up."""
    live = live_entries(conversation, conversation.leaf)
    summaries = [entry for entry in live if isinstance(entry, Compacted)]
    tools = ", ".join(str(tool.get("name")) for tool in request.get("tools", ()))
    on_path = _("{count:,} on the path").format(count=conversation.message_count())
    total = context_tokens(conversation)
    share = _("{share:.1%} of {window:,}").format(share=total / window, window=window)
    parts = [
        (_("system"), estimate(request["system"]) if "system" in request else 0, ""),
        (_("tools"), estimate(request["tools"]) if tools else 0, tools or _("none")),
        (_("summary"), sum(map(entry_tokens, summaries)), ""),
        (_("messages"), sum(entry_tokens(e) for e in live if e not in summaries), on_path),
    ]
    counts = adding_up([tokens for _name, tokens, _more in parts], total)
    rows = [(name, tokens, more) for (name, _, more), tokens in zip(parts, counts, strict=True)]
    rows.append((_("in all"), total, share))
    cells = [[name, _("{tokens:,} tokens").format(tokens=n), more] for name, n, more in rows]
    return columns([[_("model"), "", str(request["model"])], *cells], left=(0, 2))


def adding_up(parts: list[int], total: int) -> list[int]:
    """Return estimates of *parts*, changed in proportion so that their sum is *total*."""
    estimated = sum(parts)
    if not estimated:
        return [*parts[:-1], total]
    ends = [total * sum(parts[: number + 1]) // estimated for number in range(len(parts))]
    return [end - before for before, end in zip([0, *ends], ends, strict=False)]


async def stats(desk: Desk, _arguments: str) -> None:
    """Print tokens and cost."""
    desk.say(text_of(statistics(desk.require_recorded()), width(desk.console)))
