"""Text in which nothing is unseen: what a person reads before they let a tool act.

`plain` keeps the terminal from obeying; here, beyond that, every character that leaves no mark on
the screen is shown as its code, and blanks that push something out of sight are counted instead.
"""

from __future__ import annotations

import re
from itertools import groupby

from app.i18n import _
from app.view.plain import plain

MOST_BLANKS = 32
"""How many blanks in a row, and `MOST_BLANK_LINES` lines, are still shown as they are."""
MOST_BLANK_LINES = 3

_RUN = re.compile(rf"[ \t]{{{MOST_BLANKS + 1},}}")
_TAB, _TRAILING = "⇥   ", "·"
_UNSEEN_THOUGH_PRINTABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u2800\u3164\ufe00-\ufe0f\uffa0"
    "\U0001d159\U000e0100-\U000e01ef]"
    "|(?<![^\\W\\d_])(?<![\u0300-\u036f])[\u0300-\u036f\u0483-\u0489\u20d0-\u20f0]"  # on no letter
)


def visible(line: str) -> str:
    """Return *line* (no line feed in it) with every character visible, blanks folded and counted.

    Whatever Python does not count as printable is shown as its code: controls, bidi and zero-width
    characters, tags, private and unassigned ones, and all blanks but the space.
    """
    line = _marked_at_the_end(plain(line))
    line = _RUN.sub(_counted, line).replace("\t", _TAB)
    if line.isascii():
        return line
    line = _UNSEEN_THOUGH_PRINTABLE.sub(lambda match: _code(match[0]), line)
    if line.isprintable():
        return line
    return "".join(each if each.isprintable() else _code(each) for each in line)


def visible_lines(text: str) -> list[str]:
    """Return the lines of *text*, visible; many blank ones in a row are one that counts them."""
    lines: list[str] = []
    for blank, group in groupby(text.split("\n"), is_blank):
        several = list(group)
        if blank and len(several) > MOST_BLANK_LINES:
            lines.append(blank_lines(len(several)))
        else:
            lines += map(visible, several)
    return lines


def is_blank(line: str) -> bool:
    """Whether nothing stands in *line* but blanks, of those that `visible` does not show."""
    return not line.strip(" \t\n")


def blank_lines(count: int) -> str:
    """Return the line that stands for *count* blank ones."""
    return _("⟨{count:,} blank lines⟩").format(count=count)


def _marked_at_the_end(line: str) -> str:
    """Show blanks at the end of *line*, as far as they are not counted."""
    text = line.rstrip(" \t")
    blanks = line[len(text) :]
    return line if len(blanks) > MOST_BLANKS else text + blanks.replace(" ", _TRAILING)


def _counted(match: re.Match[str]) -> str:
    return _("⟨{count:,} blanks⟩").format(count=len(match[0]))


def _code(character: str) -> str:
    code = ord(character)
    return f"\\u{code:04x}" if code <= 0xFFFF else f"\\U{code:08x}"  # noqa: PLR2004
