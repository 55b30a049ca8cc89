"""Who works in the conversation: a person in the REPL, ``-p`` for one turn, or a program."""

from __future__ import annotations

import asyncio
import re
from typing import TYPE_CHECKING, Any, NamedTuple

import click
from msgspec import UNSET

from app import bootstrap, missing_directory, standard_input, which_conversation
from app.approvers import AllowAll
from app.errors import DONE, NoCredentialsError, UsageError
from app.i18n import _
from app.places import is_new_store
from app.settings import run_settings
from app.suggestions import no_command
from app.terminal import is_typed_at
from app.view import colours
from app.view.plain import plain
from infrastructure.errors import LeaseHeldError
from infrastructure.withheld import hide

if TYPE_CHECKING:
    from uuid import UUID

    from msgspec import UnsetType

    from app.application import Conversations
    from app.bootstrap import AgentFactory
    from app.headless.happenings import Began
    from app.open_conversation import OpenConversation
    from app.outputs import Damage
    from app.settings import Settings

_OPTION = re.compile(r"-[A-Za-z]|--[A-Za-z][\w-]*(=.*)?", re.DOTALL)
"""What is an option, not a prompt, even where we have none of that name."""


class Job(NamedTuple):
    """What is to be done: a turn with *text*, what a program says, or what a person types."""

    text: str | None
    output: str
    is_driven: bool
    first: str | None

    @property
    def is_asked(self) -> bool:
        """Whether a person types, and may be asked."""
        return self.text is None and not self.is_driven


def run(
    *,
    go_on: bool,
    resume: str | None,
    fork_of: str | None,
    prompt: str | None,
    output: str,
    input_: str = "text",
    first: str | None = None,
    **flags: Any,
) -> int:
    """Run the REPL, one turn, or what a program says; return the exit code.

    *first* is what the REPL begins with, as if it had been typed.
    """
    hide()
    if sum((go_on, resume is not None, fork_of is not None)) > 1:
        raise UsageError(_("-c, -r and --fork exclude one another"))
    is_driven = input_ == "stream-json"
    if is_driven and prompt is not None:
        raise UsageError(_("-p and --input stream-json exclude one another"))
    chosen = run_settings(**flags)
    colours.choose(chosen.keys.theme)
    job = Job(None if prompt is None else _prompt(prompt), output, is_driven, first)
    interactive = job.is_asked and is_typed_at()
    if first is not None:
        _check_first(first, interactive=interactive)
    if is_new_store(chosen.store):
        store = plain(str(chosen.store))
        click.echo(_("leftfold: a new store: {path}").format(path=store), err=True)
    if bootstrap.is_offline(chosen) and not chosen.offline and not interactive:
        raise NoCredentialsError
    with bootstrap.conversations(chosen) as conversations:
        earlier = which_conversation.earlier(
            conversations, chosen, go_on=go_on, resume=resume, fork_of=fork_of
        )
        if earlier is not None:
            gone = missing_directory.check(conversations, earlier, chosen, is_asked=interactive)
            match missing_directory.ask(gone, chosen.cwd) if gone else "here":
                case "fork":
                    earlier = conversations.fork(earlier)
                case "cancel":
                    return DONE
        return asyncio.run(_done(job, chosen, conversations, earlier))


def _check_first(first: str, *, interactive: bool) -> None:
    """Refuse a *first* prompt that nobody could talk on from, or that has no text.

    Raises:
        UsageError, click.UsageError: it is so.
    """
    if not interactive:
        hint = _("What the model is to be told goes behind -p.")
        raise click.UsageError(no_command(first, hint), click.get_current_context().find_root())
    if not first.strip():
        raise UsageError(_("a prompt needs some text in it"))


def _prompt(given: str) -> str:
    """Return the prompt of ``-p``: what was piped in, then what was *given*, if not ``-``.

    Raises:
        UsageError: there is no text, or an option in its place.
    """
    if _OPTION.fullmatch(given):
        raise UsageError(
            _("-p needs a TEXT, and {option!r} is an option; `-p -` reads standard input").format(
                option=given
            )
        )
    parts = [standard_input.piped(), "" if given == "-" else given]
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        raise UsageError(_("-p needs a prompt with some text in it"))
    return text


