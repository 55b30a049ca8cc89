"""The system prompt: what the model is told before anything else.

Beside our own words these are the project's: ``AGENTS.md`` (``CLAUDE.md`` in a folder that has no
``AGENTS.md``) from the home, and from every directory on the way down to the working directory.
"""

from __future__ import annotations

import platform
import re
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from app.i18n import _
from domain.text import valid
from infrastructure.safe_files import NotTrustedError, beginning, is_own, reason_of, require_trusted

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Sequence

    from domain.conversation import Conversation

_OURS = """\
You are Leftfold, a coding agent in a terminal. You work for one person, on their machine.

Use the tools to look before you answer and to do what is asked; ask for calls that do not depend \
on one another in one answer. {search}Say briefly what you are about to do when it is not obvious, \
do it, check that it worked, and report what you found. Keep answers short; use Markdown. Read a \
file before you change it, and change no more than the task needs. Commit, push or publish only if \
you are asked to. Commands run without a terminal and without input. If a result says that an \
outcome is unknown, find out what happened before you try again."""

_BY_COMMANDS = (
    "Search by commands (`rg`, or `grep -rn`; `git ls-files`) before you read whole files. "
)
_BY_TOOLS = "Search with grep and find before you read whole files. "

_PROJECT = """\
The files below were written by the user, or by the people of this project, for agents like you. \
Follow them; where they disagree, the later one counts, and what the user says counts most."""

_SURROUNDINGS = """\
<surroundings>
Directory: {cwd}
System: {system}
When this conversation began: {began}
</surroundings>"""

_TOLD = re.compile(r"<surroundings>\nDirectory: (.*)\n(?:.*\n)+</surroundings>\Z")
_HEAD = re.compile(r"ref: refs/heads/([\w./@+-]+)|([0-9a-f]{12})[0-9a-f]{28,52}")
_LONGEST_LINE = 1_000

NAMES = ("AGENTS.md", "CLAUDE.md")
"""What such a file is called: in each folder the first one that is there."""

MOST_BYTES = 64 * 1024
"""How much of one file the model is told."""


class ContextFile(NamedTuple):
    """A file with instructions: what the model is told of it, or *why* that is nothing."""

    path: Path
    text: str
    why: str = ""


def system_prompt(
    cwd: str,
    files: Sequence[ContextFile] = (),
    *,
    tools: Collection[str] = ("bash",),
    replacement: str | None = None,
    addition: str | None = None,
    surroundings: str | None = None,
) -> str:
    """Return the system prompt for a conversation in the directory *cwd*.

    *tools* are those that are offered: no other is named. *replacement* stands instead of our own
    words; then come the *files* and the *addition*. The *surroundings* come last: what is the same
    in all conversations is a prefix of them, which a server need read only once.
    """
    parts = [_ours(tools) if replacement is None else replacement]
    if files:
        parts.append(_PROJECT)
        parts += [f'<file path="{path}">\n{text.rstrip()}\n</file>' for path, text, _why in files]
    parts.append(addition or "")
    if replacement is None:
        parts.append(surroundings or told_surroundings(cwd))
    return valid("\n\n".join(filter(None, parts)))


def _ours(tools: Collection[str]) -> str:
    if "grep" in tools and "find" in tools:
        return _OURS.format(search=_BY_TOOLS)
    return _OURS.format(search=_BY_COMMANDS if "bash" in tools else "")


def context_files(home: Path, cwd: str) -> tuple[ContextFile, ...]:
    """Return the files with instructions for *cwd*: the home's first, the nearest last.

    Down from the root of the file system, as the peers do. Each but the home's is a regular file
    of this user's or root's, inside the project (the nearest directory with a ``.git``, else *cwd*
    itself; above it: inside its own folder) also after its links were followed: a repository may
    come from anybody, and on a shared machine anybody can put an ``AGENTS.md`` into ``/tmp``.
    """
    return tuple(file for file in _looked_at(home, cwd) if not file.why)


