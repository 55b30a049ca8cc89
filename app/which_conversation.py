"""Which conversation is meant: a new one, an earlier one, or a copy; a person may be asked."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from app import missing_directory, references
from app.errors import DONE, UsageError
from app.i18n import _
from app.terminal import Question, ask, is_typed_at
from app.view.plain import complain, plain

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations
    from app.settings import Settings
    from domain.events import Version
    from infrastructure.errors import LeaseHeldError

CHOOSE = "?"
"""The ID that means: show what there is, and let the person choose."""


def earlier(
    conversations: Conversations,
    chosen: Settings,
    *,
    go_on: bool,
    resume: str | None,
    fork_of: str | None,
) -> tuple[UUID, Version | None] | None:
    """Return the conversation to go on with, and an entry to show; None for a new one."""
    if fork_of is not None:
        source, version = references.place(conversations, fork_of)
        missing_directory.check(conversations, source, chosen, is_asked=False)
        return conversations.fork(source, version), None
    if resume not in (None, CHOOSE):
        return references.place(conversations, str(resume))
    if go_on or resume == CHOOSE:
        return _newest_or_chosen(conversations, chosen.cwd, choose=not go_on)
    return None


def _newest_or_chosen(
    conversations: Conversations, cwd: str, *, choose: bool
) -> tuple[UUID, Version | None] | None:
    if choose and not is_typed_at():
        raise UsageError(_("-r without an ID needs a terminal to choose at: give an ID, or use -c"))
    from app.catalogue import rows  # noqa: PLC0415 - a new conversation needs no list

    here = rows(conversations, cwd=cwd)
    if not here:
        click.echo(
            _("There is no conversation of this directory yet: this is a new one."), err=True
        )
        return None
    if not choose:
        return here[0].id, None
    from app.view.console import console, is_fancy  # noqa: PLC0415 - rich is not for -c

    if is_fancy(console()):
        from app.repl.picker import Picker  # noqa: PLC0415 - half of the prompt's imports

        picked = asyncio.run(Picker(conversations, cwd).pick())
        if picked is None:
            raise click.exceptions.Exit(DONE)
        return picked
    for number, row in enumerate(here[:20], 1):
        when = row.updated.astimezone().strftime("%Y-%m-%d %H:%M")
        click.echo(f"{number:3}  {when}  {plain(row.title)}", err=True)
    number = click.prompt(
        _("Which"), type=click.IntRange(1, min(len(here), 20)), default=1, err=True
    )
    return here[number - 1].id, None


def instead_of(
    wanted: UUID, conversations: Conversations, held: LeaseHeldError, *, is_asked: bool
) -> UUID | None:
    """Say who has the conversation open, and offer a copy, or a look; None to leave it at that.

    Raises:
        LeaseHeldError: nobody can be asked.
    """
    if not is_asked or not is_typed_at():
        complain(_("to go on in a copy, use --fork {wanted}").format(wanted=wanted))
        raise held
    asked = _("Go on in a copy, or only look")
    match ask(Question([plain(str(held))], asked, ("fork", "look", "leave"), "fork")):
        case "fork":
            return conversations.fork(wanted)
        case "look":
            from app.view.console import console  # noqa: PLC0415
            from app.view.transcript import show_transcript  # noqa: PLC0415
            from domain.projections.transcript import transcript  # noqa: PLC0415

            conversation = conversations.get(wanted)
            show_transcript(console(), transcript(conversation, conversation.leaf))
    return None
