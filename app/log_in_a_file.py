"""A conversation as one file, a log in plain text: out of a store, and into another one.

The file goes through a store of its own for a moment, so that it is written, read and compared as
every other copy is (`app.moving`).
"""

from __future__ import annotations

import tempfile
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING
from uuid import UUID

from app import moving
from app.application import Conversations
from app.outputs import Imported
from app.places import JSONL
from domain.events import MessageAppended

if TYPE_CHECKING:
    from collections.abc import Iterator

    from infrastructure.histories.source import Source

NAME = "jsonl"
_PLAIN = {"PERSISTENCE_MODULE": JSONL, "CIPHER_TOPIC": "", "COMPRESSOR_TOPIC": ""}


def id_in(source: Source) -> UUID | None:
    """Return of which conversation *source* is a log; None if it is none."""
    for line in source.lines(1):
        match line.value:
            case {"format": str(name), "id": str(text)} if name.startswith("leftfold/"):
                try:
                    return UUID(text)
                except ValueError:
                    return None
    return None


def log_of(conversations: Conversations, conversation_id: UUID) -> bytes:
    """Return a conversation as a log of its own, decrypted and decompressed.

    Raises:
        DamagedStreamError: a part of it is lost: `recover` makes a new one of the rest.
    """
    with _store() as alone:
        moving.copy(conversations, alone, conversation_id, fork=False)
        assert alone.store is not None
        return alone.store.path_of(conversation_id).read_bytes()


def take_in(conversations: Conversations, source: Source, conversation_id: UUID) -> Imported:
    """Record what is new in the log *source*; where it parts from what is here, as a fork.

    Raises:
        DamagedStreamError: one of the two is damaged.
        LeaseHeldError: somebody works in that conversation.
    """
    with _store() as alone:
        assert alone.store is not None
        alone.store.path.mkdir(exist_ok=True)
        alone.store.path_of(conversation_id).write_bytes(source.contents())
        done = moving.copy(alone, conversations, conversation_id, fork=True)
    target = done.fork or done.id
    since = done.version - done.events + 1
    added = list(conversations.events_of(target, since=since)) if done.events else []
    return Imported(
        id=target,
        source=str(source.path),
        format=NAME,
        new=done.outcome in ("copied", "forked"),
        added=done.events,
        known=done.version - done.events,
        messages=sum(isinstance(event, MessageAppended) for event in added),
        notes=0,
        damaged=0,
        unfinished=False,
    )


@contextmanager
def _store() -> Iterator[Conversations]:
    with tempfile.TemporaryDirectory() as folder:
        env = _PLAIN | {"LEFTFOLD_STORE": str(Path(folder) / "conversations")}
        ours = {f"LEFTFOLD_{name}": value for name, value in env.items()}
        with Conversations(env | ours) as alone:
            yield alone
