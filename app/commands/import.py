"""``leftfold import``: what another program has recorded, as conversations to go on with."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

import click

from app import bootstrap
from app.errors import UsageError
from app.explanations import EXPECTED, kind_of
from app.i18n import _
from app.outputs import Imported, NotImported, Problem, write
from app.settings import settings
from app.view.plain import complain, plain

if TYPE_CHECKING:
    from collections.abc import Sequence

    from app.application import Conversations

_ENDINGS = (".jsonl", ".json", ".jsonl.zst")
_FORMATS = ("auto", "messages", "pi", "claude-code", "codex", "gemini-cli", "opencode", "jsonl")


@click.command("import")
@click.argument("paths", metavar="FILE|FOLDER…", nargs=-1, required=True)
@click.option(
    "--from",
    "format_name",
    type=click.Choice(_FORMATS),
    default="auto",
    help="Which program wrote it.",
)
@click.option("--json", "as_json", is_flag=True, help="One JSON object a line.")
@click.pass_context
def command(ctx: click.Context, *, paths: Sequence[str], format_name: str, as_json: bool) -> None:
    """Take over the history of another program: pi, Claude Code, Codex, and others."""
    chosen = settings(store=ctx.obj)
    wanted = None if format_name == "auto" else format_name
    failed = 0
    with bootstrap.conversations(chosen) as conversations:
        for path in _files(paths):
            done = _imported(conversations, path, wanted, chosen.cwd)
            failed += isinstance(done, NotImported)
            if as_json:
                write(done)
            if isinstance(done, NotImported):
                complain(done.error.message)
            elif not as_json:
                click.echo(plain(_row(done)))
    if failed:
        ctx.exit(1)


def _files(paths: Sequence[str]) -> list[Path]:
    """Return the files that *paths* name: of a folder, all in it that may be histories."""
    files: list[Path] = []
    for path in map(Path, paths):
        if path.is_dir():
            inner = (each for each in path.rglob("*") if each.name.endswith(_ENDINGS))
            found = sorted(each for each in inner if each.is_file())
            if not found:
                raise UsageError(_("there is no history in {path}").format(path=path))
            files += found
        else:
            files.append(path)
    return [path.resolve() for path in files]


def _imported(
    conversations: Conversations, path: Path, wanted: str | None, cwd: str
) -> Imported | NotImported:
    from app.importing import import_file  # noqa: PLC0415 - not for help
    from app.progress import Progress  # noqa: PLC0415 - the same

    try:
        with Progress(_("importing {name}").format(name=plain(path.name))) as progress:
            return import_file(conversations, path, format_name=wanted, cwd=cwd, tell=progress.tell)
    except EXPECTED as error:
        return NotImported(str(path), Problem(type=kind_of(error), message=str(error)))


def _row(done: Imported) -> str:
    """Return the id, and for people what was kept: counts, and what is to be known of them."""
    words = [_("{count} messages").format(count=done.messages)]
    if done.notes:
        words.append(_("{count} lines kept as notes").format(count=done.notes))
    if done.damaged:
        words.append(_("{count} damaged lines kept as notes").format(count=done.damaged))
    if done.unfinished:
        words.append(_("the last line is not whole: import again when it is"))
    what = ", ".join(words) if done.added else _("nothing new")
    return f"{done.id}  {done.format}  {what}"
