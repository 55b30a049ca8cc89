"""What Tab offers: commands and what they take, and files after ``@``."""

from __future__ import annotations

import os
import re
import sys
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import Completer, Completion

from app import bootstrap
from app.i18n import _
from app.repl import slash
from app.view.plain import one_line, plain
from domain.conversation import THINKING_LEVELS
from domain.projections.outline import outline

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from prompt_toolkit.completion import CompleteEvent
    from prompt_toolkit.document import Document

    from app.application import OpenConversation
    from app.bootstrap import AgentFactory
    from domain.conversation import Conversation

_MENTION = re.compile(r'(?:^|(?<=\s))@("?)([^\s"]*)$')
_MOST = 200
_MOST_ENTRIES = 40


def is_completable(text: str) -> bool:
    """Whether *text*, before the cursor, asks for a menu while it is typed."""
    is_command = text.startswith("/") and "\n" not in text and "/" not in text[1:]
    return is_command or _MENTION.search(text) is not None


class PromptCompleter(Completer):
    """Completes for the conversation that it was last told to look at."""

    def __init__(self, factory: AgentFactory) -> None:
        self._factory = factory
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
            yield from self._arguments(name.lower(), rest) if blank else _commands(name.lower())
        elif mention := _MENTION.search(text):
            yield from self._files(mention[2], is_quoted=bool(mention[1]))

    def _arguments(self, name: str, rest: str) -> Iterator[Completion]:
        at, wanted = ("@", rest[1:]) if name == "label" and rest.startswith("@") else ("", rest)
        if (name == "label" and not at) or " " in wanted:
            return
        for value, meta in self._choices(name):
            if value.lower().startswith(wanted.lower()):
                yield Completion(value, -len(wanted), display=plain(value), display_meta=meta)

    def _choices(self, name: str) -> Iterator[tuple[str, str]]:
        """Yield what a command takes, each with a word about it."""
        match name:
            case "thinking":
                yield from ((level, "") for level in THINKING_LEVELS)
            case "model":
                yield from ((model, "") for model in known_models())
            case "tree" | "fork" | "label" | "show":
                conversation = self._conversation()
                yield from [] if conversation is None else _entries(conversation)
            case "new":
                yield "compact", _("begin from a summary of this one")
            case "context":
                yield "json", _("the request itself")
            case "log":
                yield "follow", _("new events as they come, until a key")

    def _conversation(self) -> Conversation | None:
        conversation = self._open_conversation.conversation if self._open_conversation else None
        return None if conversation is None or conversation.pending_events else conversation

    def _files(self, typed: str, *, is_quoted: bool) -> Iterator[Completion]:
        cwd = self._factory.settings.cwd
        if (
            conversation := self._open_conversation.conversation
            if self._open_conversation
            else None
        ) is not None:
            cwd = bootstrap.working_directory(conversation, cwd)
        folder, slashed, name = typed.rpartition("/")
        where = Path(cwd, Path(folder + slashed).expanduser()) if slashed else Path(cwd)
        for entry in islice(_listed(where, name), _MOST):
            path = f"{folder}{slashed}{entry}"
            text = path
            if " " in path or is_quoted:
                text = path if is_quoted else f'"{path}'
                text += "" if path.endswith("/") else '"'
            yield Completion(text, -len(typed), display=plain(entry))


def _commands(name: str) -> Iterator[Completion]:
    for command in slash.TABLE:
        if command.name.startswith(name):
            usage = f"/{command.name} {command.arguments}".strip()
            text = f"{command.name} " if command.arguments else command.name
            yield Completion(text, -len(name), display=usage, display_meta=_(command.help))


def _entries(conversation: Conversation) -> Iterator[tuple[str, str]]:
    """Yield labels, then the newest prompts on the path by their versions."""
    for version, label in conversation.labels.items():
        if " " not in label:
            yield label, _("entry {version}").format(version=version)
    prompts = [row for row in outline(conversation) if row.kind == "user"]
    for row in reversed(prompts[-_MOST_ENTRIES:]):
        yield str(row.version), one_line(row.text, 60)


def known_models() -> list[str]:
    """Return the models of the price list, if it is loaded: nobody waits for it at a key."""
    if getattr(sys.modules.get("genai_prices.data_snapshot"), "get_snapshot", None) is None:
        return []
    from infrastructure.model.prices import models  # noqa: PLC0415

    return models()


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
