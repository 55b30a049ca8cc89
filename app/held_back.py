"""What a log brings that was not recorded here: it is said, and does nothing by itself.

A log may come from anywhere. An "always" in it allows nothing, a call that waits in it is not
taken up, a prompt that is queued in it is not sent. The person is told what there is; what is
queued they may send all the same, once they have read it.
"""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

from app.i18n import _
from app.terminal import Question
from app.view.plain import complain, one_line
from app.view.visible import visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Mapping

    from app.open_conversation import OpenConversation
    from domain.conversation import Conversation
    from domain.events import Version

_LONGEST, _MOST = 200, 5
SEND, DROP, KEEP = "send", "drop", "keep"


def held_back(conversation: Conversation) -> Iterator[str]:
    """Yield a line for each kind of thing that a log brings, and that was not recorded here."""
    if allowed := conversation.allowed_elsewhere():
        what = _some(said.command or said.tool for said in allowed)
        yield _("“always” in this log was not said here, so you are asked again: {what}").format(
            what=what
        )
    calls = conversation.open_calls()
    if calls and conversation.last_turn is None and not conversation.has_own_calls():
        waiting = _some(f"{c.name} {json.dumps(c.input, ensure_ascii=False)}" for c in calls)
        yield _(
            "Calls wait in this log that were not asked for here; they are not run: {waiting}"
        ).format(waiting=waiting)
    if conversation.held_back:
        yield _("Queued in this log, and not by you here, so not sent: {waiting}").format(
            waiting=_some(conversation.held_back.values())
        )


def about_key(problem: str) -> str:
    """Say what follows from a *problem* with the key that shows what was said here."""
    return _("What you always allow is forgotten when this program ends: {problem}").format(
        problem=problem
    )


def _some(texts: Iterable[str]) -> str:
    """Return the first of *texts*, each once and on one line: a log may have any number."""
    different = list(dict.fromkeys(texts))
    more = "; …" if len(different) > _MOST else ""
    return "; ".join(one_line(text, _LONGEST) for text in different[:_MOST]) + more


def say_held_back(conversation: Conversation, cwd: str) -> None:
    """Say on stderr what is held back, where nobody can be asked and tools run in *cwd*.

    A conversation of before there were seals, in its own directory, brings nothing of the kind.
    """
    lines = list(held_back(conversation))
    for line in lines:
        complain(line)
    if not conversation.works_here() and (lines or conversation.cwd != cwd):
        model = one_line(str(conversation.model), _LONGEST)
        complain(_("not begun here; the model that answers is {model}").format(model=model))
    if conversation.held_back:
        how = _("`leftfold -r {id}` at a terminal asks whether to send it")
        complain(how.format(id=conversation.id))


def question(waiting: Mapping[Version, str]) -> Question:
    """Show the prompts that are *waiting*, whole, and ask what is to become of them."""
    lines = [line for text in waiting.values() for line in visible_lines(text)]
    return Question(
        [_("Queued in this log, and not by you here:"), *lines],
        _("Send it with your next prompt, drop it, or keep it"),
        (SEND, DROP, KEEP),
        KEEP,
    )


def settle(
    open_conversation: OpenConversation, waiting: Mapping[Version, str], picked: str
) -> None:
    """Record what becomes of the prompts that are *waiting*."""
    if picked == KEEP:
        return

    def decide(conversation: Conversation) -> None:
        for version, text in waiting.items():
            conversation.withdraw_prompt(version)
            if picked == SEND and text.strip():
                conversation.queue_prompt(text)

    open_conversation.record(decide)
