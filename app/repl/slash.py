"""The slash commands: the table of them, what Tab offers, and those that set something.

Those that show are in `show_commands`, those that go somewhere else in `place_commands`.
To add one, write its function and its row; the help, Tab and the docs' test follow the table.
"""

from __future__ import annotations

import asyncio
import sys
from os.path import realpath
from typing import TYPE_CHECKING

from app.i18n import _
from app.repl.clipboard import copy
from app.repl.command import Command
from app.repl.place_commands import fork, label, new, resume, tree
from app.repl.show_commands import log, show, show_context, stats
from app.settings import OFFLINE_MODEL
from app.suggestions import nearest
from app.view.plain import one_line
from domain.errors import InvalidCommandError
from domain.projections.compaction import context_tokens
from domain.projections.outline import outline
from domain.thinking import THINKING_LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.repl.command import Choices
    from app.repl.desk import Desk

_LEAST_WIDTH_OF_HELP = 50
_MOST_ENTRIES = 40
_MOST_CONVERSATIONS = 50


async def run(desk: Desk, name: str, arguments: str) -> None:
    """Run a command; an unknown one gets the nearest name that there is."""
    command = COMMANDS.get(name)
    if command is not None:
        await command.run(desk, arguments)
    elif name == "!":
        from app.repl import shell  # noqa: PLC0415 - only here

        await shell.run(desk, arguments)
    else:
        hint = _("/help shows all commands.")
        if (near := nearest(name, COMMANDS)) is not None:
            hint = _("Did you mean /{name}?").format(name=near)
        desk.say(_("There is no command /{name}. {hint}").format(name=name, hint=hint), "yellow")


# -- those that set something ---------------------------------------------------------------------


async def _help(desk: Desk, _arguments: str) -> None:
    usages = {f"/{command.name} {command.arguments}".strip(): _(command.help) for command in TABLE}
    usages["q"] = _("Leave, too.")
    usages["!COMMAND"] = _("Run a command; the model sees its output. !!: it does not.")
    width = max(map(len, usages))
    is_narrow = desk.console.width < width + _LEAST_WIDTH_OF_HELP
    for usage, meaning in usages.items():
        desk.say(f"{usage}\n  {meaning}" if is_narrow else f"{usage:{width}}  {meaning}")
    desk.say(
        _(
            "\n@FILE in a prompt attaches a file. Enter sends, Alt+Enter begins a new "
            "line, Esc Esc opens the tree, Ctrl+D leaves. While the agent works: Enter "
            "queues what you type, Alt+Up takes it back, Esc or Ctrl+C stops (Ctrl+C "
            "twice leaves)."
        ),
        "dim",
    )


async def _quit(desk: Desk, _arguments: str) -> None:
    desk.work.leave()


async def _model(desk: Desk, arguments: str) -> None:
    if arguments:
        change_model = desk.factory.change_model
        desk.open_conversation.record(lambda conversation: change_model(conversation, arguments))
        if warning := await asyncio.to_thread(_warning_of_model, arguments):
            desk.say(warning, "yellow")
    desk.say(_("The model is {model}.").format(model=desk.conversation.model))


def _warning_of_model(name: str) -> str:
    """Return what to say of a model whose name nobody here knows; nothing of others."""
    from infrastructure.model import prices  # noqa: PLC0415 - half a second

    if name == OFFLINE_MODEL or prices.is_known(name):
        return ""
    near = nearest(name, prices.names())
    hint = _(" Did you mean {name!r}?").format(name=near) if near else ""
    return _("Nobody here knows a model of this name; it is asked all the same.") + hint


async def _thinking(desk: Desk, arguments: str) -> None:
    if arguments:
        if arguments.lower() not in THINKING_LEVELS:
            raise InvalidCommandError(
                _("{level!r} is not a thinking level: {choices}.").format(
                    level=arguments, choices=", ".join(THINKING_LEVELS)
                )
            )
        desk.open_conversation.record(
            lambda conversation: conversation.change_thinking_level(arguments.lower())
        )
    level = desk.conversation.thinking_level or "off"
    desk.say(
        _("Thinking is {level} (choices: {thinking_levels}).").format(
            level=level, thinking_levels=", ".join(THINKING_LEVELS)
        )
    )


