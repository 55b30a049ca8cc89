"""The files of a folder as git sees them: what ``.gitignore`` leaves out is left out.

Names alone are looked at: no link is followed, nothing is opened but ``.gitignore`` files.
"""

from __future__ import annotations

import fnmatch
import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infrastructure.errors import ToolError
from infrastructure.tools.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from pathspec import GitIgnoreSpec

    _Rules = tuple[tuple[str, GitIgnoreSpec], ...]
    """What is ignored, the farthest rules first: each with the folder that it counts from."""

_MOST_CHOICES: Final = 64
_MOST_WALKS: Final = 4
_MOST_RULES: Final = 1_000_000
"""Bytes of a ``.gitignore``; what comes after them is not looked at."""


@dataclass(frozen=True, slots=True)
class Found:
    """A file or a folder, and its path from where the walk began."""

    name: str
    is_folder: bool
    is_regular: bool


def walk(start: Path) -> Iterator[Found]:
    """Yield what is in *start*, sorted, each folder before what is in it; never ``.git`` itself.

    Hidden files are files. A folder that cannot be read is empty.
    """
    way, rules = _way_to(start)
    pending = [("", rules)]
    while pending:
        folder, rules = pending.pop()
        rules = _with_file(rules, start / folder / ".gitignore", f"{way}{folder}")
        inner = []
        for entry in _entries(start / folder):
            name = f"{folder}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            path = f"{way}{name}/" if is_folder else f"{way}{name}"
            if entry.name == ".git" or _is_ignored(path, rules):
                continue
            yield Found(name, is_folder, entry.is_file(follow_symlinks=False))
            if is_folder:
                inner.append((f"{name}/", rules))
        pending += reversed(inner)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


def _way_to(start: Path) -> tuple[str, _Rules]:
    """Return the way to *start* from the root of its repository, and the rules on that way.

    Without a repository there are none, nor if *start* is ignored itself.
    """
    start = Path(os.path.realpath(start))
    root = next((p for p in (start, *start.parents) if (p / ".git").exists()), None)
    if root is None:
        return "", ()
    rules = _with_file((), root / ".git" / "info" / "exclude", "")
    way = ""
    for part in start.relative_to(root).parts:
        rules = _with_file(rules, root / way / ".gitignore", way)
        way = f"{way}{part}/"
    return way, () if way and _is_ignored(way, rules) else rules


def _with_file(rules: _Rules, path: Path, base: str) -> _Rules:
    """Return *rules* and those of the file *path*, which count from the folder *base*."""
    from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only where files are looked for

    try:
        with open_regular(path) as file:
            lines = file.read(_MOST_RULES).decode("utf-8-sig", "replace").splitlines()
        return (*rules, (base, GitIgnoreSpec.from_lines(lines)))
    except (OSError, ToolError, ValueError):
        return rules


def _is_ignored(path: str, rules: _Rules) -> bool:
    """Tell whether git ignores *path*: the nearest rule that says something counts."""
    for base, spec in reversed(rules):
        said = spec.check_file(path[len(base) :]).include
        if said is not None:
            return said
    return False


def glob(pattern: str) -> Callable[[str], bool]:
    """Return what tells the names, or with a ``/`` the paths, that *pattern* means.

    ``*`` and ``?`` stop at a ``/``, ``**`` does not; ``[ab]`` and ``{a,b}`` are choices.

    Raises:
        re.error: It is none, or so long that matching it might not end.
    """
    if (
        max(pattern.count("**"), pattern.count("{")) > _MOST_WALKS
        or pattern.count(",") > _MOST_CHOICES
    ):
        raise re.error("too many choices")
    anywhere = "" if "/" in pattern else "**/"
    choices = [
        [None if part == "**" else _part(part) for part in f"{anywhere}{one}".split("/")]
        for one in _alternatives(pattern.removeprefix("./").removeprefix("/"))
    ]
    return lambda path: any(_matches(path.split("/"), parts) for parts in choices)


def _alternatives(pattern: str) -> list[str]:
    choice = re.search(r"\{([^{}]*)\}", pattern)
    if choice is None:
        return [pattern]
    before, after = pattern[: choice.start()], pattern[choice.end() :]
    return [whole for one in choice[1].split(",") for whole in _alternatives(before + one + after)]


def _part(pattern: str) -> re.Pattern[str]:
    translated = fnmatch.translate(pattern.replace("[^", "[!"))
    if "(?!)" in translated:
        raise re.error("a range is the wrong way round")
    return re.compile(translated)


def _matches(names: list[str], parts: list[re.Pattern[str] | None]) -> bool:
    """Tell whether *names* are what *parts* mean, one by one; None is any number of them."""
    if not parts or not names:
        return not parts and not names
    first, *others = parts
    if first is None:
        return not others or any(_matches(names[at:], others) for at in range(len(names)))
    return first.match(names[0]) is not None and _matches(names[1:], others)
