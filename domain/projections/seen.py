"""The files that the model knows whole, as the context tells them: a path in, digests out.

A file may only be replaced as the model knows it (case R12). A file that was read before a
compaction, or on another branch, is not known.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain.events import MessageAppended
from domain.projections.context import live_backwards

if TYPE_CHECKING:
    from domain.conversation import Conversation
    from domain.events import Version


def seen(conversation: Conversation, leaf: Version | None) -> dict[str, str]:
    """Return each file that the context of *leaf* holds whole, with its newest digest there.

    Raises:
        UnknownEntryError: *leaf* is not an entry.
    """
    files: dict[str, str] = {}
    for entry in live_backwards(conversation, leaf):
        if isinstance(entry, MessageAppended):
            for path, digest in entry.seen.items():
                files.setdefault(path, digest)
    return files
