"""The one gate between other people's text and the terminal.

Nothing of a log, a tool or a model reaches a terminal but through `plain`: no escape sequence
moves the cursor, sets a title or hides what a command does, and no bidi override reorders it.
"""

from __future__ import annotations

import re
from unicodedata import combining, east_asian_width

import click

from domain.text import valid

_CONTROL_PICTURES = 0x2400
_DELETE_PICTURE = "\u2421"
_C0 = [code for code in range(0x20) if chr(code) not in "\n\t"]
_SHOWN_BY_CODE = [
    *range(0x80, 0xA0),  # C1: what 8-bit terminals take for escape sequences
    0x2028,
    0x2029,  # line and paragraph separator
    *range(0x202A, 0x202F),  # bidi embeddings and overrides
    *range(0x2066, 0x206A),  # bidi isolates
]

_VISIBLE: dict[int, str] = {
    **{code: chr(_CONTROL_PICTURES + code) for code in _C0},
    0x7F: _DELETE_PICTURE,
    **{code: f"\\x{code:02x}" if code < 0x100 else f"\\u{code:04x}" for code in _SHOWN_BY_CODE},  # noqa: PLR2004
}
_HIDDEN = re.compile("[" + "".join(re.escape(chr(code)) for code in _VISIBLE) + "]")


def plain(text: str) -> str:
    r"""Return *text* with everything that a terminal would obey made visible.

    Line feeds and tabs stay, and ``\r\n`` is a line feed; all other control characters become
    their pictures (``␛``) or codes (``\x9b``). Idempotent.
    """
    text = valid(text).replace("\r\n", "\n")
    return text.translate(_VISIBLE) if _HIDDEN.search(text) else text


def complain(message: str) -> None:
    """Say on stderr what is wrong, or what somebody should know: nothing in it is obeyed."""
    click.echo(f"leftfold: {plain(message)}", err=True)


def fitted(text: str, width: int) -> str:
    """Return *text*, one plain line, cut to *width* cells of the screen; then it ends in ``…``."""
    if text.isascii():
        return text if len(text) <= width else f"{text[: width - 1]}…"
    place = fits = 0  # where the cells end, and how many characters fit beside the ellipsis
    for number, character in enumerate(text):
        place += _cells(character)
        if place > width:
            return f"{text[:fits]}…"
        if place < width:
            fits = number + 1
    return text


def cells(text: str) -> int:
    """Return how many cells of the screen *text*, one plain line, takes."""
    return len(text) if text.isascii() else sum(map(_cells, text))


def _cells(character: str) -> int:
    if combining(character):
        return 0
    return 2 if east_asian_width(character) in "WF" else 1


def one_line(text: str, width: int) -> str:
    """Return *text* made plain, on one line of at most *width* characters."""
    line = " ".join(plain(text).split())
    return line if len(line) <= width else f"{line[: width - 1]}…"
