"""The status line below the prompt: model, thinking, how full the window is, cost, name.

What takes time to know (the price list, the length of the context) is found out in a thread and
appears when it is known: the prompt never waits for it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.utils import get_cwidth

from app.i18n import _
from app.view.plain import one_line

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping
    from uuid import UUID

    from app.repl.desk import Desk
    from app.repl.spent import Facts, Spent
    from app.settings import Settings
    from domain.conversation import Conversation
    from domain.events import Version

_LONGEST_NAME = 40


class Planned(NamedTuple):
    """What there is to show of a conversation that is not there yet."""

    model: str | None
    thinking_level: str | None
    name: str | None
    leaf: Version | None = None
    labels: Mapping[Version, str] = MappingProxyType({})


class StatusLine:
    """Shows the conversation at the desk that it looks at; before, a new one by *settings*."""

    def __init__(self, settings: Settings) -> None:
        self._planned = Planned(settings.first_model, settings.first_thinking, settings.name)
        self._desk: Desk | None = None
        self._known: tuple[object, Facts] | None = None
        self._asked: object = None
        self._spent: dict[UUID, Spent] = {}

    def look_at(self, desk: Desk) -> None:
        """Show the conversation that is open at the *desk*, from here on."""
        self._desk = desk

    def __call__(self) -> FormattedText:
        """Return the line, as wide as the terminal has room for."""
        app = get_app()
        shown = parts(self._planned, None)
        if self._desk is not None:
            try:
                conversation = self._desk.conversation
            except Exception:  # noqa: BLE001 - the store may be gone; this is not the place to say so
                return FormattedText()
            shown = parts(conversation, self._facts_of(conversation, app.invalidate))
        return FormattedText([("", shortened(shown, app.output.get_size().columns - 1))])

    def _facts_of(self, conversation: Conversation, redraw: Callable[[], None]) -> Facts | None:
        """Return the facts of this version if they are known; else find them out."""
        key = (conversation.id, conversation.version)
        if self._asked != key:
            self._asked = key
            threading.Thread(
                target=self._find_out, args=(conversation, key, redraw), daemon=True
            ).start()
        return self._known[1] if self._known is not None and self._known[0] == key else None

    def _find_out(
        self, conversation: Conversation, key: object, redraw: Callable[[], None]
    ) -> None:
        from app.repl.spent import facts_of  # noqa: PLC0415 - prices: half a second

        # The conversation may go on meanwhile: then the next version is asked about.
        with suppress(Exception):
            assert self._desk is not None
            before = self._spent.get(conversation.id)
            facts, spent = facts_of(conversation, self._desk.factory, before)
            self._known, self._spent[conversation.id] = (key, facts), spent
            redraw()


def parts(conversation: Conversation | Planned, facts: Facts | None) -> list[str]:
    """Return what there is to say, the most important first."""
    shown = [one_line(conversation.model or _("no model"), _LONGEST_NAME)]
    if facts is not None:
        shown.append(
            _("{tokens}/{window} tokens ({share})").format(
                tokens=_short(facts.tokens), window=_short(facts.window), share=_share(facts)
            )
        )
    if conversation.thinking_level not in (None, "off"):
        shown.append(_("thinking {level}").format(level=conversation.thinking_level))
    if facts is not None and facts.cost:
        shown.append(f"${facts.cost:.4f}" if facts.cost < 1 else f"${facts.cost:.2f}")
    if conversation.leaf is not None and (label := conversation.labels.get(conversation.leaf)):
        shown.append(f"[{one_line(label, _LONGEST_NAME)}]")
    if conversation.name:
        shown.append(one_line(conversation.name, _LONGEST_NAME))
    return shown


def shortened(shown: list[str], width: int) -> str:
    """Return as much of *shown* as fits *width* cells, from the front."""
    line = ""
    for part in shown:
        longer = f"{line} · {part}" if line else part
        if get_cwidth(longer) > width:
            break
        line = longer
    return line


def _share(facts: Facts) -> str:
    return f"{facts.tokens / facts.window:.0%}" if facts.window else "?"


def _short(tokens: int) -> str:
    for size, unit in ((1_000_000, "M"), (1_000, "k")):
        if tokens >= size:
            # Three digits: 1M, 1.5M, 200k, 12.3k.
            return f"{tokens / size:.{0 if tokens >= 100 * size else 1}f}".removesuffix(".0") + unit
    return str(tokens)
