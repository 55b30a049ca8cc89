"""The aggregate: what may be said to a conversation, and what can be asked of it.

A command checks, then triggers an event, and never touches state itself: what a conversation is,
its events alone tell (see `domain.fold`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.commands.branches import BranchCommands
from domain.commands.calls import CallCommands
from domain.commands.settings import SettingCommands
from domain.commands.turns import TurnCommands
from domain.events import Entry, MessageAppended, Version
from domain.seals import NO_KEY, Seals

if TYPE_CHECKING:
    from collections.abc import Mapping
    from datetime import datetime
    from uuid import UUID

    from domain.messages import JsonObject


class Conversation(TurnCommands, CallCommands, BranchCommands, SettingCommands):
    """A conversation, and how one begins: in a directory, or from the end of another one."""

    Event = events.Event

    @classmethod
    def start(
        cls,
        conversation_id: UUID,
        *,
        timestamp: datetime,
        cwd: str,
        program: str = "",
        version: str = "",
        metadata: JsonObject | None = None,
        seals: Seals = NO_KEY,
    ) -> Conversation:
        """Begin a conversation in the directory *cwd*."""
        self = cls.blank(conversation_id, timestamp)
        self.seals = seals
        self._trigger(
            events.Started,
            with_seal=True,
            timestamp=timestamp,
            cwd=cwd,
            program=program,
            version=version,
            metadata=metadata or {},
        )
        return self

    def carry_over(
        self,
        source: Conversation,
        summary: str,
        first_kept: Version,
        *,
        usage: JsonObject | None = None,
    ) -> None:
        """Begin, in a new conversation, from a summary of *source* and its path from *first_kept*.

        The huge log can be left behind: this one needs nothing of it, and says where it is from.

        Raises:
            UnknownEntryError: *first_kept* is not on the path of *source*.
        """
        kept = source._path_from(first_kept)
        self._append(
            events.Compacted,
            summary=summary,
            first_kept=None,
            model=source.model,
            usage=usage,
            reason="rotation",
        )
        places: dict[Version, Version] = {}
        for entry in kept:
            self._copy(entry)
            places[entry.originator_version] = self.version
        self._keep_withheld(source, places)
        for name, limits in source.limits.items():
            self.learn_limits(name, **limits._asdict())
        self._trigger(
            events.Forked,
            source_id=source.id,
            source_version=source.version,
            entry=source.leaf,
        )

    def _copy(self, entry: Entry) -> None:
        """Append what *entry* says; what it cost, and the request behind it, belong to its log."""
        match entry:
            case MessageAppended(message=message, model=model, stop_reason=why, seen=seen):
                self._append(
                    MessageAppended, message=message, model=model, stop_reason=why, seen=seen
                )
            case events.BranchSummarized(summary=text):
                self.append_note("branch summary", text, visible=True)
            case events.NoteAppended(kind=kind, content=text, visible=visible):
                self.append_note(kind, text, visible=visible)

    def _keep_withheld(self, source: Conversation, places: Mapping[Version, Version]) -> None:
        """Send none of what *source* sends no more; *places* tells where its entries are now."""
        groups: dict[tuple[str, str], list[Version]] = {}
        for model, version, kind in sorted(source.withheld):
            if version in places:
                groups.setdefault((model, kind), []).append(places[version])
        for (model, kind), targets in groups.items():
            self._trigger(
                events.ContentWithheld,
                targets=tuple(targets),
                kinds=(kind,),
                model=model,
                reason="carried over",
            )
