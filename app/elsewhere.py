"""The other side of a copy or a sync: which store or persistence module, with which settings.

What its settings are, if they are not those of this side, is said by the same variables with a
word before them: ``TO_POSTGRES_DBNAME``, ``FROM_CIPHER_KEY``. No secret has to stand in a command.
"""

from __future__ import annotations

import os
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Literal

from app.errors import UsageError
from app.i18n import _
from app.places import JSONL, STORE, expanded, keeps_files
from infrastructure.jsonl.store import LOG_NAME
from infrastructure.safe_files import reason_of

if TYPE_CHECKING:
    from pathlib import Path


@dataclass(frozen=True, kw_only=True)
class Elsewhere:
    """What a person said of the other side: a *folder* of logs, or a *module*, or neither."""

    prefix: Literal["TO", "FROM"]
    folder: str | None = None
    module: str | None = None

    @property
    def is_named(self) -> bool:
        """Whether there is another side at all."""
        return self.folder is not None or self.module is not None

    def environment(self, own: Path) -> dict[str, str]:
        """Return what is other there than here, where the *own* store is.

        Raises:
            UsageError: the folder is no store, or the module keeps no logs in a folder.
        """
        word = f"{self.prefix}_"
        found = {
            name.removeprefix(word): value
            for name, value in os.environ.items()
            if name.startswith(word)
        }
        if self.module is not None:
            found["PERSISTENCE_MODULE"] = self.module
        if self.folder is not None:
            module = self.module or JSONL
            if module != JSONL:
                raise UsageError(
                    _("{module} keeps no logs in {folder}: variables {word}… say where").format(
                        module=module, folder=self.folder, word=word
                    )
                )
            found["PERSISTENCE_MODULE"] = JSONL
            store = other_store(self.folder, own)
            if self.prefix == "FROM" and not store.is_dir():
                raise UsageError(_("there is no store: {path}").format(path=store))
            found["LEFTFOLD_STORE"] = str(store)
        # A name of ours before one of the library's comes first there.
        ours = {f"LEFTFOLD_{name}": value for name, value in found.items()}
        return found | ours


def other_store(named: str, own: Path) -> Path:
    """Return the store that a person means who names a folder beside their *own* store.

    It is a store, a home that has one, or a folder that is empty or not there yet.

    Raises:
        UsageError: it is none of these, or the own store, or inside of it.
    """
    folder = expanded(named).absolute()
    try:
        names = [entry.name for entry in folder.iterdir() if not entry.name.startswith(".")]
    except FileNotFoundError:
        if not folder.parent.is_dir():
            raise UsageError(
                _("{folder}: there is no directory {parent}").format(
                    folder=folder, parent=folder.parent
                )
            ) from None
        names = []
    except OSError as error:
        raise UsageError(f"{folder}: {reason_of(error)}") from error
    except ValueError as error:  # a NUL in it
        raise UsageError(f"{folder}: {error}") from error
    if STORE in names:
        folder /= STORE
    elif names and not any(re.fullmatch(LOG_NAME, name) for name in names):
        raise UsageError(
            _("{folder} is no store: there are other files in it; name a folder of its own").format(
                folder=folder
            )
        )
    real = folder.resolve()
    if keeps_files() and own.resolve() in (real, *real.parents):
        raise UsageError(_("{folder} is the store itself: name another one").format(folder=folder))
    return folder