async def _name(desk: Desk, arguments: str) -> None:
    if arguments:
        desk.open_conversation.record(lambda conversation: conversation.rename(arguments))
    name = desk.conversation.name
    desk.say(
        _("The conversation is named {name!r}.").format(name=name)
        if name
        else _("The conversation has no name.")
    )


async def _compact(desk: Desk, arguments: str) -> None:
    desk.require_recorded()
    if not await desk.agent().compactor.compact(reason="manual", focus=arguments):
        message = _(
            "There is nothing to compact yet: the last {keep:,} tokens or so are kept as they "
            "are, and the conversation has about {tokens:,}."
        )
        tokens = context_tokens(desk.conversation)
        desk.say(message.format(keep=desk.agent().compactor.room.keep, tokens=tokens))


# -- what Tab offers as an argument, each with a word about it ------------------------------------


def _words(**meanings: str) -> Choices:
    """Return what offers these words, each with what it means."""
    return lambda _desk: ((word, meaning and _(meaning)) for word, meaning in meanings.items())


_levels = _words(**dict.fromkeys(THINKING_LEVELS, ""))


def _conversations(desk: Desk) -> Iterator[tuple[str, str]]:
    """Yield the conversations of this directory, those last used first, by the catalogue."""
    from app.catalogue import Listing  # noqa: PLC0415 - only here

    cwd = realpath(desk.factory.settings.cwd)
    for row in Listing(desk.factory.conversations, cwd).rows[:_MOST_CONVERSATIONS]:
        if not row.archived:
            yield str(row.id), one_line(row.title, 60)


def _entries(desk: Desk) -> Iterator[tuple[str, str]]:
    """Yield labels, then the newest prompts on the path by their versions."""
    conversation = desk.recorded()
    if conversation is None:
        return
    for version, name in conversation.labels.items():
        if " " not in name:
            yield name, _("entry {version}").format(version=version)
    prompts = [row for row in outline(conversation) if row.kind == "user"]
    for row in reversed(prompts[-_MOST_ENTRIES:]):
        yield str(row.version), one_line(row.text, 60)


def _models(_desk: Desk) -> Iterator[tuple[str, str]]:
    """Yield the models of the price list, if it is loaded: nobody waits for it at a key."""
    if getattr(sys.modules.get("genai_prices.data_snapshot"), "get_snapshot", None) is not None:
        from infrastructure.model import prices  # noqa: PLC0415

        yield from ((model, "") for model in prices.models())


TABLE = (
    Command("help", "", "Show this.", _help),
    Command(
        "new",
        "[compact]",
        "Start a new conversation; compact: from a summary.",
        new,
        _words(compact="begin from a summary of this one"),
    ),
    Command("fork", "[ENTRY]", "Go on in a copy of this one, up to an entry.", fork, _entries),
    Command("tree", "[ENTRY [summary]]", "Show all branches, or go to an entry.", tree, _entries),
    Command("label", "[@ENTRY] TEXT", "Label an entry, the last one for none.", label, _entries),
    Command("compact", "[FOCUS]", "Summarise the past to make room; deletes nothing.", _compact),
    Command("stats", "", "Show tokens and cost.", stats),
    Command("name", "[TEXT]", "Name the conversation, or show its name.", _name),
    Command("model", "[NAME]", "Ask another model, or show which one is asked.", _model, _models),
    Command("thinking", "[LEVEL]", "Change or show how hard the model thinks.", _thinking, _levels),
    Command("resume", "[ID[@ENTRY]]", "Go on in another conversation.", resume, _conversations),
    Command(
        "show", "[ENTRY]", "Show all of an entry; the last tool output for none.", show, _entries
    ),
    Command("copy", "[N]", "Copy the last answer, or its code block N.", copy),
    Command(
        "context",
        "[json]",
        "Show what the model gets: counts, or the request.",
        show_context,
        _words(json="the request itself"),
    ),
    Command(
        "log",
        "[follow]",
        "Show the last events of the log, and new ones.",
        log,
        _words(follow="new events as they come, until a key"),
    ),
    Command("quit", "", "Leave.", _quit),
)
_ALIASES = {"?": "help", "": "help", "q": "quit", "exit": "quit", "clear": "new"}
_BY_NAME = {command.name: command for command in TABLE}
COMMANDS = _BY_NAME | {alias: _BY_NAME[name] for alias, name in _ALIASES.items()}
