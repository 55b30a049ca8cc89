"""What Tab offers as the argument of a slash command, each with a word about it."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING

from app.i18n import _
from app.view.plain import one_line
from domain.projections.outline import outline
from domain.thinking import THINKING_LEVELS

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.repl.command import Choices
    from domain.conversation import Conversation

_MOST_ENTRIES = 40


def words(**meanings: str) -> Choices:
    """Return what offers these words, each with what it means."""
    return lambda _conversation: (
        (word, meaning and _(meaning)) for word, meaning in meanings.items()
    )


levels = words(**dict.fromkeys(THINKING_LEVELS, ""))


def entries(conversation: Conversation | None) -> Iterator[tuple[str, str]]:
    """Yield labels, then the newest prompts on the path by their versions."""
    if conversation is None:
        return
    for version, label in conversation.labels.items():
        if " " not in label:
            yield label, _("entry {version}").format(version=version)
    prompts = [row for row in outline(conversation) if row.kind == "user"]
    for row in reversed(prompts[-_MOST_ENTRIES:]):
        yield str(row.version), one_line(row.text, 60)


def models(_conversation: Conversation | None) -> Iterator[tuple[str, str]]:
    """Yield the models of the price list, if it is loaded: nobody waits for it at a key."""
    if getattr(sys.modules.get("genai_prices.data_snapshot"), "get_snapshot", None) is not None:
        from infrastructure.model import prices  # noqa: PLC0415

        yield from ((model, "") for model in prices.models())
