"""Frames of progress bars and spinners that nobody sees any more, taken out before they are drawn.

Fifty megabytes of them are millions of frames, of which one is left. Each rule here takes out what
is written over, or erased, further on in the very same line; to draw the rest gives the same.
"""

from __future__ import annotations

import re
from typing import Final

_NARROW: Final = r"[\u0020-\u007e\u2500-\u25fc\u2800-\u28ff]"
"""Characters of one cell, as spinners are made of: letters, box drawing, blocks, braille."""
_SPUN: Final = re.compile(rf"(?:{_NARROW}\x08)+({_NARROW}\x08)(?={_NARROW})")
_RETURNS: Final = re.compile(r"\r\r+")
_CLEARS: Final = ("\r\x1b[2K", "\x1b[2K\r")
_ERASURES: Final = ("\x1b[K", "\x1b[0K", "\x1b[1K", "\x1b[2K")


def without_covered(text: str) -> str:
    """Return *text*, the output of a program, without what it covers on the same line itself."""
    text = text.replace("\x1b[1G", "\r").replace("\x1b[G", "\r")
    if "\r" in text:
        text = _RETURNS.sub("\r", text)
        text = "\n".join(_line(line) if "\r" in line else line for line in text.split("\n"))
    if "\x08" in text and "\x1b" not in text:
        text = _SPUN.sub(r"\1", text)
    return text


def _line(line: str) -> str:
    last = _last_clear(line)
    before = line[:last]
    if last > 0 and before.count("\x1b") == sum(map(before.count, _ERASURES)):  # it left no line
        line = line[last:]
    return line if "\x1b" in line or "\x08" in line else _frames(line)


def _last_clear(line: str) -> int:
    """Return where in *line* the last frame begins that leaves nothing of those before; or -1."""
    end = max(line.rfind("\x1b[K"), line.rfind("\x1b[0K"))
    begin = line.rfind("\r", 0, end) if end >= 0 else -1
    if begin >= 0 and ("\x1b" in line[begin:end] or "\x08" in line[begin:end]):
        begin = -1
    return max(begin, *map(line.rfind, _CLEARS))


def _frames(line: str) -> str:
    """Return a *line* that goes back and moves no other way, without what later frames cover."""
    first, *frames = line.split("\r")
    if len(frames) <= 1:
        return line
    kept = frames[-1:]
    most = cells(kept[0])
    for frame in dict.fromkeys(reversed(frames[:-1])):
        if 2 * len(frame) > most and ((width := cells(frame)) > most or not most):
            kept.append(frame)
            most = width
    return "\r".join([first, *reversed(kept)])


def cells(text: str) -> int:
    """Return how many cells of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    from wcwidth import width  # noqa: PLC0415 - not on the way to the prompt

    return width(text, control_codes="ignore")
