"""Who works in the conversation: a person in the REPL, ``-p`` for one turn, or a program."""

from __future__ import annotations

import asyncio
import contextlib
from typing import TYPE_CHECKING, NamedTuple

from msgspec import UNSET, UnsetType

from app import bootstrap, missing_directory, which_conversation
from app.approvers import AllowAll, RefuseAll
from app.errors import DONE
from app.i18n import _
from app.terminal import ask, is_typed_at
from app.view.plain import complain
from infrastructure.errors import LeaseHeldError

if TYPE_CHECKING:
    from collections.abc import Sequence
    from uuid import UUID

    from app.application import Conversations
    from app.bootstrap import AgentFactory
    from app.headless.happenings import Began
    from app.open_conversation import OpenConversation
    from app.outputs import Damage
    from app.repl.first_prompt import FirstPrompt
    from app.settings import Settings
    from domain.events import Version


class Job(NamedTuple):
    """What is to be done: a turn with *text*, what a program says, or what a person types."""

    text: str | None = None
    output: str = "text"
    is_driven: bool = False
    first: str | None = None
    entry: Version | None = None
    """What a person looked for, in an earlier conversation."""

    @property
    def is_asked(self) -> bool:
        """Whether a person types, and may be asked."""
        return self.text is None and not self.is_driven


def run(job: Job, chosen: Settings, *, go_on: bool, resume: str | None, fork_of: str | None) -> int:
    """Do the job in the conversation that the flags name, or in a new one; return the exit code."""
    is_asked = job.is_asked and is_typed_at()
    with bootstrap.conversations(chosen) as conversations:
        place = which_conversation.earlier(
            conversations, chosen, go_on=go_on, resume=resume, fork_of=fork_of
        )
        earlier, entry = place or (None, None)
        if earlier is not None:
            gone = missing_directory.check(conversations, earlier, chosen, is_asked=is_asked)
            match ask(missing_directory.question(gone, chosen.cwd)) if gone else "here":
                case "fork":
                    earlier = conversations.fork(earlier)
                case "cancel":
                    return DONE
        return asyncio.run(_done(job._replace(entry=entry), chosen, conversations, earlier))


async def run_behind(prompt: FirstPrompt, chosen: Settings) -> int:
    """Talk in a new conversation with the person who has the *prompt*; return the exit code."""
    with bootstrap.conversations(chosen) as conversations:
        return await _done(Job(), chosen, conversations, None, prompt)


async def _done(
    job: Job,
    chosen: Settings,
    conversations: Conversations,
    earlier: UUID | None,
    prompt: FirstPrompt | None = None,
) -> int:
    """Do the job in the *earlier* conversation, or in a new one; return the exit code."""
    async with bootstrap.model(chosen) as model:
        with _hooks(chosen, conversations) as notices:
            factory = bootstrap.AgentFactory(chosen, conversations, model, notices=notices)
            return await _done_by(factory, job, earlier, prompt)


def _hooks(
    chosen: Settings, conversations: Conversations
) -> contextlib.AbstractContextManager[Sequence[str]]:
    """Have the user's hooks run beside this; hand out what a person should know of them."""
    if not chosen.keys.hooks:
        return contextlib.nullcontext(())
    from app.hooks.beside import hooks_beside  # noqa: PLC0415 - few people have hooks

    return hooks_beside(chosen, conversations)


async def _done_by(
    factory: AgentFactory, job: Job, earlier: UUID | None, prompt: FirstPrompt | None
) -> int:
    """Do the job by the agents of *factory*; return the exit code."""
    try:
        open_conversation = factory.start(earlier)
    except LeaseHeldError as held:
        assert earlier is not None
        instead = which_conversation.instead_of(
            earlier, factory.conversations, held, is_asked=job.is_asked
        )
        if instead is None:
            return DONE
        open_conversation = factory.start(instead)
    if not job.is_asked:  # the banner says it to a person
        _say_left_out(factory, open_conversation)
    if not open_conversation.conversation.pending_events:
        _tell_held_back(open_conversation, factory.settings.cwd, is_asked=job.is_asked)
    if job.text is not None:
        return await _one_turn(factory, open_conversation, job.text, job.output)
    if job.is_driven:
        return await _driven(factory, open_conversation)
    from app.repl import first_prompt  # noqa: PLC0415 - the prompt is not for -p

    return await first_prompt.run(factory, open_conversation, job.first, prompt, entry=job.entry)


async def _one_turn(
    factory: AgentFactory, open_conversation: OpenConversation, text: str, output: str
) -> int:
    from app.headless import one_turn  # noqa: PLC0415

    nobody = RefuseAll()
    agent = factory.agent(
        open_conversation,
        approver=AllowAll() if factory.settings.keys.yes else nobody,
        screen=one_turn.screen(output, open_conversation),
    )
    began = _began(factory, open_conversation)
    code = await one_turn.run(agent, text, output, began=began)
    if nobody.refused:
        refused = _("calls refused, because nobody was there to ask: {count} (--yes allows them)")
        complain(refused.format(count=nobody.refused))
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
    return await Driver(agent, asked, _began(factory, open_conversation)).run()


def _say_left_out(factory: AgentFactory, open_conversation: OpenConversation) -> None:
    """Say on stderr what is not believed: files of the project, or the key of the home."""
    from app import configuration, instructions  # noqa: PLC0415
    from app.held_back import about_key  # noqa: PLC0415

    chosen = factory.settings
    cwd = bootstrap.working_directory(open_conversation.conversation, chosen.cwd)
    problem = factory.conversations.seals.problem
    key = [about_key(problem)] if problem else []
    left_out = [*instructions.left_out(chosen.home, cwd), *configuration.left_out()]
    for line in [*left_out, *key, *factory.notices]:
        complain(line)


def _tell_held_back(open_conversation: OpenConversation, cwd: str, *, is_asked: bool) -> None:
    """Say what a log brings that was not recorded here; the banner says it to who can be asked."""
    from app.held_back import question, say_held_back, settle  # noqa: PLC0415

    waiting = dict(open_conversation.conversation.held_back)
    if is_asked and is_typed_at() and waiting:
        settle(open_conversation, waiting, ask(question(waiting)))
    elif not is_asked:
        say_held_back(open_conversation.conversation, cwd)
