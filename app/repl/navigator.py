"""The navigator: the tree of a conversation, to go somewhere in it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.commands.tree import line
from app.i18n import _
from app.repl.chooser import Choice, Chooser, ask_line
from domain.projections.outline import outline

if TYPE_CHECKING:
    from app.repl.loop import Repl
    from domain.conversation import Conversation
    from domain.events import Version

_HINT = "Enter goes there · Ctrl+S with a summary · Ctrl+L label · Ctrl+F fork · Esc leaves"
_ACTIONS = {"c-s": "summary", "c-l": "label", "c-f": "fork"}


async def navigate(repl: Repl, talk: Conversation) -> tuple[str, Version] | None:
    """Return what to do (enter, summary or fork) at which entry; labels are given at once."""
    at, wanted = talk.leaf, ""
    with repl.meanwhile.paused():
        while True:
            talk = repl.at_hand.conversation
            chooser = Chooser(
                _("The tree: ● on the way to the leaf, ○ beside it, · summarised"),
                _choices(talk),
                actions=_ACTIONS,
                hint=_(_HINT),
                at=at,
                wanted=wanted,
            )
            chosen = await chooser.ask()
            if chosen is None:
                return None
            if chosen.action != "label":
                return chosen.action, chosen.value
            at, wanted = chosen.value, chooser.wanted
            await _label(repl, talk, chosen.value)


async def _label(repl: Repl, talk: Conversation, version: Version) -> None:
    text = await ask_line(
        _("Label of entry {version} (blank for none): ").format(version=version),
        talk.labels.get(version, ""),
    )
    if text is not None:
        repl.at_hand.record(lambda latest: latest.label(version, text))


def _choices(talk: Conversation) -> list[Choice[Version]]:
    return [
        Choice(
            row.version,
            line(row),
            "" if row.is_on_path and not row.is_compacted else "ansibrightblack",
        )
        for row in outline(talk)
    ]