async def _done(
    job: Job, chosen: Settings, conversations: Conversations, earlier: UUID | None
) -> int:
    """Do the job in the *earlier* conversation, or in a new one; return the exit code."""
    async with bootstrap.model(chosen) as model:
        factory = bootstrap.AgentFactory(chosen, conversations, model)
        try:
            open_conversation = factory.start(earlier)
        except LeaseHeldError as held:
            assert earlier is not None
            instead = which_conversation.instead_of(
                earlier, conversations, held, is_asked=job.is_asked
            )
            if instead is None:
                return DONE
            open_conversation = factory.start(instead)
        if not job.is_asked:  # the banner says it to a person
            _say_left_out(factory, open_conversation)
        if not open_conversation.conversation.pending_events:
            _tell_held_back(open_conversation, chosen.cwd, is_asked=job.is_asked)
        if job.text is not None:
            return await _one_turn(factory, open_conversation, job.text, job.output)
        if job.is_driven:
            return await _driven(factory, open_conversation)
        from app.repl import opening  # noqa: PLC0415 - the prompt is not for -p

        return await opening.run(factory, open_conversation, job.first)


async def _one_turn(
    factory: AgentFactory, open_conversation: OpenConversation, text: str, output: str
) -> int:
    from app.headless import one_turn  # noqa: PLC0415

    nobody = one_turn.NobodyToAsk()
    agent = factory.agent(
        open_conversation,
        approver=AllowAll() if factory.settings.keys.yes else nobody,
        screen=one_turn.screen(output, open_conversation),
    )
    code = await one_turn.run(
        agent, open_conversation, text, output, began=_began(factory, open_conversation)
    )
    if nobody.refused:
        refused = _(
            "leftfold: calls refused, because nobody was there to ask: {count} (--yes allows them)"
        )
        click.echo(refused.format(count=nobody.refused), err=True)
    return code


def _began(factory: AgentFactory, open_conversation: OpenConversation) -> Began:
    """Return for programs which conversation this is; say on stderr what is wrong with its log."""
    from app.damage import QUICK, say_damage  # noqa: PLC0415
    from app.headless import happenings  # noqa: PLC0415 - the REPL needs none of this

    conversation = open_conversation.conversation
    cwd = bootstrap.working_directory(conversation, factory.settings.cwd)
    damage: Damage | UnsetType = UNSET
    if not conversation.pending_events:
        damage = say_damage(factory.conversations, conversation.id, most_bytes=QUICK)
    return happenings.Began(
        conversation.id, cwd, conversation.model, conversation.message_count(), damage
    )


async def _driven(factory: AgentFactory, open_conversation: OpenConversation) -> int:
    from app.headless import one_turn  # noqa: PLC0415
    from app.headless.stream_json import Driver, ProgramApprover  # noqa: PLC0415

    asked = None if factory.settings.keys.yes else ProgramApprover()
    screen = one_turn.screen("stream-json", open_conversation)
    agent = factory.agent(open_conversation, approver=asked or AllowAll(), screen=screen)
    return await Driver(
        agent, open_conversation, asked, began=_began(factory, open_conversation)
    ).run()


def _say_left_out(factory: AgentFactory, open_conversation: OpenConversation) -> None:
    """Say on stderr what is not believed: files of the project, or the key of the home."""
    from app import configuration, instructions  # noqa: PLC0415
    from app.held_back import about_key  # noqa: PLC0415

    chosen = factory.settings
    cwd = bootstrap.working_directory(open_conversation.conversation, chosen.cwd)
    problem = factory.conversations.seals.problem
    key = [about_key(problem)] if problem else []
    for line in [*instructions.left_out(chosen.home, cwd), *configuration.left_out(), *key]:
        click.echo(f"leftfold: {plain(line)}", err=True)


def _tell_held_back(open_conversation: OpenConversation, cwd: str, *, is_asked: bool) -> None:
    """Say what a log brings that was not recorded here; the banner says it to who can be asked."""
    from app.held_back import ask_about_queue, say_held_back  # noqa: PLC0415

    if is_asked and is_typed_at():
        ask_about_queue(open_conversation)
    elif not is_asked:
        say_held_back(open_conversation.conversation, cwd)
