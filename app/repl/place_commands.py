"""Commands of the REPL that go somewhere else: another conversation, another entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from prompt_toolkit.application.current import get_app_session

from app import held_back, missing_directory
from app.i18n import _
from app.references import entry_version, place
from app.repl.line_session import ask_line
from app.repl.restored import about
from app.repl.unread_terminal import throw_away_input
from app.view.console import width
from app.view.lines import tree_line
from app.view.transcript import show_entry, show_past, show_place
from domain import tree as branches
from domain.errors import InvalidCommandError
from domain.events import MessageAppended, Version
from domain.projections.outline import outline

if TYPE_CHECKING:
    from uuid import UUID

    from app.repl.desk import Desk
    from app.terminal import Question
    from domain.conversation import Conversation


async def new(desk: Desk, arguments: str) -> None:
    """Start a new conversation; ``compact``: from a summary of this one."""
    earlier = desk.recorded()
    if arguments == "compact":
        if earlier is None:
            raise InvalidCommandError(_("There is nothing to begin from yet."))
        desk.switch_to(await desk.factory.rotate(desk.open_conversation, desk.screen))
    elif arguments:
        raise InvalidCommandError(
            _("/new takes nothing or compact, not {arguments!r}.").format(arguments=arguments)
        )
    else:
        desk.switch_to(desk.factory.begin_new())
    desk.say(
        _("A new conversation.")
        + (_(" The earlier one is {id}.").format(id=earlier.id) if earlier else "")
    )


async def resume(desk: Desk, arguments: str) -> None:
    """Go on in another conversation, once the person has said what it may bring along."""
    factory = desk.factory
    conversations = factory.conversations
    picked = await _chosen(desk, arguments)
    if picked is None or picked == (desk.open_conversation.id, None):
        desk.say(_("Still in the same conversation."), "dim")
        return
    chosen, entry = picked
    if chosen == desk.open_conversation.id:
        show_entry(desk.console, desk.conversation, entry)
        return
    settings = factory.settings
    gone = missing_directory.check(conversations, chosen, settings, is_asked=desk.is_at_terminal)
    match await choose(desk, missing_directory.question(gone, settings.cwd)) if gone else "here":
        case "fork":
            chosen = conversations.fork(chosen)
        case "cancel":
            desk.say(_("Still in the same conversation."), "dim")
            return
    desk.switch_to(factory.resume(chosen))
    show_past(desk.console, desk.conversation)
    for line in about(factory, desk.conversation):
        desk.say(line)
    show_entry(desk.console, desk.conversation, entry)
    if desk.is_at_terminal:
        await settle_queue(desk)


async def _chosen(desk: Desk, arguments: str) -> tuple[UUID, Version | None] | None:
    """Return the conversation, and entry, that *arguments* name, or that are picked from a list."""
    factory = desk.factory
    if arguments:
        return place(factory.conversations, arguments)
    if not desk.is_at_terminal:
        raise InvalidCommandError(_("/resume needs an ID here: `leftfold list` shows them."))
    from app.repl.picker import Picker  # noqa: PLC0415 - only at a terminal

    async with desk.type_ahead.paused():
        picker = Picker(
            factory.conversations, factory.settings.cwd, current=desk.open_conversation.id
        )
        return await picker.pick()


async def choose(desk: Desk, question: Question) -> str:
    """Ask *question*, and return one of its words, of which the beginning will do.

    Everything else, also Ctrl+C and the end of the input, is the default. What was typed before
    the question is no answer to it.
    """
    told, asked, words, default = question
    for line in told:
        desk.say(line)
    async with desk.type_ahead.paused():
        throw_away_input(get_app_session().input)
        typed = await ask_line(f"{asked} ({', '.join(words)}) [{default}]: ", is_kept=True)
    answer = (typed or "").strip().lower()
    return next((word for word in words if answer and word.startswith(answer)), default)


async def settle_queue(desk: Desk) -> None:
    """Ask what is to become of the prompts that were not queued here, if there are any."""
    if waiting := dict(desk.conversation.held_back):
        picked = await choose(desk, held_back.question(waiting))
        held_back.settle(desk.open_conversation, waiting, picked)


async def fork(desk: Desk, arguments: str) -> None:
    """Go on in a copy, up to an entry."""
    conversation = desk.require_recorded()
    entry = entry_version(conversation, arguments) if arguments else None
    conversations = desk.factory.conversations
    child = conversations.fork(conversation.id, entry)
    desk.switch_to(desk.factory.resume(child))
    show_place(desk.console, desk.conversation)
    desk.console.line()
    desk.say(
        _("Going on in a copy, {child}. The original is {id}.").format(
            child=child, id=conversation.id
        )
    )


async def tree(desk: Desk, arguments: str) -> None:
    """Show all branches, or go to an entry."""
    conversation = desk.require_recorded()
    if arguments:
        wanted, how = arguments.partition(" ")[::2]
        await _go_to(desk, entry_version(conversation, wanted), how)
    elif desk.is_at_terminal:
        from app.repl.navigator import navigate  # noqa: PLC0415 - only at a terminal

        match await navigate(desk, conversation):
            case ("fork", version):
                await fork(desk, str(version))
            case (action, version):
                await _go_to(desk, version, "summary" if action == "summary" else "")
    else:
        for row in outline(conversation):
            desk.say(
                tree_line(row, width=width(desk.console)),
                "" if row.is_on_path and not row.is_compacted else "dim",
            )
        desk.say(_("/tree ENTRY goes there; /tree ENTRY summary [FOCUS] tells what is left"), "dim")


async def _go_to(desk: Desk, version: Version, how: str) -> None:
    """Move the leaf to an entry; *how* may be ``summary`` and a focus."""
    conversation = desk.require_recorded()
    target: Version | None = version
    entry = conversation.entries[version]
    if isinstance(entry, MessageAppended) and entry.content.role == "user" and entry.content.text:
        # An earlier prompt is edited: its sibling will hang from the same parent.
        target = conversation.parents[version]
        desk.offered = entry.content.prompt
    word, focus = how.partition(" ")[::2]
    if word == "summary":
        await _leave_branch(desk, conversation, target, focus)
    elif word:
        raise InvalidCommandError(
            _("/tree ENTRY takes nothing or summary, not {word!r}.").format(word=word)
        )
    else:
        desk.open_conversation.record(lambda conversation: conversation.move_leaf(target))
    show_place(desk.console, desk.conversation)


async def _leave_branch(
    desk: Desk, conversation: Conversation, target: int | None, focus: str
) -> None:
    """Move the leaf, and leave a summary of the branch; nothing changes if there is none."""
    ancestor = branches.common_ancestor(conversation.parents, conversation.leaf, target)
    left = [
        e for e in conversation.path(conversation.leaf) if e.originator_version > (ancestor or 0)
    ]
    if not left:
        raise InvalidCommandError(_("There is no branch to leave."))
    desk.say(_("Summarising the branch …"), "dim")
    await desk.agent().compactor.leave_branch(target, left, focus=focus)


async def label(desk: Desk, arguments: str) -> None:
    """Label an entry, the last one if none is named."""
    conversation = desk.require_recorded()
    at, rest = arguments.partition(" ")[::2]
    target = conversation.leaf
    if at.startswith("@"):
        target, arguments = entry_version(conversation, at[1:]), rest
    if target is None:
        raise InvalidCommandError(_("There is no entry to label yet."))
    desk.open_conversation.record(lambda conversation: conversation.label(target, arguments))
    label = desk.conversation.labels.get(target)
    desk.say(
        _("Entry {target} is labelled {label!r}.").format(target=target, label=label)
        if label
        else _("Entry {target} has no label.").format(target=target)
    )
