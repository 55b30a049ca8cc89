"""Where the text of an edit stands in a file: exactly, or else but for what nobody sees.

Models write straight quotes, plain blanks and composed letters whatever a file has. A text that
differs only so is taken if it is unique; the file's own characters stay wherever the edit leaves
them as they were.
"""

from __future__ import annotations

import difflib
import unicodedata
from bisect import bisect_left
from typing import TYPE_CHECKING, Final, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

_LOOKALIKES: Final = str.maketrans(
    dict.fromkeys("‘’‚‛′", "'")
    | dict.fromkeys("“”„‟″", '"')
    | dict.fromkeys("‐‑‒–—―−", "-")
    | dict.fromkeys("\u00a0\u1680\u2000\u2001\u2002\u2003\u2004\u2005\u2006\u2007\u2008\u2009"
                    "\u200a\u202f\u205f\u3000", " ")
)  # fmt: skip
_LARGEST: Final = 2_000_000
"""Characters of a file in which lookalikes are still looked for."""
_COMPARED: Final = 20_000
_MATCHES_NAMED: Final = 10
_DIFFERENCES_NAMED: Final = 5
_LINE: Final = 160


class Match(NamedTuple):
    """Where a text stands, what takes its place, and how the file's text differs from it."""

    start: int
    end: int
    new: str
    remark: str = ""


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
    if len(text) <= _LARGEST and (alike := _Folded.of(text).find(_Folded.of(old))):
        if len(alike) == 1:
            return alike[0].with_new(old, new)
        raise NoMatchError(
            f"old_text was not found. But for quotes, dashes, blanks and accents it is like "
            f"{len(alike)} places ({_at_lines(text, [one.start for one in alike])}); include more "
            f"of the text around the one you mean, and copy it exactly."
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


class _Folded(NamedTuple):
    """A text without what nobody sees; *places* says where each character of it comes from."""

    text: str
    original: str
    places: list[int]

    @classmethod
    def of(cls, original: str) -> _Folded:
        folded: list[str] = []
        places: list[int] = []
        for place, character in enumerate(original.translate(_LOOKALIKES)):
            if character == "\n":  # blanks at the end of a line
                while folded and folded[-1] in " \t":
                    folded.pop()
                    places.pop()
            plain = character.isascii()
            for part in character if plain else unicodedata.normalize("NFD", character):
                folded.append(part)
                places.append(place)
        return cls("".join(folded), original, places)

    def find(self, old: _Folded) -> list[_Alike]:
        """Return where *old* stands in this text, whole characters only."""
        wanted = old.text
        if not wanted.strip():
            return []
        found = [_Alike(self, old, start) for start in _occurrences(self.text, wanted)]
        return [alike for alike in found if alike.is_whole]


class _Alike(NamedTuple):
    """A place where a text stands but for what nobody sees; *at* counts folded characters."""

    text: _Folded
    old: _Folded
    at: int

    @property
    def start(self) -> int:
        return self.text.places[self.at]

    @property
    def end(self) -> int:
        return self.text.places[self.at + len(self.old.text) - 1] + 1

    @property
    def is_whole(self) -> bool:
        places, last = self.text.places, self.at + len(self.old.text)
        if self.at and places[self.at - 1] == places[self.at]:
            return False
        if last == len(places):
            return True
        cut = places[last] == places[last - 1]
        return not cut and not unicodedata.combining(self.text.text[last])

    def with_new(self, old: str, new: str) -> Match:
        """Return the match; what *new* leaves of *old* keeps the characters of the file."""
        if len(old) + len(new) <= _COMPARED:
            changes = difflib.SequenceMatcher(None, old, new, autojunk=False).get_opcodes()
            new = "".join(
                self.text.original[self._place(i1) : self._place(i2)] if tag == "equal"
                else new[j1:j2]
                for tag, i1, i2, j1, j2 in changes
            )  # fmt: skip
        return Match(self.start, self.end, new, self._remark())

    def _place(self, index: int) -> int:
        """Return where in the file the character *index* of the old text stands."""
        folded = bisect_left(self.old.places, index)
        return self.end if folded == len(self.old.places) else self.text.places[self.at + folded]

    def _remark(self) -> str:
        line = self.text.original.count("\n", 0, self.start) + 1
        told: dict[tuple[str, str], str] = {}
        for folded, place in enumerate(self.old.places):
            here = self.text.original[self.text.places[self.at + folded]]
            given = self.old.original[place]
            if here != given and (here, given) not in told:
                told[here, given] = (
                    f"line {line} has {_named(here)} where you wrote {_named(given)}"
                )
            line += here == "\n"
        differences = list(told.values())[:_DIFFERENCES_NAMED] or ["blanks at the end of a line"]
        return f"it differs from your old_text: {'; '.join(differences)}"


def _named(character: str) -> str:
    return f"{character!r} (U+{ord(character):04X})"


def _nearest(text: str, old: str) -> str:
    """Say where the file is most like *old*, and which line differs there first."""
    wanted = old.strip("\n").split("\n")
    first = wanted[0].strip()
    lines = text.split("\n")
    starts = [i for i, line in enumerate(lines) if first and line.strip() == first]
    if not starts:
        return ""
    start = max(starts[:1000], key=lambda start: _alike_lines(lines, start, wanted))
    number = _alike_lines(lines, start, wanted)
    if number == len(wanted) or start + number >= len(lines):
        return f" Its first line is like line {start + 1}; compare what is around it."
    here, given = lines[start + number][:_LINE], wanted[number][:_LINE]
    return (
        f" Its first line is like line {start + 1}; compare the whitespace and the words: line "
        f"{start + number + 1} of the file is {here!r}, and you wrote {given!r}."
    )


def _alike_lines(lines: Sequence[str], start: int, wanted: Sequence[str]) -> int:
    pairs = zip(lines[start:], wanted, strict=False)
    return next(
        (i for i, (here, given) in enumerate(pairs) if here != given),
        min(len(wanted), len(lines) - start),
    )
