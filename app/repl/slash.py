"""The commands of the REPL: one table, one small function each."""

from __future__ import annotations

import asyncio
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from app import relocation
from app.bootstrap import OFFLINE_MODEL
from app.commands.log import as_line
from app.commands.stats import statistics, text_of
from app.commands.tree import line as tree_line
from app.i18n import _
from app.references import conversation_id, entry_version
from app.repl.banner import about
from app.repl.columns import columns
from app.suggestions import nearest
from domain import tree
from domain.compaction import context_tokens, entry_tokens, estimate
from domain.conversation import THINKING_LEVELS
from domain.errors import InvalidCommandError
from domain.events import BranchSummarized, Compacted, MessageAppended, NoteAppended
from domain.projections.context import context, live_entries
from domain.projections.outline import outline
from domain.raw_messages import result_text

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable
    from uuid import UUID

    from app.repl.loop import Repl
    from domain.conversation import Conversation
    from domain.events import Version
    from domain.raw_messages import Json, JsonObject

_WORDS_THAT_LEAVE = ("q", "quit", "exit")
_COMMAND = re.compile(r"/([A-Za-z][\w-]*|\??)(?:\s+(.*))?\s*", re.DOTALL)
_EVENTS_SHOWN = 20
_LEAST_WIDTH_OF_HELP = 50
_SECONDS_BETWEEN_LOOKS = 0.3


class Command(NamedTuple):
    """A command: its name, what it takes, one line of help, and what it does."""

    name: str
    arguments: str
    help: str
    run: Callable[[Repl, str], Awaitable[None]]


def parsed(prompt: str) -> tuple[str, str] | None:
    """Return name and arguments if *prompt* is a command and not for the model.

    ``/usr/bin is full`` is for the model: a command's name has no second slash.
    """
    text = prompt.strip()
    if text.lower() in _WORDS_THAT_LEAVE:
        return "quit", ""
    if text.startswith("!"):
        return "!", text
    match = _COMMAND.fullmatch(text)
    return (match[1].lower(), (match[2] or "").strip()) if match else None


async def run(repl: Repl, name: str, arguments: str) -> None:
    """Run a command; an unknown one gets the nearest name that there is."""
    command = COMMANDS.get(name)
    if command is not None:
        await command.run(repl, arguments)
    elif name == "!":
        from app.repl import shell  # noqa: PLC0415 - only here

        await shell.run(repl, arguments)
    else:
        near = nearest(name, COMMANDS)
        hint = (
            _("Did you mean /{name}?").format(name=near)
            if near is not None
            else _("/help shows all commands.")
        )
        repl.say(_("There is no command /{name}. {hint}").format(name=name, hint=hint), "yellow")


# -- what they do ------------------------------------------------------------------------------


async def _help(repl: Repl, _arguments: str) -> None:
    usages = {f"/{command.name} {command.arguments}".strip(): _(command.help) for command in TABLE}
    usages["q"] = _("Leave, too.")
    usages["!COMMAND"] = _("Run a command; the model sees its output. !!: it does not.")
    width = max(map(len, usages))
    is_narrow = repl.console.width < width + _LEAST_WIDTH_OF_HELP
    for usage, said in usages.items():
        repl.say(f"{usage}\n  {said}" if is_narrow else f"{usage:{width}}  {said}")
    repl.say(
        _(
            "\n@FILE in a prompt attaches a file. Enter sends, Alt+Enter begins a new "
            "line, Esc Esc opens the tree, Ctrl+D leaves. While the agent works: Enter "
            "queues what you type, Alt+Up takes it back, Esc or Ctrl+C stops (Ctrl+C "
            "twice leaves)."
        ),
        "dim",
    )


async def _quit(repl: Repl, _arguments: str) -> None:
    repl.leave()


async def _new(repl: Repl, arguments: str) -> None:
    earlier = repl.recorded()
    if arguments == "compact":
        if earlier is None:
            raise InvalidCommandError(_("There is nothing to begin from yet."))
        repl.switch_to(await repl.context.workshop.rotate(repl.at_hand, repl.context.screen))
    elif arguments:
        raise InvalidCommandError(
            _("/new takes nothing or compact, not {arguments!r}.").format(arguments=arguments)
        )
    else:
        repl.switch_to(repl.context.workshop.begin_new())
    repl.say(
        _("A new conversation.")
        + (_(" The earlier one is {id}.").format(id=earlier.id) if earlier else "")
    )


