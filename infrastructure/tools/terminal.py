"""What a terminal would show of an output: lines as they ended, not how they came to be (R15).

Progress bars write over themselves; colours, titles and links decorate. A model that is told all of
that pays for frames which no person would see. Lines are as long as they are; the newest hundred
can still be written over.
"""

from __future__ import annotations

import re
from bisect import bisect_right
from itertools import islice
from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping

_ROWS: Final = 100
"""How many lines can still be changed."""
_SCREEN: Final = 24
"""How many of them are on the screen, for who counts from its top: what has no terminal says so."""
_WIDEST: Final = 4_000
"""How far to the right the cursor is moved; text itself goes on for ever."""
_LONGEST_SEQUENCE: Final = 4_096
_LONGEST_LINE: Final = 8_192
"""A longer line is settled as it stands: to write over it would cost more than it is worth."""

_STRING = r"\x1b[PX\]^_][^\x07\x1b]*(?:\x07|\x1b\\)"  # titles, links and other strings
_DECORATION = re.compile(
    rf"{_STRING}|\x1b\[[0-9;:]*m|\x1b\[\?[0-9;]*[hl]|\x1b[()*+][0-9A-Za-z]|[\x00-\x07\x0e-\x1a\x1c-\x1f\x7f]"
)
_SPECIAL = re.compile(r"[\x00-\x08\x0d-\x1f\x7f]")
_MOVES = re.compile(r"[\r\x08\x1b]")
_TOKEN = re.compile(r"([^\n\r\x08\x1b]+|\n|\r|\x08+|\x1b(?:\[([0-?]*)[ -/]*([@-~])|[ -/]*[0-~])?)")
_SAME: Final = {"\x1b7": "\x1b[s", "\x1b8": "\x1b[u", "\x1bM": "\x1b[A"}
_UNFINISHED = re.compile(r"\x1b(?:\[[0-?]*[ -/]*|[PX\]^_][^\x07\x1b]*\x1b?|[()*+ -/]*)?$")


_NARROW: Final = r"[\u0020-\u007e\u2500-\u25fc\u2800-\u28ff]"
"""Characters of one cell, as spinners are made of: letters, box drawing, blocks, braille."""
_SPUN: Final = re.compile(rf"(?:{_NARROW}\x08)+({_NARROW}\x08)(?={_NARROW})")
_RETURNS: Final = re.compile(r"\r\r+")
_ERASURE: Final = re.compile(r"\x1b\[[012]?K")
_CLEARING: Final = re.compile(r"[^\x1b\x08]*\x1b\[[02]?K")


def shown(text: str) -> str:
    """Return what a terminal would show of *text* alone."""
    if not _SPECIAL.search(text):
        return text
    terminal = Terminal()
    return terminal.feed(text) + terminal.rest()


class Terminal:
    """Takes text in pieces and gives the lines that are settled, in order."""

    def __init__(self) -> None:
        self._held = ""  # a sequence whose end has not come
        self._lines = [""]
        self._row = 0
        self._column: int | None = None  # None: at the end of the line
        self._saved = (0, 0)
        self._is_overwritten = False

    def feed(self, text: str) -> str:
        """Take *text*; return the lines that nothing can change any more."""
        at_end = self._row == len(self._lines) - 1 and self._column is None
        at_end = at_end and not self._is_overwritten  # else its end decides on its blanks
        if at_end and not self._held and not _SPECIAL.search(text):
            return self._append(text) + self._settled()
        text = self._held + text
        self._held = ""
        if "\x1b" in text[-_LONGEST_SEQUENCE:] and (end := _UNFINISHED.search(text)):
            text, self._held = text[: end.start()], text[end.start() :]
        text = _DECORATION.sub("", text).replace("\r\n", "\n")
        for short, sequence in _SAME.items():
            text = text.replace(short, sequence)
        if text.endswith("\r"):  # perhaps a newline follows
            text, self._held = text[:-1], "\r" + self._held
        if at_end and not _MOVES.search(text):
            return self._append(text) + self._settled()
        self._play(_without_covered(text))
        return self._settled()

    def rest(self) -> str:
        """Return what is left when nothing more comes."""
        self._end_line()
        lines, self._lines = self._lines, [""]
        self._row, self._column = 0, None
        return "\n".join(lines)

    def _append(self, text: str) -> str:
        """Take *text* that moves nothing, at the end; most of it is settled at once."""
        first, *others = text.rsplit("\n", _ROWS)
        before = ""
        if len(others) == _ROWS:
            before = "\n".join([*self._lines[:-1], self._lines[-1] + first, ""])
            self._lines = others
        else:
            self._lines[-1] += first
            self._lines += others
        self._row = len(self._lines) - 1
        return before

    def _settled(self) -> str:
        if len(self._lines[-1]) > _LONGEST_LINE and self._row == len(self._lines) - 1:
            return self.rest()
        if (number := len(self._lines) - _ROWS) <= 0:
            return ""
        number = min(number, self._row)
        settled = "".join(f"{line}\n" for line in islice(self._lines, number))
        del self._lines[:number]
        self._row -= number
        return settled

    def _play(self, text: str) -> None:
        for part, parameters, final in _TOKEN.findall(text):
            if part == "\n":
                self._line_feed()
            elif part == "\r":
                self._column = 0
            elif final:
                self._control(parameters, final)
            elif part[0] == "\b":
                self._column = max(self._at() - len(part), 0)
            elif part[0] != "\x1b":
                self._write(part)

    def _end_line(self) -> None:
        if self._is_overwritten:  # what was blanked out is not there
            self._lines[self._row] = self._lines[self._row].rstrip(" ")
            self._is_overwritten = False

    def _line_feed(self) -> None:
        self._end_line()
        self._row += 1
        if self._row == len(self._lines):
            self._lines.append("")
        self._column = None if self._lines[self._row] == "" else 0

    def _at(self) -> int:
        column = self._column
        return _cells(self._lines[self._row]) if column is None else column

    def _go(self, row: int, column: int) -> None:
        self._row = min(max(row, 0), self._top + _SCREEN - 1)
        self._lines += [""] * (self._row - len(self._lines) + 1)
        self._column = min(max(column, 0), _WIDEST)

    def _write(self, text: str) -> None:
        line, column = self._lines[self._row], self._column
        if column is None:
            self._lines[self._row] = line + text
            return
        self._is_overwritten = True
        end = column + _cells(text)
        before, after = _cut(line, column)[0], _cut(line, end)[1]
        self._lines[self._row] = f"{before}{text}{after}"
        self._column = end if after else None

    def _control(self, parameters: str, final: str) -> None:
        first, _, second = parameters.partition(";")
        number = _number(first)
        if final in _MOVED:
            self._go(*_MOVED[final](self._row, self._at(), max(number, 1)))
        elif final in "Hf":
            self._go(self._top + max(number, 1) - 1, max(_number(second), 1) - 1)
        elif final == "K":
            self._erase_line(number)
        elif final == "J":
            self._erase_screen(number)
        elif final == "s":
            self._saved = self._row, self._at()
        elif final == "u":
            self._go(*self._saved)

    @property
    def _top(self) -> int:
        return max(len(self._lines) - _SCREEN, 0)

    def _erase_line(self, which: int) -> None:
        column = self._at()
        before, after = _cut(self._lines[self._row], column)
        if which == 0:
            if after:
                self._lines[self._row] = before.rstrip(" ")
        elif which == 1:
            self._lines[self._row] = " " * (column + 1) + _cut(after, 1)[1] if after else ""
        else:
            self._lines[self._row] = ""
        if self._lines[self._row] != before:
            self._column = column

    def _erase_screen(self, which: int) -> None:
        if which == 0:
            self._erase_line(0)
            del self._lines[self._row + 1 :]
        elif which == 2:  # noqa: PLR2004 - all of it
            column = self._at()
            self._lines[self._top :] = [""] * max(self._row - self._top + 1, 1)
            self._go(len(self._lines) - 1, column)


