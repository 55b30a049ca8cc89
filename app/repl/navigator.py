"""The navigator: the tree of a conversation, to go somewhere in it."""

from __future__ import annotations

from shutil import get_terminal_size
from typing import TYPE_CHECKING

from app.i18n import _
from app.repl.chooser import MARGIN, Choice, Chooser
from app.repl.line_session import ask_line
from app.view.lines import tree_line
from domain.projections.outline import TreeEntry, outline

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.repl.desk import Desk
    from domain.conversation import Conversation
    from domain.events import Version

_HINT = (
    "Enter goes there · ← → fold · Ctrl+S with a summary · Ctrl+L label · Ctrl+F fork · Esc leaves"
)
_ACTIONS = {"c-s": "summary", "c-l": "label", "c-f": "fork"}


async def navigate(desk: Desk, conversation: Conversation) -> tuple[str, Version] | None:
    """Return what to do (enter, summary or fork) at which entry; labels are given at once."""
    at, wanted = conversation.leaf, ""
    folded: set[Version] = set()
    async with desk.type_ahead.paused():
        while True:
            conversation = desk.conversation
            rows = list(outline(conversation))
            folds = Folds(rows, folded)
            chooser = Chooser(
                _("The tree: ● on the way to the leaf, ○ beside it, · summarised"),
                [_choice(row) for row in rows],
                actions=_ACTIONS,
                hint=_(_HINT),
                at=at,
                wanted=wanted,
                unfolded=folds.rows,
                folds={"left": folds.fold, "right": folds.unfold},
            )
            chosen = await chooser.ask()
            if chosen is None:
                return None
            if chosen.action != "label":
                return chosen.action, chosen.value
            at, wanted = chosen.value, chooser.wanted
            await _label(desk, conversation, chosen.value)


class Folds:
    """The rows of a tree of which some are folded: what hangs from them is counted, not shown.

    *folded* is kept up to date: it may outlive the rows.
    """

    def __init__(self, rows: Sequence[TreeEntry], folded: set[Version]) -> None:
        self._rows = {row.version: row for row in rows}
        self._folded = folded
        self._sizes = _sizes(rows)

    def rows(self) -> list[Choice[Version]]:
        """Return the rows that are to be seen."""
        shown, hidden = [], 0
        for row in self._rows.values():
            if hidden:
                hidden -= 1
                continue
            hidden = self._sizes[row.version] if row.version in self._folded else 0
            shown.append(_choice(row, hidden))
        return shown

    def fold(self, value: Version) -> Version:
        """Fold what hangs from an entry; where that is done, go to where its branch begins."""
        if self._sizes[value] and value not in self._folded:
            self._folded.add(value)
            return value
        first = self._first_of_branch(value)
        before = self._rows[first].parent
        return first if first != value or before not in self._rows else before

    def unfold(self, value: Version) -> Version:
        """Show again what hangs from an entry."""
        self._folded.discard(value)
        return value

    def _first_of_branch(self, value: Version) -> Version:
        """Return the first entry of the line that leads to *value* without a fork."""
        while (before := self._rows[value].parent) in self._rows:
            if self._sizes[before] > self._sizes[value] + 1:  # others hang from it, too
                return value
            value = before
        return value


def _sizes(rows: Sequence[TreeEntry]) -> dict[Version, int]:
    """Return how many entries hang from each, near and far: they are the rows right below it."""
    sizes = {row.version: 0 for row in rows}
    for row in reversed(rows):  # children before their parents
        if row.parent in sizes:
            sizes[row.parent] += sizes[row.version] + 1
    return sizes


async def _label(desk: Desk, conversation: Conversation, version: Version) -> None:
    text = await ask_line(
        _("Label of entry {version} (blank for none): ").format(version=version),
        conversation.labels.get(version, ""),
    )
    if text is not None:
        desk.open_conversation.record(lambda latest: latest.label(version, text))


def _choice(row: TreeEntry, folded: int = 0) -> Choice[Version]:
    note = _(" ⋯ {count:,} folded ⋯").format(count=folded) if folded else ""
    is_live = row.is_on_path and not row.is_compacted
    return Choice(
        row.version,
        tree_line(row, note, width=get_terminal_size().columns - MARGIN),
        "" if is_live else "class:dim",
    )