async def _model(repl: Repl, arguments: str) -> None:
    if arguments:
        change_model = repl.context.workshop.change_model
        repl.at_hand.record(lambda talk: change_model(talk, arguments))
        if warning := await asyncio.to_thread(_warning_of_model, arguments):
            repl.say(warning, "yellow")
    repl.say(_("The model is {model}.").format(model=repl.at_hand.conversation.model))


def _warning_of_model(name: str) -> str:
    """Return what to say of a model whose name nobody here knows; nothing of others."""
    from infrastructure.model import prices  # noqa: PLC0415 - half a second

    if name == OFFLINE_MODEL or prices.is_known(name):
        return ""
    near = nearest(name, prices.names())
    hint = _(" Did you mean {name!r}?").format(name=near) if near else ""
    return _("Nobody here knows a model of this name; it is asked all the same.") + hint


async def _thinking(repl: Repl, arguments: str) -> None:
    if arguments:
        if arguments.lower() not in THINKING_LEVELS:
            raise InvalidCommandError(
                _("{level!r} is not a thinking level: {choices}.").format(
                    level=arguments, choices=", ".join(THINKING_LEVELS)
                )
            )
        repl.at_hand.record(lambda talk: talk.change_thinking_level(arguments.lower()))
    level = repl.at_hand.conversation.thinking_level or "off"
    repl.say(
        _("Thinking is {level} (choices: {thinking_levels}).").format(
            level=level, thinking_levels=", ".join(THINKING_LEVELS)
        )
    )


async def _name(repl: Repl, arguments: str) -> None:
    if arguments:
        repl.at_hand.record(lambda talk: talk.rename(arguments))
    name = repl.at_hand.conversation.name
    repl.say(
        _("The conversation is named {name!r}.").format(name=name)
        if name
        else _("The conversation has no name.")
    )


async def _log(repl: Repl, arguments: str) -> None:
    talk = _recorded(repl)
    if arguments not in ("", "follow"):
        raise InvalidCommandError(
            _("/log takes nothing or follow, not {arguments!r}.").format(arguments=arguments)
        )
    shown = max(talk.version - _EVENTS_SHOWN, 0)
    if arguments and repl.context.prompts.is_interactive:
        how = _("any key") if repl.is_at_terminal else "Ctrl+C"
        repl.say(_("({key} ends this)").format(key=how), "dim")
    while True:
        events = repl.context.workshop.conversations.events_of(repl.at_hand.id, since=shown + 1)
        for event in events:
            repl.say(as_line(event, _width(repl)))
            shown = event.originator_version
        if not arguments or not repl.context.prompts.is_interactive:
            return
        if await repl.meanwhile.pressed(_SECONDS_BETWEEN_LOOKS):
            return


async def _context(repl: Repl, arguments: str) -> None:
    talk = repl.context.workshop.foreseen(repl.at_hand.conversation)
    request = context(talk, talk.leaf)
    if arguments == "json":
        repl.say(json.dumps(request, ensure_ascii=False, indent=2))
    elif arguments:
        raise InvalidCommandError(
            _("/context takes nothing or json, not {arguments!r}.").format(arguments=arguments)
        )
    else:
        window = await asyncio.to_thread(repl.context.workshop.window_of, talk.model or "")
        window = talk.known_limits.within(window)
        for row in _context_rows(talk, request, window):
            repl.say(row)


def _context_rows(talk: Conversation, request: JsonObject, window: int) -> list[str]:
    """Return the parts of a request with about how many tokens they take: they add up."""
    live = live_entries(talk, talk.leaf)
    summaries = [entry for entry in live if isinstance(entry, Compacted)]
    tools = ", ".join(str(tool.get("name")) for tool in request.get("tools", ()))
    on_path = _("{count:,} on the path").format(count=talk.message_count())
    total = context_tokens(talk)
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


