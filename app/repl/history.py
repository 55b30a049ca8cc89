"""What was typed at the prompt, kept in a file from one run to the next."""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING

from prompt_toolkit.history import FileHistory

from domain.text import valid
from infrastructure.jsonl import disk

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path


class PrivateHistory(FileHistory):
    """A history file that others cannot read, made when something is typed.

    A home that cannot be written costs the history, nothing else; what is no file of this user
    (a link, a pipe) is left alone.
    """

    def __init__(self, path: Path, expanded: Callable[[str], str] = str) -> None:
        super().__init__(path)
        self._path = path
        self._expanded = expanded

    def append_string(self, string: str) -> None:
        """Take *string* with all that was pasted."""
        super().append_string(self._expanded(string))

    def load_history_strings(self) -> Iterable[str]:
        """Return what was typed, newest first."""
        try:
            disk.close(disk.open_read(self._path))  # it is a file of ours: it can be opened
            return [valid(text) for text in super().load_history_strings()]
        except OSError:
            return []

    def store_string(self, string: str) -> None:
        """Append *string*."""
        with suppress(OSError):
            disk.make_folder(self._path.parent)
            disk.close(disk.open_or_create(self._path))
            super().store_string(valid(string))
