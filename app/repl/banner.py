"""What a person is told first: who answers, where tools run, which instructions are believed.

It stands before the first prompt, so it imports nothing of a conversation.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from app import VERSION
from app.configuration import left_out as left_out_settings
from app.i18n import _
from app.instructions import context_files, left_out
from app.view.plain import plain

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator
    from pathlib import Path

    from app.settings import Settings


def banner(settings: Settings, model: str, cwd: str, about: Iterable[str] | None = None) -> str:
    """Return what the REPL says first, with lines *about* the conversation if it is not new."""
    lines = [
        _("leftfold {version} · {model} · {cwd}").format(
            version=VERSION, model=plain(model), cwd=plain(cwd)
        )
    ]
    if settings.is_offline:
        why = "--offline" if settings.offline else _("no ANTHROPIC_API_KEY is set")
        lines.append(
            _(
                "Offline ({why}): the built-in offline model answers. Try: list the files here"
            ).format(why=why)
        )
    lines += believed(settings.home, cwd) if about is None else about
    lines.append(_("/help shows the commands, q leaves"))
    return plain("\n".join(lines))


def believed(home: Path, cwd: str) -> Iterator[str]:
    """Yield which files with instructions the model is told, and what is left out."""
    if files := context_files(home, cwd):
        yield _("Instructions: ") + ", ".join(plain(str(file.path)) for file in files)
    for line in [*left_out(home, cwd), *left_out_settings()]:
        yield plain(line)
