"""What is to be known of a conversation before it goes on: what was restored, what is damaged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import bootstrap, damage, held_back
from app.i18n import _
from app.repl.banner import believed
from app.view.plain import one_line, plain
from domain.events import MessageAppended
from domain.projections.orphans import orphans

if TYPE_CHECKING:
    from collections.abc import Iterator

    from app.bootstrap import AgentFactory
    from domain.conversation import Conversation


def about(factory: AgentFactory, conversation: Conversation) -> Iterator[str]:
    """Yield a line each for what is to be known of a conversation before it goes on."""
    settings = factory.settings
    cwd = bootstrap.working_directory(conversation, settings.cwd)
    if not conversation.pending_events:
        count = conversation.message_count()
        told = (
            _("Restored {messages} messages ({id})")
            if count != 1
            else _("Restored 1 message ({id})")
        )
        yield told.format(messages=count, id=conversation.id)
    if conversation.origin is not None:
        yield _("A copy of {source}, up to entry {entry}").format(
            source=conversation.origin.source_id, entry=conversation.origin.entry
        )
    if conversation.cwd not in (None, settings.cwd):
        gone = "" if conversation.cwd == cwd else _(", but {cwd} is gone")
        if gone and not conversation.works_here():
            gone = _(" ({cwd}, which was not chosen here)")
        gone = gone.format(cwd=plain(str(conversation.cwd)))
        yield _("This conversation belongs to another directory{gone}: tools run in {cwd}").format(
            gone=gone, cwd=plain(cwd)
        )
    yield from believed(settings.home, cwd)
    yield from about_home(factory)
    yield from _unfinished(conversation)
    if conversation.queue:
        waiting = "; ".join(one_line(text, 60) for text in conversation.queue.values())
        yield _("Still queued, and said with your next prompt: {waiting}").format(waiting=waiting)
    yield from held_back.held_back(conversation)
    if not conversation.pending_events and (
        lost := damage.report(factory.conversations, conversation.id, most_bytes=damage.QUICK)
    ):
        yield lost.message
    if without_call := len(orphans(conversation, conversation.leaf)):
        yield _("Tool results without their call, which the model does not get: {count}").format(
            count=without_call
        )


def about_home(factory: AgentFactory) -> Iterator[str]:
    """Yield why the key of this home cannot be used, if so, and which hooks are parked."""
    yield from map(plain, factory.notices)
    if problem := factory.conversations.seals.problem:
        yield plain(held_back.about_key(problem))


def _unfinished(conversation: Conversation) -> Iterator[str]:
    """Yield what the log knows of a turn that did not come to its end."""
    for call in conversation.open_calls():
        if conversation.was_started(call):
            yield _("{tool} was started when the program ended: its outcome is unknown").format(
                tool=one_line(call.name, 60)
            )
    leaf = None if conversation.leaf is None else conversation.entry(conversation.leaf)
    if not isinstance(leaf, MessageAppended):
        return
    role = leaf.content.role
    if role == "user" and conversation.last_turn is None and not conversation.open_calls():
        yield _("The last turn was cut off before its answer")
    elif role == "assistant" and leaf.stop_reason in ("interrupted", "failed"):
        yield _("The last answer was cut off")
