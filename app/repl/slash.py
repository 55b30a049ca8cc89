"""The commands of the REPL: one table, one small function each."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from app.commands.log import as_line
from app.commands.stats import statistics, text_of
from app.commands.tree import line as tree_line
from app.references import entry_version
from domain import tree
from domain.conversation import THINKING_LEVELS
from domain.errors import InvalidCommandError
from domain.events import MessageAppended
from domain.projections.context import context
from domain.projections.outline import outline

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.repl.loop import Repl
    from domain.conversation import Conversation

_WORDS_THAT_LEAVE = ("q", "quit", "exit")
_COMMAND = re.compile(r"/([A-Za-z][\w-]*|\??)(?:\s+(.*))?\s*", re.DOTALL)
_EVENTS_SHOWN = 20


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
        repl.say("`!` is no command here: ask for it in words (“run: ls”).", "yellow")
    else:
        near = difflib.get_close_matches(name, COMMANDS, n=1, cutoff=0.5)
        hint = f"Did you mean /{near[0]}?" if near else "/help shows all commands."
        repl.say(f"There is no command /{name}. {hint}", "yellow")


# -- what they do ------------------------------------------------------------------------------


async def _help(repl: Repl, _arguments: str) -> None:
    usages = {f"/{command.name} {command.arguments}".strip(): command for command in TABLE}
    width = max(map(len, usages))
    for usage, command in usages.items():
        repl.say(f"{usage:{width}}  {command.help}")
    repl.say(f"{'q':{width}}  Leave, too.")
    repl.say(
        "\nEnter sends, Alt+Enter begins a new line, Ctrl+C stops a turn (twice leaves), "
        "Ctrl+D leaves.",
        "dim",
    )


async def _quit(repl: Repl, _arguments: str) -> None:
    repl.leave()


async def _new(repl: Repl, arguments: str) -> None:
    earlier = repl.recorded()
    if arguments == "compact":
        if earlier is None:
            raise InvalidCommandError("There is nothing to begin from yet.")
        repl.switch_to(await repl.context.workshop.rotate(repl.at_hand, repl.context.screen))
    elif arguments:
        raise InvalidCommandError(f"/new takes nothing or compact, not {arguments!r}.")
    else:
        repl.switch_to(repl.context.workshop.begin_new())
    repl.say("A new conversation." + (f" The earlier one is {earlier.id}." if earlier else ""))


async def _model(repl: Repl, arguments: str) -> None:
    if arguments:
        change_model = repl.context.workshop.change_model
        repl.at_hand.record(lambda talk: change_model(talk, arguments))
    repl.say(f"The model is {repl.at_hand.conversation.model}.")


async def _thinking(repl: Repl, arguments: str) -> None:
    if arguments:
        repl.at_hand.record(lambda talk: talk.change_thinking_level(arguments.lower()))
    level = repl.at_hand.conversation.thinking_level or "off"
    repl.say(f"Thinking is {level} (choices: {', '.join(THINKING_LEVELS)}).")


async def _name(repl: Repl, arguments: str) -> None:
    if arguments:
        repl.at_hand.record(lambda talk: talk.rename(arguments))
    name = repl.at_hand.conversation.name
    repl.say(f"The conversation is named {name!r}." if name else "The conversation has no name.")


async def _log(repl: Repl, _arguments: str) -> None:
    talk = _recorded(repl)
    since = max(talk.version - _EVENTS_SHOWN + 1, 1)
    for event in repl.context.workshop.conversations.events_of(repl.at_hand.id, since=since):
        repl.say(as_line(event))


async def _context(repl: Repl, arguments: str) -> None:
    talk = repl.at_hand.conversation
    request = context(talk, talk.leaf)
    if arguments == "json":
        repl.say(json.dumps(request, ensure_ascii=False, indent=2))
    elif arguments:
        raise InvalidCommandError(f"/context takes nothing or json, not {arguments!r}.")
    else:
        tools = ", ".join(str(tool.get("name")) for tool in request.get("tools", ())) or "none"
        repl.say(f"model     {request['model']}")
        repl.say(f"messages  {len(talk.messages()):,}")
        repl.say(f"tools     {tools}")


async def _fork(repl: Repl, arguments: str) -> None:
    talk = _recorded(repl)
    entry = entry_version(talk, arguments) if arguments else None
    conversations = repl.context.workshop.conversations
    child = conversations.fork(talk.id, entry)
    repl.switch_to(repl.context.workshop.resume(child))
    repl.say(f"Going on in a copy, {child}. The original is {talk.id}.")


async def _tree(repl: Repl, arguments: str) -> None:
    talk = _recorded(repl)
    if not arguments:
        for row in outline(talk):
            repl.say(tree_line(row), "" if row.is_on_path and not row.is_compacted else "dim")
        repl.say("/tree ENTRY goes there; /tree ENTRY summary [FOCUS] tells what is left", "dim")
        return
    wanted, _, rest = arguments.partition(" ")
    target: int | None = entry_version(talk, wanted)
    entry = talk.entries[target or 0]
    if isinstance(entry, MessageAppended) and entry.view.role == "user" and entry.view.text:
        # An earlier prompt is edited: its sibling will hang from the same parent.
        target = talk.parents[entry.originator_version]
        repl.offer(entry.view.text)
    how, _, focus = rest.partition(" ")
    if how == "summary":
        await _leave_branch(repl, talk, target, focus)
    elif how:
        raise InvalidCommandError(f"/tree ENTRY takes nothing or summary, not {how!r}.")
    else:
        repl.at_hand.record(lambda talk: talk.move_leaf(target))
    repl.say(f"The next entry hangs from {repl.at_hand.conversation.leaf or 'the root'}.")


async def _leave_branch(repl: Repl, talk: Conversation, target: int | None, focus: str) -> None:
    """Move the leaf, and leave a summary of the branch; nothing changes if there is none."""
    ancestor = tree.common_ancestor(talk.parents, talk.leaf, target)
    left = [e for e in talk.path(talk.leaf) if e.originator_version > (ancestor or 0)]
    if not left:
        raise InvalidCommandError("There is no branch to leave.")
    context = repl.context
    compactor = context.workshop.compactor(repl.at_hand, context.screen)
    repl.say("Summarising the branch …", "dim")
    summary = await compactor.summary_of(left, focus=focus)
    repl.at_hand.record(
        lambda latest: latest.leave_branch(target, summary, model=talk.model, usage=compactor.spent)
    )


async def _label(repl: Repl, arguments: str) -> None:
    talk = _recorded(repl)
    at, _, rest = arguments.partition(" ")
    target = talk.leaf
    if at.startswith("@"):
        target, arguments = entry_version(talk, at[1:]), rest
    if target is None:
        raise InvalidCommandError("There is no entry to label yet.")
    repl.at_hand.record(lambda talk: talk.label(target, arguments))
    label = repl.at_hand.conversation.labels.get(target)
    repl.say(f"Entry {target} is labelled {label!r}." if label else f"Entry {target} has no label.")


async def _compact(repl: Repl, arguments: str) -> None:
    _recorded(repl)
    context = repl.context
    compactor = context.workshop.compactor(repl.at_hand, context.screen)
    if not await compactor.compact(reason="manual", focus=arguments):
        repl.say("There is nothing to compact yet.")


async def _stats(repl: Repl, _arguments: str) -> None:
    repl.say(text_of(statistics(_recorded(repl))))


def _recorded(repl: Repl) -> Conversation:
    talk = repl.recorded()
    if talk is None:
        raise InvalidCommandError("Nothing is recorded yet.")
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
    Command("context", "[json]", "Show what the model gets: counts, or the request.", _context),
    Command("log", "", "Show the last events of the log.", _log),
    Command("quit", "", "Leave.", _quit),
)
COMMANDS = {
    **{command.name: command for command in TABLE},
    **{alias: command for command in TABLE if command.name == "help" for alias in ("?", "")},
    **{alias: command for command in TABLE if command.name == "quit" for alias in ("q", "exit")},
}
