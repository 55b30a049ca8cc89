"""The commands of the REPL: what one is, the table of them, and those that set something.

Those that show are in `show_commands`, those that go somewhere else in `place_commands`.
"""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, NamedTuple

from app.bootstrap import OFFLINE_MODEL
from app.i18n import _
from app.repl import place_commands, show_commands
from app.repl.show_commands import recorded
from app.suggestions import nearest
from domain.compaction import context_tokens
from domain.conversation import THINKING_LEVELS
from domain.errors import InvalidCommandError

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable

    from app.repl.loop import Repl

_WORDS_THAT_LEAVE = ("q", "quit", "exit")
_COMMAND = re.compile(r"/([A-Za-z][\w-]*|\??)(?:\s+(.*))?\s*", re.DOTALL)
_LEAST_WIDTH_OF_HELP = 50


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


# -- those that set something ---------------------------------------------------------------------


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


async def _model(repl: Repl, arguments: str) -> None:
    if arguments:
        change_model = repl.context.factory.change_model
        repl.open_conversation.record(lambda conversation: change_model(conversation, arguments))
        if warning := await asyncio.to_thread(_warning_of_model, arguments):
            repl.say(warning, "yellow")
    repl.say(_("The model is {model}.").format(model=repl.open_conversation.conversation.model))


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
        repl.open_conversation.record(
            lambda conversation: conversation.change_thinking_level(arguments.lower())
        )
    level = repl.open_conversation.conversation.thinking_level or "off"
    repl.say(
        _("Thinking is {level} (choices: {thinking_levels}).").format(
            level=level, thinking_levels=", ".join(THINKING_LEVELS)
        )
    )


async def _name(repl: Repl, arguments: str) -> None:
    if arguments:
        repl.open_conversation.record(lambda conversation: conversation.rename(arguments))
    name = repl.open_conversation.conversation.name
    repl.say(
        _("The conversation is named {name!r}.").format(name=name)
        if name
        else _("The conversation has no name.")
    )


async def _compact(repl: Repl, arguments: str) -> None:
    recorded(repl)
    if not await repl.compactor.compact(reason="manual", focus=arguments):
        said = _(
            "There is nothing to compact yet: the last {keep:,} tokens or so are kept as they "
            "are, and the conversation has about {tokens:,}."
        )
        tokens = context_tokens(repl.open_conversation.conversation)
        repl.say(said.format(keep=repl.compactor.keep, tokens=tokens))


TABLE = (
    Command("help", "", "Show this.", _help),
    Command(
        "new", "[compact]", "Start a new conversation; compact: from a summary.", place_commands.new
    ),
    Command("fork", "[ENTRY]", "Go on in a copy of this one, up to an entry.", place_commands.fork),
    Command(
        "tree", "[ENTRY [summary]]", "Show all branches, or go to an entry.", place_commands.tree
    ),
    Command(
        "label", "[@ENTRY] TEXT", "Label an entry, the last one for none.", place_commands.label
    ),
    Command("compact", "[FOCUS]", "Summarise the past to make room; deletes nothing.", _compact),
    Command("stats", "", "Show tokens and cost.", show_commands.stats),
    Command("name", "[TEXT]", "Name the conversation, or show its name.", _name),
    Command("model", "[NAME]", "Ask another model, or show which one is asked.", _model),
    Command("thinking", "[LEVEL]", "Change or show how hard the model thinks.", _thinking),
    Command("resume", "[ID]", "Go on in another conversation.", place_commands.resume),
    Command(
        "show",
        "[ENTRY]",
        "Show all of an entry; the last tool output for none.",
        show_commands.show,
    ),
    Command("copy", "[N]", "Copy the last answer, or its code block N.", show_commands.copy),
    Command(
        "context",
        "[json]",
        "Show what the model gets: counts, or the request.",
        show_commands.show_context,
    ),
    Command("log", "[follow]", "Show the last events of the log, and new ones.", show_commands.log),
    Command("quit", "", "Leave.", _quit),
)
COMMANDS = {
    **{command.name: command for command in TABLE},
    **{alias: command for command in TABLE if command.name == "help" for alias in ("?", "")},
    **{alias: command for command in TABLE if command.name == "quit" for alias in ("q", "exit")},
    **{alias: command for command in TABLE if command.name == "new" for alias in ("clear",)},
}
