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
_ERASURE: Final = re.compile(r"\x1b\[[012]?K")
_CLEARING: Final = re.compile(r"[^\x1b\x08]*\x1b\[[02]?K")


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
    """Return a *line* that goes back without what later frames clear or, to the end, cover."""
    first, *frames = line.split("\r")
    last = next((n for n in reversed(range(len(frames))) if _CLEARING.match(frames[n])), 0)
    if last and "\x1b" not in _ERASURE.sub("", "".join([first, *frames[:last]])):  # left no line
        first, frames = "", frames[last:]
    if any("\x1b" in frame or "\x08" in frame for frame in (first, *frames)):
        return "\r".join([first, *frames])
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