async def _show(repl: Repl, arguments: str) -> None:
    """Print all of one entry: what was shortened when it came."""
    talk = _recorded(repl)
    if arguments:
        version = entry_version(talk, arguments)
    else:
        results = [e for e in talk.messages() if e.said.tool_results]
        if not results:
            raise InvalidCommandError(_("No tool has run on this path yet."))
        version = results[-1].originator_version
    match talk.entries[version]:
        case MessageAppended() as entry:
            for raw in entry.said.blocks:
                repl.say(_whole(raw) or json.dumps(raw, ensure_ascii=False, indent=2))
        case Compacted(summary=text) | BranchSummarized(summary=text) | NoteAppended(content=text):
            repl.say(text)


def _whole(raw: Json) -> str:
    """Return the text of a block, if it has one."""
    match raw:
        case {"type": "text", "text": str(text)} | {"type": "thinking", "thinking": str(text)}:
            return text
        case {"type": "tool_result", "tool_use_id": str()}:
            return result_text(raw.get("content"))
        case _:
            return ""


async def _resume(repl: Repl, arguments: str) -> None:
    workshop = repl.context.workshop
    conversations = workshop.conversations
    if arguments:
        chosen: UUID | None = conversation_id(conversations, arguments)
    elif not repl.is_at_terminal:
        raise InvalidCommandError(_("/resume needs an ID here: `leftfold list` shows them."))
    else:
        from app.repl.picker import Picker  # noqa: PLC0415 - only at a terminal

        with repl.meanwhile.paused():
            picker = Picker(conversations, workshop.settings.cwd, current=repl.at_hand.id)
            chosen = await picker.pick()
    if chosen is None or chosen == repl.at_hand.id:
        repl.say(_("Still in the same conversation."), "dim")
        return
    settings = workshop.settings
    gone = relocation.lost_directory(conversations, chosen, settings, is_asked=repl.is_at_terminal)
    match await relocation.ask_in_repl(repl, gone, settings.cwd) if gone else "here":
        case "fork":
            chosen = conversations.fork(chosen)
        case "cancel":
            repl.say(_("Still in the same conversation."), "dim")
            return
    repl.switch_to(workshop.resume(chosen))
    repl.show_past()
    for line in about(workshop, repl.at_hand.conversation):
        repl.say(line)


async def _fork(repl: Repl, arguments: str) -> None:
    talk = _recorded(repl)
    entry = entry_version(talk, arguments) if arguments else None
    conversations = repl.context.workshop.conversations
    child = conversations.fork(talk.id, entry)
    repl.switch_to(repl.context.workshop.resume(child))
    repl.show_place()
    repl.say(
        _("Going on in a copy, {child}. The original is {id}.").format(child=child, id=talk.id)
    )


async def _tree(repl: Repl, arguments: str) -> None:
    talk = _recorded(repl)
    if arguments:
        wanted, how = arguments.partition(" ")[::2]
        await _go_to(repl, entry_version(talk, wanted), how)
    elif repl.is_at_terminal:
        from app.repl.navigator import navigate  # noqa: PLC0415 - only at a terminal

        match await navigate(repl, talk):
            case ("fork", version):
                await _fork(repl, str(version))
            case (action, version):
                await _go_to(repl, version, "summary" if action == "summary" else "")
    else:
        for row in outline(talk):
            repl.say(
                tree_line(row, width=_width(repl)),
                "" if row.is_on_path and not row.is_compacted else "dim",
            )
        repl.say(_("/tree ENTRY goes there; /tree ENTRY summary [FOCUS] tells what is left"), "dim")


async def _go_to(repl: Repl, version: Version, how: str) -> None:
    """Move the leaf to an entry; *how* may be ``summary`` and a focus."""
    talk = _recorded(repl)
    target: Version | None = version
    entry = talk.entries[version]
    if isinstance(entry, MessageAppended) and entry.said.role == "user" and entry.said.text:
        # An earlier prompt is edited: its sibling will hang from the same parent.
        target = talk.parents[version]
        repl.offer(entry.prompt)
    word, focus = how.partition(" ")[::2]
    if word == "summary":
        await _leave_branch(repl, talk, target, focus)
    elif word:
        raise InvalidCommandError(
            _("/tree ENTRY takes nothing or summary, not {word!r}.").format(word=word)
        )
    else:
        repl.at_hand.record(lambda talk: talk.move_leaf(target))
    repl.show_place()


