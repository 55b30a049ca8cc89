"""A conversation whose directory is gone, or was not chosen here: the person says where to go on.

Nobody is surprised by tools that run somewhere else (case H6), nor by a log from elsewhere that
names a directory of theirs: a person is asked, a script has to say ``--here``.
A person who is in that directory has chosen it.
"""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from app.errors import DirectoryGoneError, ForeignDirectoryError
from app.i18n import _
from app.terminal import Question
from app.view.plain import plain
from domain.events import Started
from domain.seals import is_own_directory
from domain.text import valid

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations
    from app.settings import Settings


def check(
    conversations: Conversations, conversation_id: UUID, chosen: Settings, *, is_asked: bool
) -> str | None:
    """Return the directory of a conversation if somebody must say where to go on instead.

    Raises:
        DirectoryGoneError: it is gone, nobody can be asked, and ``--here`` was not given.
        ForeignDirectoryError: the same, of one that was not chosen here.
    """
    first = next(conversations.events_of(conversation_id, limit=1), None)
    if not isinstance(first, Started) or chosen.here or first.cwd == valid(chosen.cwd):
        return None
    is_there = Path(first.cwd).is_dir()
    if is_there and is_own_directory(first.cwd, first.seal, conversations.seals):
        return None
    if not is_asked:
        error = ForeignDirectoryError if is_there else DirectoryGoneError
        raise error(gone=first.cwd, here=chosen.cwd)
    return first.cwd


def question(gone: str, here: str) -> Question:
    """Return the question whether to go on *here*, in a copy, or not at all."""
    told = (
        _("The directory of this conversation was not chosen here: {gone}")
        if Path(gone).is_dir()
        else _("The directory of this conversation is gone: {gone}")
    )
    asked = _("Go on in {cwd}, or in a copy there").format(cwd=plain(here))
    return Question([told.format(gone=plain(gone))], asked, ("here", "fork", "cancel"), "cancel")