_MOVED: Final[Mapping[str, Callable[[int, int, int], tuple[int, int]]]] = {
    "A": lambda row, column, n: (row - n, column),
    "B": lambda row, column, n: (row + n, column),
    "C": lambda row, column, n: (row, column + n),
    "D": lambda row, column, n: (row, column - n),
    "E": lambda row, _, n: (row + n, 0),
    "F": lambda row, _, n: (row - n, 0),
    "G": lambda row, _, n: (row, n - 1),
    "`": lambda row, _, n: (row, n - 1),
}


def _cut(line: str, column: int) -> tuple[str, str]:
    """Return what stands before a column, filled up with blanks, and what stands after it."""
    if line.isascii():
        return line[:column].ljust(column), line[column:]
    end = bisect_right(range(len(line) + 1), column, key=lambda index: _cells(line[:index])) - 1
    missing = column - _cells(line[:end])
    if missing and end < len(line):  # through the middle of a wide one
        return f"{line[:end]} ", f" {line[end + 1 :]}"
    return line[:end] + " " * missing, line[end:]


def _number(parameter: str) -> int:
    return int(parameter[:5]) if parameter.isdecimal() else 0


# -- frames that nobody sees any more --------------------------------------------------------------
# Fifty megabytes of them are millions of frames, of which one is left. What is written over, or
# erased, further on in the very same line is taken out before it is drawn: the rest gives the same.


def _without_covered(text: str) -> str:
    """Return *text*, the output of a program, without what it covers on the same line itself."""
    text = text.replace("\x1b[1G", "\r").replace("\x1b[G", "\r")
    if "\r" in text:
        text = _RETURNS.sub("\r", text)
        text = "\n".join(_uncovered(line) if "\r" in line else line for line in text.split("\n"))
    if "\x08" in text and "\x1b" not in text:
        text = _SPUN.sub(r"\1", text)
    return text


def _uncovered(line: str) -> str:
    """Return a *line* that goes back without what later frames clear or, to the end, cover."""
    first, *frames = line.split("\r")
    last = next((n for n in reversed(range(len(frames))) if _CLEARING.match(frames[n])), 0)
    if last and "\x1b" not in _ERASURE.sub("", "".join([first, *frames[:last]])):  # left no line
        first, frames = "", frames[last:]
    if any("\x1b" in frame or "\x08" in frame for frame in (first, *frames)):
        return "\r".join([first, *frames])
    kept = frames[-1:]
    most = _cells(kept[0])
    for frame in dict.fromkeys(reversed(frames[:-1])):
        if 2 * len(frame) > most and ((width := _cells(frame)) > most or not most):
            kept.append(frame)
            most = width
    return "\r".join([first, *reversed(kept)])


def _cells(text: str) -> int:
    """Return how many cells of a terminal *text* takes."""
    if text.isascii():
        return len(text)
    from wcwidth import width  # noqa: PLC0415 - not on the way to the prompt

    return width(text, control_codes="ignore")