async def _leave_branch(repl: Repl, talk: Conversation, target: int | None, focus: str) -> None:
    """Move the leaf, and leave a summary of the branch; nothing changes if there is none."""
    ancestor = tree.common_ancestor(talk.parents, talk.leaf, target)
    left = [e for e in talk.path(talk.leaf) if e.originator_version > (ancestor or 0)]
    if not left:
        raise InvalidCommandError(_("There is no branch to leave."))
    repl.say(_("Summarising the branch …"), "dim")
    await repl.compactor.leave_branch(target, left, focus=focus)


async def _label(repl: Repl, arguments: str) -> None:
    talk = _recorded(repl)
    at, rest = arguments.partition(" ")[::2]
    target = talk.leaf
    if at.startswith("@"):
        target, arguments = entry_version(talk, at[1:]), rest
    if target is None:
        raise InvalidCommandError(_("There is no entry to label yet."))
    repl.at_hand.record(lambda talk: talk.label(target, arguments))
    label = repl.at_hand.conversation.labels.get(target)
    repl.say(
        _("Entry {target} is labelled {label!r}.").format(target=target, label=label)
        if label
        else _("Entry {target} has no label.").format(target=target)
    )


async def _compact(repl: Repl, arguments: str) -> None:
    _recorded(repl)
    if not await repl.compactor.compact(reason="manual", focus=arguments):
        said = _(
            "There is nothing to compact yet: the last {keep:,} tokens or so are kept as they "
            "are, and the conversation has about {tokens:,}."
        )
        tokens = context_tokens(repl.at_hand.conversation)
        repl.say(said.format(keep=repl.compactor.keep, tokens=tokens))


async def _copy(repl: Repl, arguments: str) -> None:
    from app.repl import clipboard  # noqa: PLC0415 - only here

    await clipboard.run(repl, arguments)


async def _stats(repl: Repl, _arguments: str) -> None:
    repl.say(text_of(statistics(_recorded(repl)), _width(repl)))


def _width(repl: Repl) -> int | None:
    """Return how many cells a line has; None where nobody looks at a screen."""
    return repl.console.width if repl.console.is_terminal else None


def _recorded(repl: Repl) -> Conversation:
    talk = repl.recorded()
    if talk is None:
        raise InvalidCommandError(_("Nothing is recorded yet."))
    return talk


TABLE = (
    Command("help", "", "Show this.", _help),
    Command("new", "[compact]", "Start a new conversation; compact: from a summary.", _new),
    Command("fork", "[ENTRY]", "Go on in a copy of this one, up to an entry.", _fork),
    Command("tree", "[ENTRY [summary]]", "Show all branches, or go to an entry.", _tree),
    Command("label", "[@ENTRY] TEXT", "Label an entry, the last one for none.", _label),
    Command("compact", "[FOCUS]", "Summarise the past to make room; deletes nothing.", _compact),
    Command("stats", "", "Show tokens and cost.", _stats),
    Command("name", "[TEXT]", "Name the conversation, or show its name.", _name),
    Command("model", "[NAME]", "Ask another model, or show which one is asked.", _model),
    Command("thinking", "[LEVEL]", "Change or show how hard the model thinks.", _thinking),
    Command("resume", "[ID]", "Go on in another conversation.", _resume),
    Command("show", "[ENTRY]", "Show all of an entry; the last tool output for none.", _show),
    Command("copy", "[N]", "Copy the last answer, or its code block N.", _copy),
    Command("context", "[json]", "Show what the model gets: counts, or the request.", _context),
    Command("log", "[follow]", "Show the last events of the log, and new ones.", _log),
    Command("quit", "", "Leave.", _quit),
)
COMMANDS = {
    **{command.name: command for command in TABLE},
    **{alias: command for command in TABLE if command.name == "help" for alias in ("?", "")},
    **{alias: command for command in TABLE if command.name == "quit" for alias in ("q", "exit")},
    **{alias: command for command in TABLE if command.name == "new" for alias in ("clear",)},
}
