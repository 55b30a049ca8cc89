"""``leftfold export``: a conversation as other programs, and people, read it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING

import click
import msgspec

from app import VERSION, bootstrap, references
from app.damage import say_damage
from app.errors import AppError, UsageError
from app.i18n import _
from app.outputs import Exported, write
from app.settings import settings
from infrastructure.safe_files import reason_of

if TYPE_CHECKING:
    from collections.abc import Iterator
    from uuid import UUID

    from app.application import Conversations
    from domain.events import Version


class ExportError(AppError):
    """The file cannot be written."""

    MESSAGE = "{path} cannot be written: {why}"


@click.command("export")
@click.argument("reference", metavar="ID[@ENTRY]")
@click.option(
    "--as",
    "form",
    type=click.Choice(["messages", "markdown", "pi", "atif", "jsonl"]),
    required=True,
    help="Messages of a request; Markdown; a session of pi; a trajectory of ATIF; our own log.",
)
@click.option("-o", "--output", "target", metavar="FILE", help="Write it there.")
@click.option("--force", is_flag=True, help="Replace FILE if it is there.")
@click.option("--json", "as_json", is_flag=True, help="One JSON object.")
@click.pass_obj
def command(
    store: str | None,
    *,
    reference: str,
    form: str,
    target: str | None,
    force: bool,
    as_json: bool,
) -> None:
    """Print a conversation in the form of other programs, up to ENTRY or to the end."""
    with bootstrap.conversations(settings(store=store)) as conversations:
        found, version = references.place(conversations, reference)
        say_damage(conversations, found)
        lines = _lines(conversations, found, version, form)
        if target is not None:
            _write(Path(target), lines, is_replaced=force)
        if as_json:
            content = None if target is not None else b"".join(lines).decode()
            write(Exported(id=found, format=form, path=target, content=content))
        elif target is None:
            for line in lines:
                sys.stdout.buffer.write(line)
            sys.stdout.buffer.flush()


def _lines(
    conversations: Conversations, conversation_id: UUID, version: Version | None, form: str
) -> Iterator[bytes]:
    from app.log_in_a_file import log_of  # noqa: PLC0415 - the same
    from domain.projections import atif, exports, pi  # noqa: PLC0415 - not for help

    if form == "jsonl":
        if version is not None:
            raise UsageError(_("a log is exported whole: name no ENTRY"))
        return iter([log_of(conversations, conversation_id)])
    if form == "pi":
        stream = conversations.events_of(conversation_id, until=version)
        return (msgspec.json.encode(line) + b"\n" for line in pi.pi_session(stream))
    conversation = conversations.get(conversation_id)
    leaf = conversation.leaf if version is None else version
    if form == "atif":
        found = atif.trajectory(conversation, leaf, program=VERSION)
        return iter([msgspec.json.encode(found) + b"\n"])
    if form == "messages":
        return (msgspec.json.encode(each) + b"\n" for each in exports.messages(conversation, leaf))
    return (f"{block}\n\n".encode() for block in exports.markdown(conversation, leaf))


def _write(path: Path, lines: Iterator[bytes], *, is_replaced: bool) -> None:
    """Write *lines* into a new file beside *path*, and put it in place when it is whole.

    Raises:
        ExportError: it is there already, or cannot be written; nothing is left behind.
    """
    temporary = path.with_name(f".{path.name}.{os.urandom(6).hex()}.tmp")
    try:
        try:
            fd = os.open(temporary, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
            with os.fdopen(fd, "wb") as file:
                file.writelines(lines)
                file.flush()
                os.fsync(fd)
            if is_replaced:
                temporary.replace(path)
            else:
                os.link(temporary, path)  # never over what is there
        finally:
            temporary.unlink(missing_ok=True)
    except FileExistsError as error:
        raise ExportError(path=path, why=_("it is there already; --force replaces it")) from error
    except OSError as error:
        raise ExportError(path=path, why=reason_of(error)) from error
