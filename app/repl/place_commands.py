"""Commands of the REPL that go somewhere else: another conversation, another entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import held_back, missing_directory
from app.i18n import _
from app.references import conversation_id, entry_version
from app.repl.banner import about
from app.repl.show_commands import recorded
from app.view.console import width
from app.view.lines import tree_line
from domain import tree as branches
from domain.errors import InvalidCommandError
from domain.events import MessageAppended
from domain.projections.outline import outline

if TYPE_CHECKING:
    from uuid import UUID

    from app.repl.loop import Repl
    from domain.conversation import Conversation
    from domain.events import Version


async def new(repl: Repl, arguments: str) -> None:
    """Start a new conversation; ``compact``: from a summary of this one."""
    earlier = repl.recorded()
    if arguments == "compact":
        if earlier is None:
            raise InvalidCommandError(_("There is nothing to begin from yet."))
        repl.switch_to(
            await repl.context.factory.rotate(repl.open_conversation, repl.context.screen)
        )
    elif arguments:
        raise InvalidCommandError(
            _("/new takes nothing or compact, not {arguments!r}.").format(arguments=arguments)
        )
    else:
        repl.switch_to(repl.context.factory.begin_new())
    repl.say(
        _("A new conversation.")
        + (_(" The earlier one is {id}.").format(id=earlier.id) if earlier else "")
    )


async def resume(repl: Repl, arguments: str) -> None:
    """Go on in another conversation, once the person has said what it may bring along."""
    factory = repl.context.factory
    conversations = factory.conversations
    chosen = await _chosen(repl, arguments)
    if chosen is None or chosen == repl.open_conversation.id:
        repl.say(_("Still in the same conversation."), "dim")
        return
    settings = factory.settings
    gone = missing_directory.check(conversations, chosen, settings, is_asked=repl.is_at_terminal)
    match await missing_directory.ask_in_repl(repl, gone, settings.cwd) if gone else "here":
        case "fork":
            chosen = conversations.fork(chosen)
        case "cancel":
            repl.say(_("Still in the same conversation."), "dim")
            return
    repl.switch_to(factory.resume(chosen))
    repl.show_past()
    for line in about(factory, repl.open_conversation.conversation):
        repl.say(line)
    if repl.is_at_terminal:
        await held_back.ask_in_repl(repl)


async def _chosen(repl: Repl, arguments: str) -> UUID | None:
    """Return the conversation that *arguments* name, or that the person picks from a list."""
    factory = repl.context.factory
    if arguments:
        return conversation_id(factory.conversations, arguments)
    if not repl.is_at_terminal:
        raise InvalidCommandError(_("/resume needs an ID here: `leftfold list` shows them."))
    from app.repl.picker import Picker  # noqa: PLC0415 - only at a terminal

    with repl.meanwhile.paused():
        picker = Picker(
            factory.conversations, factory.settings.cwd, current=repl.open_conversation.id
        )
        return await picker.pick()


async def fork(repl: Repl, arguments: str) -> None:
    """Go on in a copy, up to an entry."""
    conversation = recorded(repl)
    entry = entry_version(conversation, arguments) if arguments else None
    conversations = repl.context.factory.conversations
    child = conversations.fork(conversation.id, entry)
    repl.switch_to(repl.context.factory.resume(child))
    repl.show_place()
    repl.console.line()
    repl.say(
        _("Going on in a copy, {child}. The original is {id}.").format(
            child=child, id=conversation.id
        )
    )


async def tree(repl: Repl, arguments: str) -> None:
    """Show all branches, or go to an entry."""
    conversation = recorded(repl)
    if arguments:
        wanted, how = arguments.partition(" ")[::2]
        await _go_to(repl, entry_version(conversation, wanted), how)
    elif repl.is_at_terminal:
        from app.repl.navigator import navigate  # noqa: PLC0415 - only at a terminal

        match await navigate(repl, conversation):
            case ("fork", version):
                await fork(repl, str(version))
            case (action, version):
                await _go_to(repl, version, "summary" if action == "summary" else "")
    else:
        for row in outline(conversation):
            repl.say(
                tree_line(row, width=width(repl.console)),
                "" if row.is_on_path and not row.is_compacted else "dim",
            )
        repl.say(_("/tree ENTRY goes there; /tree ENTRY summary [FOCUS] tells what is left"), "dim")


async def _go_to(repl: Repl, version: Version, how: str) -> None:
    """Move the leaf to an entry; *how* may be ``summary`` and a focus."""
    conversation = recorded(repl)
    target: Version | None = version
    entry = conversation.entries[version]
    if isinstance(entry, MessageAppended) and entry.said.role == "user" and entry.said.text:
        # An earlier prompt is edited: its sibling will hang from the same parent.
        target = conversation.parents[version]
        repl.offer(entry.prompt)
    word, focus = how.partition(" ")[::2]
    if word == "summary":
        await _leave_branch(repl, conversation, target, focus)
    elif word:
        raise InvalidCommandError(
            _("/tree ENTRY takes nothing or summary, not {word!r}.").format(word=word)
        )
    else:
        repl.open_conversation.record(lambda conversation: conversation.move_leaf(target))
    repl.show_place()


async def _leave_branch(
    repl: Repl, conversation: Conversation, target: int | None, focus: str
) -> None:
    """Move the leaf, and leave a summary of the branch; nothing changes if there is none."""
    ancestor = branches.common_ancestor(conversation.parents, conversation.leaf, target)
    left = [
        e for e in conversation.path(conversation.leaf) if e.originator_version > (ancestor or 0)
    ]
    if not left:
        raise InvalidCommandError(_("There is no branch to leave."))
    repl.say(_("Summarising the branch …"), "dim")
    await repl.compactor.leave_branch(target, left, focus=focus)


async def label(repl: Repl, arguments: str) -> None:
    """Label an entry, the last one if none is named."""
    conversation = recorded(repl)
    at, rest = arguments.partition(" ")[::2]
    target = conversation.leaf
    if at.startswith("@"):
        target, arguments = entry_version(conversation, at[1:]), rest
    if target is None:
        raise InvalidCommandError(_("There is no entry to label yet."))
    repl.open_conversation.record(lambda conversation: conversation.label(target, arguments))
    label = repl.open_conversation.conversation.labels.get(target)
    repl.say(
        _("Entry {target} is labelled {label!r}.").format(target=target, label=label)
        if label
        else _("Entry {target} has no label.").format(target=target)
    )
