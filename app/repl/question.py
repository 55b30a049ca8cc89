"""What a person sees before a tool acts: every byte of what will act, then what can be answered.

A command is always shown whole. Of a long file or change the first lines are, with a key that
shows the rest; until then no answer lets the call run (case R10).
"""

from __future__ import annotations

import json
import os
from bisect import bisect_right
from itertools import accumulate, groupby
from operator import attrgetter
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from rich.cells import get_character_cell_size
from rich.text import Text

from app.i18n import _
from app.view.console import say, show
from app.view.differences import rows_of
from app.view.plain import cells
from app.view.visible import visible, visible_lines

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from rich.console import Console

    from app.ports import Proposal
    from domain.tool_use import Change

LEAST_SHOWN = 24
"""Lines of a file or a change that are shown at once; more where the screen has room."""
_LINES_AROUND = 12
_INDENT = "  "
_SHOWN_BY_A_CHANGE = ("path", "content", "edits")
_WORDS = {key: word for word in ("yes", "always", "no", "reason") for key in (word[0], word)}
_COMMAND_WORDS = {"c": "command", "command": "command"}
_WORDS_FOR_MORE = {"s": "all", "show": "all"}
_SAID = {
    "yes": "yes",
    "always": "always",
    "command": "always this command",
    "no": "no",
    "reason": "no",
    "all": "show all",
    "stop": "stop",
}


class Line(NamedTuple):
    """A line of the question: what stands before its text, also where that is broken in two."""

    text: str
    style: str = ""
    before: str = _INDENT


class Question:
    """The question on *console* whether a call may act, in the directory *cwd*.

    Attributes:
        is_shown_whole: Whether all of what would act has been printed.
        words: What can be answered, and what each word stands for.
    """

    def __init__(self, proposal: Proposal, cwd: Path, console: Console) -> None:
        self._console = console
        arguments = dict(proposal.call.input)
        command = arguments.get("command")
        head = [Line(_("Allow {tool}?").format(tool=visible(proposal.call.name)), "bold", "")]
        self._is_command = isinstance(command, str)
        if isinstance(command, str):
            del arguments["command"]
            head += _lines(command, f"{_INDENT}$ ")
        if (change := proposal.change) is not None:
            arguments = {k: v for k, v in arguments.items() if k not in _SHOWN_BY_A_CHANGE}
            head += _file_lines(change, cwd)
        for name, value in arguments.items():  # they act as well
            text = value if isinstance(value, str) else json.dumps(value, ensure_ascii=False)
            head += _lines(f"{name}: {text}", _INDENT)
        self._head = _broken(
            head, console
        )  # always shown whole; the rest as far as the screen goes
        self._rest = _broken([] if change is None else list(_change_lines(change)), console)
        room = max(LEAST_SHOWN, console.height - _LINES_AROUND)
        self._room = room if len(self._rest) > room + 1 else len(self._rest)
        self.is_shown_whole = self._room == len(self._rest)
        self._has_explained = False
        self._cells_of_choices = 0  # of the line that the answer stands in

    @property
    def words(self) -> dict[str, str]:
        """What can be answered now."""
        words = _WORDS | (_COMMAND_WORDS if self._is_command else {})
        return words if self.is_shown_whole else words | _WORDS_FOR_MORE

    def show(self) -> None:
        """Print what is asked, and what can be answered."""
        self._has_explained = False
        self._console.line()
        self._print(self._head)
        self._print(self._rest[: self._room])
        if self.is_shown_whole:
            self._say_if_it_is_long()
        else:
            hidden = len(self._rest) - self._room
            told = _("… +{count:,} lines; all of it must be shown before a yes counts")
            say(self._console, _INDENT + told.format(count=hidden), "yellow")
        self._print_choices()

    def show_all(self) -> None:
        """Print what was hidden, and what can be answered."""
        self._console.line()
        self._print(self._rest[self._room :])
        self._room, self.is_shown_whole = len(self._rest), True
        self._say_if_it_is_long()
        self._print_choices()

    def choose_again(self) -> None:
        """Print once more what can be answered: what is asked stands above."""
        self._has_explained = False
        self._console.line()
        self._print_choices()

    def explain(self) -> None:
        """Say, once, that what was typed answers nothing, and what can be answered."""
        if self._has_explained:
            return
        self._has_explained = True
        self._console.line()
        message = _("What was typed is no answer, and is not kept. These are answers:")
        say(self._console, message, "yellow")
        self._print_choices()

    def answered(self, answer: str) -> None:
        """End the line of choices with the *answer*."""
        message = _(_SAID[answer]) if answer in _SAID else visible(answer)
        if self._cells_of_choices + cells(message) > self._console.width:
            self._console.line()
        say(self._console, message, "bold")

    def _say_if_it_is_long(self) -> None:
        lines = len(self._head) + len(self._rest)
        if lines > self._console.height - 2:
            told = _("That was all of it, {count:,} lines: scroll up to read what has gone by")
            say(self._console, _INDENT + told.format(count=lines), "yellow")

    def _print_choices(self) -> None:
        choices = (
            _("[y]es / [a]lways / always this [c]ommand / [n]o / no, and the [r]eason ")
            if self._is_command
            else _("[y]es / [a]lways in this conversation / [n]o / no, and the [r]eason ")
        )
        more = "" if self.is_shown_whole else _("[s]how all of it / ")
        lines = Text(more + choices).wrap(self._console, self._console.width)
        text = "\n".join(line.plain.rstrip() for line in lines)
        self._console.out(f"{text} ", end="", highlight=False)
        self._cells_of_choices = cells(text.rpartition("\n")[2]) + 1

    def _print(self, lines: Sequence[Line]) -> None:
        encoding = self._console.encoding
        with self._console:  # one write
            for style, several in groupby(lines, attrgetter("style")):
                text = "\n".join(f"{line.before}{line.text}" for line in several)
                seen = text.encode(encoding, "backslashreplace").decode(encoding)
                show(self._console, seen, style)


