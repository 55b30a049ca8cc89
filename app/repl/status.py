"""The status line below the prompt: model, thinking, how full the window is, cost, name.

What takes time to know (the price list, the length of the context) is found out in a thread and
appears when it is known: the prompt never waits for it.
"""

from __future__ import annotations

import threading
from contextlib import suppress
from typing import TYPE_CHECKING, NamedTuple

from prompt_toolkit.application import get_app
from prompt_toolkit.formatted_text import FormattedText
from prompt_toolkit.utils import get_cwidth

from app.i18n import _
from app.view.plain import one_line
from domain.projections.compaction import context_tokens
from domain.projections.usage import usage_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from decimal import Decimal

    from app.bootstrap import AgentFactory
    from app.open_conversation import OpenConversation
    from domain.conversation import Conversation
    from domain.events import Version
    from domain.projections.usage import Cost

_LONGEST_NAME = 40


class Facts(NamedTuple):
    """What takes time to know of one version of a conversation."""

    tokens: int
    window: int
    cost: Decimal | int | None


class StatusLine:
    """Shows the conversation that it was last told to look at."""

    def __init__(self, factory: AgentFactory) -> None:
        self._factory = factory
        self._open_conversation: OpenConversation | None = None
        self._known: tuple[object, Facts] | None = None
        self._asked: object = None
        self._spent = Spent()

    def look_at(self, open_conversation: OpenConversation) -> None:
        """Show *open_conversation* from here on."""
        self._open_conversation, self._known, self._asked = open_conversation, None, None
        self._spent = Spent()

    def __call__(self) -> FormattedText:
        """Return the line, as wide as the terminal has room for."""
        app = get_app()
        conversation = self._conversation()
        if conversation is None:
            return FormattedText()
        key = (conversation.id, conversation.version)
        if self._asked != key:
            self._asked = key
            threading.Thread(
                target=self._find_out, args=(conversation, key, app.invalidate), daemon=True
            ).start()
        facts = self._known[1] if self._known is not None and self._known[0] == key else None
        line = shortened(parts(conversation, facts), app.output.get_size().columns - 1)
        return FormattedText([("", line)])

    def _conversation(self) -> Conversation | None:
        with suppress(Exception):  # the store may be gone; the prompt is not the place to say so
            return self._open_conversation.conversation if self._open_conversation else None
        return None

    def _find_out(
        self, conversation: Conversation, key: object, redraw: Callable[[], None]
    ) -> None:
        from infrastructure.model.prices import cost  # noqa: PLC0415 - half a second

        # The conversation may go on meanwhile: then the next version is asked about.
        with suppress(Exception):
            window = conversation.known_limits.within(
                self._factory.window_of(conversation.model or "")
            )
            # A thread reads a conversation of its own, whose past is fetched for it alone.
            own = self._factory.foreseen(conversation)
            tokens = context_tokens(own)
            self._spent = self._spent.and_since(own, cost)
            self._known = key, Facts(tokens, window, self._spent.dollars)
            redraw()


class Spent(NamedTuple):
    """What a conversation cost up to a version; None in *dollars* if a price is not known."""

    version: Version = 0
    dollars: Decimal | int | None = 0

    def and_since(self, conversation: Conversation, cost: Cost) -> Spent:
        """Return the same up to the version of *conversation*: only what was added is looked at."""
        inherited = conversation.origin.originator_version if conversation.origin else 0
        added = usage_of(conversation.since(max(self.version, inherited) + 1), cost)
        if self.dollars is None or (added.tokens and added.cost is None):
            return Spent(conversation.version, None)
        return Spent(conversation.version, self.dollars + (added.cost or 0))


def parts(conversation: Conversation, facts: Facts | None) -> list[str]:
    """Return what there is to say, the most important first."""
    said = [one_line(conversation.model or _("no model"), _LONGEST_NAME)]
    if facts is not None:
        said.append(
            _("{tokens}/{window} tokens ({share})").format(
                tokens=_short(facts.tokens), window=_short(facts.window), share=_share(facts)
            )
        )
    if conversation.thinking_level not in (None, "off"):
        said.append(_("thinking {level}").format(level=conversation.thinking_level))
    if facts is not None and facts.cost:
        said.append(f"${facts.cost:.4f}" if facts.cost < 1 else f"${facts.cost:.2f}")
    if conversation.leaf in conversation.labels:
        said.append(f"[{one_line(conversation.labels[conversation.leaf], _LONGEST_NAME)}]")
    if conversation.name:
        said.append(one_line(conversation.name, _LONGEST_NAME))
    return said


def shortened(said: list[str], width: int) -> str:
    """Return as much of *said* as fits *width* cells, from the front."""
    line = ""
    for part in said:
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
