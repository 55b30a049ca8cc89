"""What Tab offers: commands and what they take, and files after ``@``."""

from __future__ import annotations

import os
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING

from prompt_toolkit.completion import CompleteEvent, Completer, Completion

from app.i18n import _
from app.repl.command import MENTION, Command
from app.view.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

    from prompt_toolkit.document import Document

    from app.repl.desk import Desk

_MOST = 200


class PromptCompleter(Completer):
    """Completes *commands*, and files of the directory that is worked in at the *desk*."""

    def __init__(self, desk: Desk, commands: Sequence[Command]) -> None:
        self._desk, self._commands = desk, commands

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
        for value, meta in command.choices(self._desk):
            if value.lower().startswith(wanted.lower()):
                yield Completion(value, -len(wanted), display=plain(value), display_meta=meta)

    def _files(self, typed: str, *, is_quoted: bool) -> Iterator[Completion]:
        folder, slashed, name = typed.rpartition("/")
        where = self._desk.directory / Path(folder + slashed).expanduser()
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
            names = [
                f"{entry.name}/" if entry.is_dir() else entry.name
                for entry in islice(entries, 10_000)
                if entry.name.casefold().startswith(name.casefold())
                and (name.startswith(".") or not entry.name.startswith("."))
            ]
    except OSError:
        return
    yield from sorted(names)
