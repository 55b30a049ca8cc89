"""Where the text of an edit stands in a file: exactly, or else but for what nobody sees.

Models write straight quotes, plain blanks and composed letters whatever a file has. A text that
differs only so is taken if it is unique; the file's own characters stay wherever the edit leaves
them as they were.
"""

from __future__ import annotations

import difflib
import re
from itertools import pairwise, takewhile
from operator import eq
from typing import TYPE_CHECKING, Final, NamedTuple
from unicodedata import combining, normalize

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator, Sequence

_SPACES: Final = " \u00a0\u1680\u202f\u205f\u3000" + "".join(map(chr, range(0x2000, 0x200B)))
_BLANKS: Final = f"{_SPACES}\t"
_TRAILING: Final = f"[{_BLANKS}]*"
_LOOKALIKES: Final = {"\n": rf"{_TRAILING}\n"} | {
    one: f"[{re.escape(alike)}]"
    for alike in ("'‘’‚‛′", '"“”„‟″', "-‐‑‒–—―−", _SPACES)
    for one in alike
}
"""What looks like a character, as a regular expression; a line may end in blanks."""
_LARGEST: Final = 2_000_000
"""Characters of a file in which lookalikes are still looked for."""
_COMPARED: Final = 20_000
_MATCHES_NAMED: Final = 10
_DIFFERENCES_NAMED: Final = 5
_LINE: Final = 160


class Match(NamedTuple):
    """Where a text stands, what takes its place, and how the file's text differs from it.

    *number* tells one edit of several from the others.
    """

    start: int
    end: int
    new: str
    remark: str = ""
    number: int = 0


class NoMatchError(Exception):
    """A text is not there, or more than once; the message says which, and how it differs."""


def match(text: str, old: str, new: str) -> Match:
    """Return the one place of *old* in *text*, and what *new* puts there.

    Raises:
        NoMatchError: There is none, or more than one.
    """
    starts = list(_occurrences(text, old))
    if len(starts) == 1:
        return Match(starts[0], starts[0] + len(old), new)
    if starts:
        raise NoMatchError(
            f"old_text occurs {len(starts)} times ({_at_lines(text, starts)}); include more of "
            "the text around the one you mean."
        )
    wanted = _letters(old)
    patterns = _patterns(wanted)
    alike = _places_alike(text, patterns) if old.strip() and len(text) <= _LARGEST else []
    if len(alike) == 1:
        return _adapted(text, alike[0], patterns, wanted, new)
    if alike:
        raise NoMatchError(
            f"old_text was not found. But for quotes, dashes, blanks and accents it is like "
            f"{len(alike)} places ({_at_lines(text, alike)}); include more of the text around the "
            f"one you mean, and copy it exactly."
        )
    hint = _nearest(text, old)
    raise NoMatchError(f"old_text was not found.{hint} Read the file again and copy it exactly.")


def _occurrences(text: str, old: str) -> Iterator[int]:
    start = text.find(old)
    while start >= 0:
        yield start
        start = text.find(old, start + 1)


def _at_lines(text: str, starts: Sequence[int]) -> str:
    lines = [str(text.count("\n", 0, start) + 1) for start in starts[:_MATCHES_NAMED]]
    return f"at lines {', '.join(lines)}{', …' if len(starts) > _MATCHES_NAMED else ''}"


def _letters(text: str) -> list[str]:
    """Return *text* in pieces: each character with the accents that belong to it."""
    from wcwidth import iter_graphemes  # noqa: PLC0415 - few edits need it

    return list(iter_graphemes(text))


def _patterns(letters: Sequence[str]) -> list[str]:
    """Return a regular expression for each of *letters*: all that looks like it."""
    patterns: list[str] = []
    ends_line = False
    for letter in reversed(letters):
        ends_line = letter == "\n" or (ends_line and letter in _BLANKS)
        is_unseen = ends_line and letter != "\n"
        forms = {letter, normalize("NFC", letter), normalize("NFD", letter)}
        alike = _LOOKALIKES.get(letter) or f"(?:{'|'.join(map(re.escape, forms))})"
        patterns.append("" if is_unseen else alike)
    return patterns[::-1]


def _places_alike(text: str, patterns: Iterable[str]) -> list[int]:
    """Return where *patterns* stand in *text* one after the other, whole letters only."""
    wanted = re.compile(f"(?=({''.join(patterns).removeprefix(_TRAILING)}))")
    return [
        found.start()
        for found in wanted.finditer(text)
        if not combining(text[found.end(1) : found.end(1) + 1] or " ")
    ]


def _adapted(
    text: str, start: int, patterns: Iterable[str], wanted: Sequence[str], new: str
) -> Match:
    """Return the match at *start*; what *new* leaves as *wanted* keeps the file's characters."""
    places = [start]
    for pattern in patterns:
        found = re.compile(pattern).match(text, places[-1])
        assert found is not None
        places.append(found.end())
    letters = _letters(new)
    if len(wanted) + len(letters) <= _COMPARED:
        changes = difflib.SequenceMatcher(None, wanted, letters, autojunk=False).get_opcodes()
        new = "".join(
            text[places[i1] : places[i2]] if tag == "equal" else "".join(letters[j1:j2])
            for tag, i1, i2, j1, j2 in changes
        )
    here = [text[place:end] for place, end in pairwise(places)]
    return Match(start, places[-1], new, _remark(here, wanted, text.count("\n", 0, start) + 1))


def _remark(here: Iterable[str], wanted: Iterable[str], line: int) -> str:
    """Say how the letters that are *here*, from *line* on, differ from those *wanted*."""
    told: dict[tuple[str, str], str] = {}
    for letter, given in zip(here, wanted, strict=True):
        if letter not in (given, "") and given != "\n" and (letter, given) not in told:
            told[letter, given] = (
                f"line {line} has {_named(letter)} where you wrote {_named(given)}"
            )
        line += letter.count("\n")
    differences = list(told.values())[:_DIFFERENCES_NAMED] or ["blanks at the end of a line"]
    return f"it differs from your old_text: {'; '.join(differences)}"


def _named(letter: str) -> str:
    return f"{letter!r} ({' '.join(f'U+{ord(character):04X}' for character in letter)})"


def _nearest(text: str, old: str) -> str:
    """Say where the file is most like *old*, and which line differs there first."""
    wanted = old.strip("\n").split("\n")
    first = wanted[0].strip()
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if first and line.strip() == first]
    if not starts:
        return ""

    def alike(start: int) -> int:
        return sum(takewhile(bool, map(eq, lines[start:], wanted)))

    start = max(starts[:1000], key=alike)
    number = alike(start)
    if number == len(wanted) or start + number >= len(lines):
        return f" Its first line is like line {start + 1}; compare what is around it."
    here, given = lines[start + number][:_LINE], wanted[number][:_LINE]
    return (
        f" Its first line is like line {start + 1}; compare the whitespace and the words: line "
        f"{start + number + 1} of the file is {here!r}, and you wrote {given!r}."
    )
