"""``leftfold fork``: a copy of a conversation up to an entry, which needs nothing of the first."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import click

from app import bootstrap, references
from app.errors import NoCredentialsError
from app.outputs import ForkMade, write
from app.settings import Settings, run_settings, settings
from domain.events import Forked, Version

if TYPE_CHECKING:
    from uuid import UUID

    from app.application import Conversations


@click.command("fork")
@click.argument("reference", metavar="ID[@ENTRY]")
@click.option("--compact", is_flag=True, help="Begin from a summary and the recent past only.")
@click.option("--offline", is_flag=True, help="Let the offline model write the summary.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(
    store: str | None, *, reference: str, compact: bool, offline: bool, as_json: bool
) -> None:
    """Copy a conversation up to ENTRY (or all of it), and print the id of the copy."""
    chosen = (run_settings if compact else settings)(store=store, offline=offline)
    if compact and chosen.is_offline and not offline:
        raise NoCredentialsError
    with bootstrap.conversations(chosen) as conversations:
        source, version = references.place(conversations, reference)
        if compact:
            made = asyncio.run(_rotated(chosen, conversations, source, version))
        else:
            made = _copied(conversations, source, version)
    write(made) if as_json else click.echo(str(made.id))


def _copied(conversations: Conversations, source: UUID, version: Version | None) -> ForkMade:
    copy = conversations.fork(source, version)
    forked = conversations.last_event_of(copy)
    assert isinstance(forked, Forked)
    return ForkMade(
        id=copy,
        source_id=forked.source_id,
        source_version=forked.source_version,
        entry=forked.entry,
    )


async def _rotated(
    chosen: Settings, conversations: Conversations, source: UUID, version: int | None
) -> ForkMade:
    from app.headless.one_turn import SilentScreen  # noqa: PLC0415 - only with a model

    async with bootstrap.model(chosen) as model:
        factory = bootstrap.AgentFactory(chosen, conversations, model)
        old = conversations.open(source, version=version)
        past = old.conversation
        new = await factory.rotate(old, SilentScreen())
        return ForkMade(id=new.id, source_id=source, source_version=past.version, entry=past.leaf)
