"""Where a conversation works, as it was when it began: told once, the same for ever.

What changes while it works (the day, the branch) would change the beginning of every later request,
and a server would have to read all of it again.
"""

from __future__ import annotations

import platform
import re
from typing import TYPE_CHECKING

from domain.text import valid
from infrastructure.safe_files import beginning

if TYPE_CHECKING:
    from pathlib import Path

    from domain.conversation import Conversation

_SURROUNDINGS = """\
<surroundings>
Directory: {cwd}
System: {system}
When this conversation began: {began}
</surroundings>"""

_TOLD = re.compile(r"<surroundings>\nDirectory: (.*)\n(?:.*\n)+</surroundings>\Z")
_HEAD = re.compile(r"ref: refs/heads/([\w./@+-]+)|([0-9a-f]{12})[0-9a-f]{28,52}")
_LONGEST = 1_000


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
        return beginning(path, _LONGEST)[0].decode(errors="replace").rstrip("\n")
    except (OSError, ValueError):
        return None
