"""The tool that replaces pieces of a file."""

from __future__ import annotations

import bisect
import difflib
import itertools
import json
import re
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Final

from pydantic import Field, model_validator

from domain.text import valid_json
from infrastructure.errors import ToolError
from infrastructure.tools.changing import ChangingTool, Edition
from infrastructure.tools.encodings import Text, decode, lines_of
from infrastructure.tools.files import FileState, missing
from infrastructure.tools.matching import Match, NoMatchError, match
from infrastructure.tools.tool import Arguments, FileArguments

if TYPE_CHECKING:
    from collections.abc import Sequence

    from infrastructure.tools.output import ToolContext

_BOM: Final = "\ufeff"
_CONTEXT: Final = 3


class Edit(Arguments):
    """One piece of a file and what takes its place."""

    old_text: str = Field(
        min_length=1,
        description="The text to replace, exactly as in the file; it must occur exactly once",
    )
    new_text: str = Field(description="The text that takes its place; empty to delete")


class EditInput(FileArguments):
    """A file and the edits to make in it."""

    edits: list[Edit] = Field(
        min_length=1,
        description="The edits; each is matched against the file as it is now, and they must not "
        "overlap",
    )

    @model_validator(mode="before")
    @classmethod
    def _understood(cls, values: Any) -> Any:
        """Take the edits as JSON text, a single edit, and one that stands beside the path."""
        if not isinstance(values, dict):
            return values
        values = dict(values)
        if "edits" not in values and "old_text" in values:
            names = ("old_text", "new_text")
            values["edits"] = {name: values.pop(name) for name in names if name in values}
        if isinstance(values.get("edits"), str):
            with suppress(ValueError, RecursionError):
                values["edits"] = valid_json(json.loads(values["edits"]))
        if isinstance(values.get("edits"), dict):
            values["edits"] = [values["edits"]]
        return values


class EditTool(ChangingTool[EditInput]):
    """Makes all of the edits or none."""

    name = "edit"
    description = (
        "Change a file by replacing pieces of its text. Every old_text must occur exactly once in "
        "the file as it is now, with the same whitespace: include enough of the lines around it to "
        "make it unique. Put several changes of one file in one call. All edits are made or "
        "none. Returns a diff."
    )
    Input = EditInput

    def _summary(self, call: EditInput) -> str:
        number = len(call.edits)
        return f"edit {call.path}" + (f" ({number} edits)" if number > 1 else "")

    def _edition(self, call: EditInput, old: FileState, context: ToolContext) -> Edition:
        if old.data is None:
            raise ToolError(missing(old.path))
        file = decode(old.data, call.path)
        text = _normal(file.text)
        changes = _changes(file, call.path, call.edits)
        changed = _apply(file.text, changes)
        if changed == file.text:
            raise ToolError(f"The edits change nothing in {call.path}; it was not written.")
        data = file.encoded(changed, call.path)
        is_known = context.seen.get(str(old.target)) == old.digest
        told = _diff(call.path, text, _normal(changed), changes) + _remarks(changes)
        return Edition(data, told, is_known=is_known)


def _remarks(changes: Sequence[Match]) -> str:
    """Say which edits matched a text that differs in what nobody sees."""
    return "".join(f"[Edit {c.number} was made, though {c.remark}]\n" for c in changes if c.remark)


def _normal(text: str) -> str:
    return text.replace("\r\n", "\n")


def _changes(file: Text, path: str, edits: Sequence[Edit]) -> list[Match]:
    """Return where each edit goes in the text without carriage returns, in order; none overlap."""
    text = _normal(file.text)
    changes: list[Match] = []
    for number, edit in enumerate(edits, 1):
        old = _normal(edit.old_text.removeprefix(_BOM)) or edit.old_text
        try:
            found = match(text, old, _normal(edit.new_text))
        except NoMatchError as error:
            raise ToolError(f"Edit {number}: {error}{_uncertain(file, path, old)}") from None
        if file.encoding is None and text[found.start - 1 : found.start] > "\x7f":
            raise ToolError(f"Edit {number}: its place is uncertain.{_uncertain(file, path, 'é')}")
        changes.append(found._replace(number=number))
    changes.sort()
    for before, after in itertools.pairwise(changes):
        if after.start < before.end:
            first, second = sorted((before.number, after.number))
            raise ToolError(
                f"Edits {first} and {second} overlap; make them one edit. Nothing was changed.",
            )
    return changes


def _uncertain(file: Text, path: str, old: str) -> str:
    """Say why what was not found may be there all the same, and that nothing was changed."""
    if file.encoding is not None or old.isascii():
        return " Nothing was changed."
    return (
        f" {path} is not UTF-8, and what it is in is not certain{file.maybe}: only ASCII in it can "
        f"be found. Convert it to UTF-8 first (iconv), if that is wanted. Nothing was changed."
    )


def _apply(original: str, changes: Sequence[Match]) -> str:
    """Return *original* with the changes; everything between them stays as it is, byte by byte.

    New lines end as the lines that they replace, or else as most lines of the file do.
    """
    dropped = [match.start() - i for i, match in enumerate(re.finditer("\r\n", original))]
    mostly_crlf = 2 * len(dropped) > original.count("\n")
    pieces = []
    done = 0
    for change in changes:
        start = change.start + bisect.bisect_left(dropped, change.start)
        end = change.end + bisect.bisect_left(dropped, change.end)
        replaced = original[start:end]
        crlf = "\r\n" in replaced if "\n" in replaced else mostly_crlf
        pieces += [original[done:start], change.new.replace("\n", "\r\n") if crlf else change.new]
        done = end
    return "".join([*pieces, original[done:]])


def _diff(name: str, before: str, after: str, changes: Sequence[Match]) -> str:
    """Return a unified diff. It looks around the changes only: files are long, lines repeat."""
    old, new = lines_of(before), lines_of(after)
    diff = [f"--- a/{name}\n", f"+++ b/{name}\n"]
    shift = 0
    for first, last, added in _windows(before, changes):
        last_new = last + shift + added if last < len(old) else len(new)
        hunks = difflib.unified_diff(
            old[first:last],
            new[first + shift : last_new],
            n=_CONTEXT,
        )
        # The first two lines are the names of the files.
        diff += [_moved(line, first, first + shift) for line in itertools.islice(hunks, 2, None)]
        shift += added
    return "".join(diff)


def _windows(text: str, changes: Sequence[Match]) -> list[tuple[int, int, int]]:
    """Return the lines around changes: the first, the one after the last, how many are added."""
    windows: list[tuple[int, int, int]] = []
    for change in changes:
        first = max(0, text.count("\n", 0, change.start) - _CONTEXT)
        last = text.count("\n", 0, change.end) + 1 + _CONTEXT
        added = change.new.count("\n") - text.count("\n", change.start, change.end)
        if windows and first <= windows[-1][1]:
            first, _, added_before = windows.pop()
            added += added_before
        windows.append((first, last, added))
    return windows


def _moved(line: str, old: int, new: int) -> str:
    """Return a line of a diff with its line numbers, if any, counted from the file's top."""
    if header := re.fullmatch(r"@@ -(\d+)(.*) \+(\d+)(.*) @@\n", line):
        return f"@@ -{int(header[1]) + old}{header[2]} +{int(header[3]) + new}{header[4]} @@\n"
    return line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
