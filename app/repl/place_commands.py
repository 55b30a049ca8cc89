"""Commands of the REPL that go somewhere else: another conversation, another entry."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import held_back, missing_directory
from app.commands.tree import line as tree_line
from app.i18n import _
from app.references import conversation_id, entry_version
from app.repl.banner import about
from app.repl.show_commands import recorded
from app.view.console import width
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
        repl.switch_to(await repl.context.workshop.rotate(repl.at_hand, repl.context.screen))
    elif arguments:
        raise InvalidCommandError(
            _("/new takes nothing or compact, not {arguments!r}.").format(arguments=arguments)
        )
    else:
        repl.switch_to(repl.context.workshop.begin_new())
    repl.say(
        _("A new conversation.")
        + (_(" The earlier one is {id}.").format(id=earlier.id) if earlier else "")
    )


async def resume(repl: Repl, arguments: str) -> None:
    """Go on in another conversation, once the person has said what it may bring along."""
    workshop = repl.context.workshop
    conversations = workshop.conversations
    chosen = await _chosen(repl, arguments)
    if chosen is None or chosen == repl.at_hand.id:
        repl.say(_("Still in the same conversation."), "dim")
        return
    settings = workshop.settings
    gone = missing_directory.check(conversations, chosen, settings, is_asked=repl.is_at_terminal)
    match await missing_directory.ask_in_repl(repl, gone, settings.cwd) if gone else "here":
        case "fork":
            chosen = conversations.fork(chosen)
        case "cancel":
            repl.say(_("Still in the same conversation."), "dim")
            return
    repl.switch_to(workshop.resume(chosen))
    repl.show_past()
    for line in about(workshop, repl.at_hand.conversation):
        repl.say(line)
    if repl.is_at_terminal:
        await held_back.ask_in_repl(repl)


async def _chosen(repl: Repl, arguments: str) -> UUID | None:
    """Return the conversation that *arguments* name, or that the person picks from a list."""
    workshop = repl.context.workshop
    if arguments:
        return conversation_id(workshop.conversations, arguments)
    if not repl.is_at_terminal:
        raise InvalidCommandError(_("/resume needs an ID here: `leftfold list` shows them."))
    from app.repl.picker import Picker  # noqa: PLC0415 - only at a terminal

    with repl.meanwhile.paused():
        picker = Picker(workshop.conversations, workshop.settings.cwd, current=repl.at_hand.id)
        return await picker.pick()


async def fork(repl: Repl, arguments: str) -> None:
    """Go on in a copy, up to an entry."""
    talk = recorded(repl)
    entry = entry_version(talk, arguments) if arguments else None
    conversations = repl.context.workshop.conversations
    child = conversations.fork(talk.id, entry)
    repl.switch_to(repl.context.workshop.resume(child))
    repl.show_place()
    repl.console.line()
    repl.say(
        _("Going on in a copy, {child}. The original is {id}.").format(child=child, id=talk.id)
    )


async def tree(repl: Repl, arguments: str) -> None:
    """Show all branches, or go to an entry."""
    talk = recorded(repl)
    if arguments:
        wanted, how = arguments.partition(" ")[::2]
        await _go_to(repl, entry_version(talk, wanted), how)
    elif repl.is_at_terminal:
        from app.repl.navigator import navigate  # noqa: PLC0415 - only at a terminal

        match await navigate(repl, talk):
            case ("fork", version):
                await fork(repl, str(version))
            case (action, version):
                await _go_to(repl, version, "summary" if action == "summary" else "")
    else:
        for row in outline(talk):
            repl.say(
                tree_line(row, width=width(repl.console)),
                "" if row.is_on_path and not row.is_compacted else "dim",
            )
        repl.say(_("/tree ENTRY goes there; /tree ENTRY summary [FOCUS] tells what is left"), "dim")


async def _go_to(repl: Repl, version: Version, how: str) -> None:
    """Move the leaf to an entry; *how* may be ``summary`` and a focus."""
    talk = recorded(repl)
    target: Version | None = version
    entry = talk.entries[version]
    if isinstance(entry, MessageAppended) and entry.said.role == "user" and entry.said.text:
        # An earlier prompt is edited: its sibling will hang from the same parent.
        target = talk.parents[version]
        repl.offer(entry.prompt)
    word, focus = how.partition(" ")[::2]
    if word == "summary":
        await _leave_branch(repl, talk, target, focus)
    elif word:
        raise InvalidCommandError(
            _("/tree ENTRY takes nothing or summary, not {word!r}.").format(word=word)
        )
    else:
        repl.at_hand.record(lambda talk: talk.move_leaf(target))
    repl.show_place()


async def _leave_branch(repl: Repl, talk: Conversation, target: int | None, focus: str) -> None:
    """Move the leaf, and leave a summary of the branch; nothing changes if there is none."""
    ancestor = branches.common_ancestor(talk.parents, talk.leaf, target)
    left = [e for e in talk.path(talk.leaf) if e.originator_version > (ancestor or 0)]
    if not left:
        raise InvalidCommandError(_("There is no branch to leave."))
    repl.say(_("Summarising the branch …"), "dim")
    await repl.compactor.leave_branch(target, left, focus=focus)


async def label(repl: Repl, arguments: str) -> None:
    """Label an entry, the last one if none is named."""
    talk = recorded(repl)
    at, rest = arguments.partition(" ")[::2]
    target = talk.leaf
    if at.startswith("@"):
        target, arguments = entry_version(talk, at[1:]), rest
    if target is None:
        raise InvalidCommandError(_("There is no entry to label yet."))
    repl.at_hand.record(lambda talk: talk.label(target, arguments))
    label = repl.at_hand.conversation.labels.get(target)
    repl.say(
        _("Entry {target} is labelled {label!r}.").format(target=target, label=label)
        if label
        else _("Entry {target} has no label.").format(target=target)
    )
