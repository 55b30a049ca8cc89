"""Commands about the tree: where the next entry hangs, labels, summaries of what is left."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.commands.trigger import Commands
from domain.errors import InvalidCommandError, UnknownEntryError
from domain.text import valid

if TYPE_CHECKING:
    from domain.events import Version
    from domain.messages import JsonObject


class BranchCommands(Commands):
    """Moves the leaf, and lets a summary stand for a past or for a branch."""

    Event = events.Event

    def move_leaf(self, target: Version | None) -> None:
        """Let the next entry hang from *target*; from nothing, for None.

        Raises:
            UnknownEntryError: *target* is not an entry.
        """
        self._require_entry(target)
        if target != self.leaf:
            self._trigger(events.LeafMoved, target=target)

    def label(self, target: Version, text: str | None) -> None:
        """Give the entry *target* a label; a blank one takes it away.

        Raises:
            UnknownEntryError: *target* is not an entry.
            InvalidCommandError: the label would read as a version.
        """
        self._require_entry(target)
        cleaned = " ".join(valid(text or "").split()) or None
        if cleaned is not None and cleaned.lstrip("-").isdigit():
            raise InvalidCommandError(f"{cleaned!r} would be read as an entry's number.")
        if cleaned != self.labels.get(target):
            self._trigger(events.LabelChanged, target=target, label=cleaned)

    def leave_branch(
        self,
        target: Version | None,
        summary: str,
        *,
        model: str | None = None,
        usage: JsonObject | None = None,
        asked: events.SummaryRequests | None = None,
    ) -> None:
        """Move the leaf to *target*, and say there what happened on the branch that was left.

        Raises:
            UnknownEntryError: *target* is not an entry, or there is no branch to leave.
        """
        left = self.leaf if asked is None else asked.leaf
        if left is None:
            raise UnknownEntryError(0)
        self.move_leaf(target)
        self._append(
            events.BranchSummarized,
            left=left,
            summary=summary,
            model=model,
            usage=usage,
            asked=asked,
        )

    def compact(
        self,
        summary: str,
        *,
        first_kept: Version | None,
        tokens_before: int,
        reason: str,
        model: str | None = None,
        usage: JsonObject | None = None,
        asked: events.SummaryRequests | None = None,
    ) -> None:
        """Let *summary* stand for everything on the path before the entry *first_kept*.

        Raises:
            UnknownEntryError: *first_kept* is not on the path.
            InvalidCommandError: the summary is blank.
        """
        if not summary.strip():
            raise InvalidCommandError("A compaction needs a summary.")
        try:
            parent = (
                self.leaf
                if first_kept is None
                else self._path_from(first_kept)[-1].originator_version
            )
        except UnknownEntryError:
            if asked is None:
                raise
            parent = asked.leaf  # the leaf was moved while the summary was written
        self._trigger(
            events.Compacted,
            parent=parent,
            summary=summary,
            first_kept=first_kept,
            tokens_before=tokens_before,
            model=model,
            usage=usage,
            reason=reason,
            asked=asked,
        )
