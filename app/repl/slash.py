"""The commands of the REPL: one table, one small function each."""

from __future__ import annotations

import difflib
import json
import re
from typing import TYPE_CHECKING, NamedTuple

from app.commands.log import as_line
from domain.conversation import THINKING_LEVELS
from domain.errors import InvalidCommandError
from domain.projections.context import context

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.repl.loop import Repl

_WORDS_THAT_LEAVE = ("q", "quit", "exit")
_COMMAND = re.compile(r"/([A-Za-z][\w-]*|\??)(?:\s+(.*))?\s*", re.DOTALL)
_EVENTS_SHOWN = 20
_DEFAULT_MAX_TOKENS = 8192


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


async def _new(repl: Repl, _arguments: str) -> None:
    earlier = repl.recorded()
    repl.switch_to(repl.context.begin_new())
    repl.say("A new conversation." + (f" The earlier one is {earlier.id}." if earlier else ""))


async def _model(repl: Repl, arguments: str) -> None:
    if arguments:
        limit = repl.at_hand.conversation.max_tokens or _DEFAULT_MAX_TOKENS
        repl.at_hand.record(lambda talk: talk.change_model(arguments, max_tokens=limit))
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
    talk = repl.recorded()
    if talk is None:
        repl.say("Nothing is recorded yet.")
        return
    since = max(talk.version - _EVENTS_SHOWN + 1, 1)
    for event in repl.context.conversations.events_of(repl.at_hand.id, since=since):
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
    talk = repl.recorded()
    if talk is None:
        repl.say("There is nothing to fork yet.")
        return
    if arguments and not arguments.isdecimal():
        raise InvalidCommandError(f"/fork takes the version of an entry, not {arguments!r}.")
    conversations = repl.context.conversations
    child = conversations.fork(repl.at_hand.id, int(arguments) if arguments else None)
    repl.switch_to(conversations.open(child))
    repl.say(f"Going on in a copy, {child}. The original is {talk.id}.")


TABLE = (
    Command("help", "", "Show this.", _help),
    Command("new", "", "Start a new conversation.", _new),
    Command("fork", "[ENTRY]", "Go on in a copy of this one, up to an entry.", _fork),
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
