"""What Tab offers: commands and what they take, and files after ``@``."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from app.bootstrap import working_directory
from app.i18n import _
from app.repl.command import MENTION
from app.view.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from app.bootstrap import AgentFactory
    from app.open_conversation import OpenConversation
    from app.repl.command import Command
    from domain.conversation import Conversation

_MOST = 200


class PromptCompleter(Completer):
    """Completes for the conversation that it was last told to look at."""

    def __init__(self, factory: AgentFactory, commands: Sequence[Command]) -> None:
        self._factory, self._commands = factory, commands
        self._open_conversation: OpenConversation | None = None

    def look_at(self, open_conversation: OpenConversation) -> None:
        """Complete for *open_conversation* from here on."""
        self._open_conversation = open_conversation

    def get_completions(
        self,
        document: Document,
        complete_event: CompleteEvent,  # noqa: ARG002
    ) -> Iterable[Completion]:
        """Yield what may stand at the cursor."""
        text = document.text_before_cursor
        if text.startswith("/") and "\n" not in text:
            name, blank, rest = text[1:].partition(" ")
            name = name.lower()
            yield from self._arguments(name, rest) if blank else self._names(name)
        elif mention := MENTION.search(text):
            yield from self._files(mention[2], is_quoted=bool(mention[1]))

    def _names(self, name: str) -> Iterator[Completion]:
        for command in self._commands:
            if command.name.startswith(name):
                usage = f"/{command.name} {command.arguments}".strip()
                text = f"{command.name} " if command.arguments else command.name
                yield Completion(text, -len(name), display=usage, display_meta=_(command.help))

    def _arguments(self, name: str, typed: str) -> Iterator[Completion]:
        command = next((row for row in self._commands if row.name == name), None)
        mark = "@" if command and command.arguments.startswith("[@") else ""
        if command is None or " " in typed or not typed.startswith(mark):
            return
        wanted = typed.removeprefix(mark)
        for value, meta in command.choices(self._conversation()):
            if value.lower().startswith(wanted.lower()):
                yield Completion(value, -len(wanted), display=plain(value), display_meta=meta)

    def _conversation(self) -> Conversation | None:
        conversation = self._open_conversation.conversation if self._open_conversation else None
        return None if conversation is None or conversation.pending_events else conversation

    def _files(self, typed: str, *, is_quoted: bool) -> Iterator[Completion]:
        cwd = self._factory.settings.cwd
        if self._open_conversation is not None:
            cwd = working_directory(self._open_conversation.conversation, cwd)
        folder, slashed, name = typed.rpartition("/")
        where = Path(cwd, Path(folder + slashed).expanduser()) if slashed else Path(cwd)
        for entry in islice(_listed(where, name), _MOST):
            path = f"{folder}{slashed}{entry}"
            text = path
            if " " in path or is_quoted:
                text = path if is_quoted else f'"{path}'
                text += "" if path.endswith("/") else '"'
            yield Completion(text, -len(typed), display=plain(entry))


def _listed(folder: Path, name: str) -> Iterator[str]:
    """Yield the names in *folder* that begin with *name*; hidden ones if that begins with a dot."""
    try:
        with os.scandir(folder) as entries:
            found = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in islice(entries, 10_000)
                if entry.name.casefold().startswith(name.casefold())
                and (name.startswith(".") or not entry.name.startswith("."))
            ]
    except OSError:
        return
    yield from sorted(found)
