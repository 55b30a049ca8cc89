"""What a slash command is, and which prompts are one."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Awaitable, Callable, Iterable

    from app.repl.desk import Desk

    Choices = Callable[[Desk], Iterable[tuple[str, str]]]

_WORDS_THAT_LEAVE = ("q", "quit", "exit")
MENTION = re.compile(r'(?:^|(?<=\s))@("?)([^\s"]*)$')
"""The beginning of a path that is mentioned at the end of what was typed, quoted or not."""
_COMMAND = re.compile(r"/([A-Za-z][\w-]*|\??)(?:\s+(.*))?\s*", re.DOTALL)


class Command(NamedTuple):
    """A command: its name, what it takes, one line of help, and what it does.

    *choices* returns what Tab offers as its argument, each with a word about it.
    """

    name: str
    arguments: str
    help: str
    run: Callable[[Desk, str], Awaitable[None]]
    choices: Choices = lambda _desk: ()


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


def is_completable(text: str) -> bool:
    """Whether *text*, before the cursor, asks for a menu while it is typed."""
    is_command = text.startswith("/") and "\n" not in text and "/" not in text[1:]
    return is_command or MENTION.search(text) is not None