def _broken(lines: Sequence[Line], console: Console) -> list[Line]:
    """Return *lines*, those that are wider than the screen broken where it ends: nothing is cut."""
    broken = []
    for line in lines:
        width = max(console.width - len(line.before) - 1, 8)
        if len(line.text) * 2 <= width:
            broken.append(line)
            continue
        first, *others = _pieces(line.text, width)
        broken.append(Line(first, line.style, line.before))
        before = "↪ ".rjust(len(line.before)) if len(line.before) > 1 else line.before
        broken += [Line(each, line.style, before) for each in others]
    return broken


def _pieces(text: str, width: int) -> Iterator[str]:
    """Yield *text* in pieces of *width* cells: it may be the whole of a large file."""
    begin = 0
    while begin < len(text):
        end = begin + width
        if not (window := text[begin : end + width]).isascii():
            ends = list(accumulate(map(get_character_cell_size, window)))
            end = begin + max(bisect_right(ends, width), 1)
        yield text[begin:end]
        begin = end


def _lines(text: str, before: str) -> Iterator[Line]:
    """Yield the lines of *text*, the first behind *before*."""
    for number, line in enumerate(visible_lines(text)):
        yield Line(line, before=f"{_INDENT}  " if number else before)


def _visible_path(path: str) -> str:
    return visible(path.replace("\n", "␊"))


def _file_lines(change: Change, cwd: Path) -> Iterator[Line]:
    """Yield which file it is, and which it really is where links lead somewhere else."""
    yield Line(_visible_path(change.path), "bold")
    named = os.path.normpath(cwd / Path(os.path.expanduser(change.path)))  # noqa: PTH111
    target = _visible_path(str(change.target))
    if str(change.target) != named:
        yield Line(_("through a link: the file is {target}").format(target=target), "yellow")
    if not change.target.is_relative_to(os.path.realpath(cwd)):
        place = _visible_path(os.path.realpath(cwd))
        yield Line(_("outside the directory {place}").format(place=place), "yellow")
    if change.before is None:
        yield Line(_("a new file") if change.after else _("a new file, empty"))
    elif not change.after:
        yield Line(_("The file will be empty."), "yellow")


def _change_lines(change: Change) -> Iterator[Line]:
    for row in rows_of(change.before or "", change.after):
        yield Line(row.text, row.style, f"{_INDENT}{row.number} {row.sign}")
