"""The files of a folder as git sees them: what ``.gitignore`` leaves out is left out.

Names alone are looked at: no link is followed, nothing is opened but ``.gitignore`` files.
"""

from __future__ import annotations

import os
import re
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Final

from infrastructure.errors import ToolError
from infrastructure.tools.files import open_regular

if TYPE_CHECKING:
    from collections.abc import Iterator

    from pathspec import GitIgnoreSpec

_STARS = re.compile(r"\*+")
_FIXED = re.compile(r"\[[^\]/]+\]|.", re.DOTALL)
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
    rules = _Rules.above(start)
    pending = [("", rules)]
    while pending:
        folder, rules = pending.pop()
        rules = rules.of(start / folder, folder)
        inner = []
        for entry in _entries(start / folder):
            name = f"{folder}{entry.name}"
            is_folder = entry.is_dir(follow_symlinks=False)
            if entry.name == ".git" or rules.ignore(name, is_folder=is_folder):
                continue
            yield Found(name, is_folder, entry.is_file(follow_symlinks=False))
            if is_folder:
                inner.append((f"{name}/", rules))
        pending += reversed(inner)


def _entries(folder: Path) -> list[os.DirEntry[str]]:
    with suppress(OSError), os.scandir(folder) as entries:
        return sorted(entries, key=lambda entry: entry.name)
    return []


@dataclass(frozen=True, slots=True)
class _Rules:
    """What is ignored, the farthest rules first: each with the folder that it counts from.

    A folder is told as the path to it from where the walk began, or, if it lies above, as the path
    from it to there, after ``^``.
    """

    specs: tuple[tuple[str, GitIgnoreSpec], ...] = ()

    @classmethod
    def above(cls, start: Path) -> _Rules:
        """Return the rules of the repository around *start*; none if it is ignored itself."""
        start = Path(os.path.realpath(start))
        root = next((p for p in (start, *start.parents) if (p / ".git").exists()), None)
        if root is None:
            return cls()
        rules = cls().with_file(root / ".git" / "info" / "exclude", _from(root, start))
        for folder in reversed([p for p in start.parents if p.is_relative_to(root)]):
            rules = rules.with_file(folder / ".gitignore", _from(folder, start))
        return cls() if rules.ignore("", is_folder=True) else rules

    def of(self, folder: Path, name: str) -> _Rules:
        """Return these rules and those of a folder on the way."""
        return self.with_file(folder / ".gitignore", name)

    def with_file(self, path: Path, base: str) -> _Rules:
        from pathspec import GitIgnoreSpec  # noqa: PLC0415 - only where files are looked for

        try:
            with open_regular(path) as file:
                lines = file.read(_MOST_RULES).decode("utf-8-sig", "replace").splitlines()
            return _Rules((*self.specs, (base, GitIgnoreSpec.from_lines(lines))))
        except (OSError, ToolError, ValueError):
            return self

    def ignore(self, name: str, *, is_folder: bool) -> bool:
        """Tell whether git ignores *name*: the nearest rule that says something counts."""
        for base, spec in reversed(self.specs):
            inside = f"{base[1:]}{name}" if base.startswith("^") else name[len(base) :]
            if not inside:
                continue
            path = inside if not is_folder or inside.endswith("/") else f"{inside}/"
            said = spec.check_file(path).include
            if said is not None:
                return said
        return False


def _from(folder: Path, start: Path) -> str:
    inside = start.relative_to(folder).as_posix()
    return "^" if inside == "." else f"^{inside}/"


def glob(pattern: str) -> re.Pattern[str]:
    """Return what matches the names, or with a ``/`` the paths, that *pattern* means.

    ``*`` and ``?`` stop at a ``/``, ``**`` does not; ``[ab]`` and ``{a,b}`` are choices.

    Raises:
        re.error: It is none, or so long that matching it might not end.
    """
    if (
        max(pattern.count("**"), pattern.count("{")) > _MOST_WALKS
        or pattern.count(",") > _MOST_CHOICES
    ):
        raise re.error("too many choices")
    patterns = _alternatives(pattern.removeprefix("./"))
    anywhere = "" if "/" in pattern else "(?:.*/)?"
    return re.compile("|".join(f"{anywhere}{_path(one)}" for one in patterns), re.DOTALL)


def _alternatives(pattern: str) -> list[str]:
    choice = re.search(r"\{([^{}]*)\}", pattern)
    if choice is None:
        return [pattern]
    before, after = pattern[: choice.start()], pattern[choice.end() :]
    return [whole for one in choice[1].split(",") for whole in _alternatives(before + one + after)]


def _path(pattern: str) -> str:
    *folders, last = pattern.removeprefix("/").split("/")
    whole = "".join("(?:.*/)?" if one == "**" else f"{_segment(one)}/" for one in folders)
    return whole + (".*" if last == "**" else _segment(last))


def _segment(pattern: str) -> str:
    """Return one part of a path; each star takes as little as it can, and never tries again."""
    first, *others = ("".join(map(_fixed, _FIXED.findall(part))) for part in _STARS.split(pattern))
    if not others:
        return first
    middle = "".join(f"(?>[^/]*?{part})" for part in others[:-1])
    return f"{first}{middle}[^/]*{others[-1]}"


def _fixed(part: str) -> str:
    if part == "?":
        return "[^/]"
    if len(part) == 1:
        return re.escape(part)
    inside = part[1:-1].replace("\\", r"\\")
    return f"[^{inside[1:]}]" if inside[0] in "!^" and inside[1:] else f"[{inside}]"