def left_out(home: Path, cwd: str) -> list[str]:
    """Return, for people, which files with instructions are not told to the model, and why."""
    return [
        _("{path} is left out: {why}").format(path=file.path, why=file.why)
        for file in _looked_at(home, cwd)
        if file.why
    ]


def project_root(cwd: str) -> Path | None:
    """Return the nearest directory from *cwd* upward with a ``.git``; both this user's, or root's.

    git, too, believes no other: a ``.git`` in ``/tmp`` makes nobody's directory a part of it, and a
    link is whose it is, not whose its target is.
    """
    for folder in (Path(cwd), *Path(cwd).parents):
        with suppress(OSError):
            if is_own((folder / ".git").lstat()) and is_own(folder.stat()):
                return folder
    return None


def _looked_at(home: Path, cwd: str) -> Iterator[ContextFile]:
    project = project_root(cwd) or Path(cwd)
    for folder in dict.fromkeys([home, *reversed(Path(cwd).parents), Path(cwd)]):
        within = project if project in (folder, *folder.parents) else folder
        yield from _in_folder(folder, inside=None if folder == home else within)


def _in_folder(folder: Path, inside: Path | None) -> Iterator[ContextFile]:
    """Yield the file of one folder, if it has one; one that cannot be read is said to be there."""
    for name in NAMES:
        path = folder / name
        try:
            if inside is not None:
                require_trusted(path, inside)
            yield ContextFile(path, _text(path))
        except (FileNotFoundError, NotADirectoryError):
            continue
        except NotTrustedError as error:
            if not path.is_dir():
                yield ContextFile(path, "", error.why)
            continue
        except OSError as error:
            yield ContextFile(path, f"(This file cannot be read: {reason_of(error)}.)")
        return


def _text(path: Path) -> str:
    """Return the beginning of a file; what is no UTF-8 is replaced, what is left out is named."""
    data, size = beginning(path, MOST_BYTES + 1)
    if len(data) <= MOST_BYTES:
        return data.decode("utf-8-sig", "replace")
    # A character that the cut divides is left out; it is no broken one.
    whole = data[:MOST_BYTES].decode("utf-8-sig", "replace").rstrip("\N{REPLACEMENT CHARACTER}")
    return f"{whole}\n(Only the first {MOST_BYTES:,} of {size:,} bytes stand here: read the rest.)"


# -- where the conversation works ----------------------------------------------------------------

# As it was when it began: told once, the same for ever. What changes while it works (the day, the
# branch) would change the beginning of every later request, and a server would read it all again.


def told_surroundings(cwd: str, began: str = "unknown") -> str:
    """Return what the model is told of *cwd*, of this machine, and of when it *began*."""
    system = " ".join(filter(None, (platform.system(), platform.machine()))) or "unknown"
    return _SURROUNDINGS.format(cwd=cwd, system=system, began=began)


def surroundings(cwd: str, conversation: Conversation, root: Path | None) -> str:
    """Return what is told of *conversation*, which works in *cwd*, in a repository at *root*."""
    recorded = _TOLD.search(
        "" if conversation.instructions is None else conversation.instructions.system
    )
    if recorded is not None and recorded[1] == valid(cwd):
        return recorded[0]
    branch = "no git repository" if root is None else f"git {_head(root) or 'at no known commit'}"
    return told_surroundings(cwd, f"{conversation.created_on:%Y-%m-%d}, {branch}")


def _head(root: Path) -> str | None:
    """Return the branch, or else the commit, of the repository at *root*.

    Read from its files: ``git status`` runs programs that a repository's configuration names, and
    a repository may come from anybody. Nothing but a name is taken from them.
    """
    if (folder := _line(root / ".git")) is not None:  # a worktree
        head = _line(root / folder.removeprefix("gitdir: ") / "HEAD")
    else:
        head = _line(root / ".git" / "HEAD")
    match = _HEAD.fullmatch(head or "")
    if match is None:
        return None
    return f"branch {match[1]}" if match[1] else f"commit {match[2]}"


def _line(path: Path) -> str | None:
    try:
        return beginning(path, _LONGEST_LINE)[0].decode(errors="replace").rstrip("\n")
    except (OSError, ValueError):
        return None
