"""Where things are: the home, the store, and the directory in which the program was started."""

from __future__ import annotations

import os
from pathlib import Path
from typing import TYPE_CHECKING, Final

from app.errors import UsageError
from app.i18n import _

if TYPE_CHECKING:
    from uuid import UUID

OUTPUTS: Final = "outputs"
STORE: Final = "conversations"
JSONL: Final = "infrastructure.jsonl"


def home() -> Path:
    """Return where Leftfold keeps its things."""
    return expanded(os.environ.get("LEFTFOLD_HOME") or "~/.leftfold")


def store_folder(named: str | None) -> Path:
    """Return the folder of the logs: the one that is *named*, or the one in the home."""
    return (expanded(named) if named else home() / STORE).absolute()


def is_new_store(store: Path) -> bool:
    """Whether a store that was named, and is no home's own, is not there yet."""
    return keeps_files() and store != store_folder(None) and not store.exists()


def keeps_files() -> bool:
    """Whether conversations are kept in a folder, not by another persistence module."""
    module = os.environ.get("PERSISTENCE_MODULE")
    return module in (None, "", JSONL)


def real(directory: str) -> str:
    """Return *directory*, which a log may name, as it is without links; as it is, if it is none."""
    try:
        return os.path.realpath(directory)
    except (OSError, ValueError):  # a NUL in it, say
        return directory


def side_files(home: Path, conversation_id: UUID) -> Path:
    """Return the folder in which whole outputs of tools are that were too long for the log."""
    return home / OUTPUTS / str(conversation_id)


def expanded(path: str) -> Path:
    """Return *path* with the home that a ``~`` at its beginning stands for.

    Raises:
        UsageError: it is the home of nobody.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(_("{path}: whose home is that?").format(path=path)) from None


def working_directory() -> str:
    """Return the directory in which the program was started.

    Raises:
        UsageError: it is gone.
    """
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise UsageError(_("the working directory is gone; go to another one first")) from None
