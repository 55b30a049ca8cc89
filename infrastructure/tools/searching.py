"""Searches files for a regular expression, in a process of its own: one can take for ever.

Run by `infrastructure.tools.looking` as a script: it imports the standard library alone. The
options come as JSON in the first argument, the files' names between NULs on stdin; each line that
matches, and those around it, goes out as it is found.
"""

from __future__ import annotations

import json
import os
import re
import sys
from collections import deque
from typing import Any, BinaryIO

_SNIFFED = 8 * 1024
_LONGEST = 1_000_000
_SHOWN = 500


def main(options: dict[str, Any], names: list[bytes]) -> None:
    """Print what matches, at most ``limit`` lines."""
    flags = re.IGNORECASE if options["ignore_case"] else 0
    pattern = re.escape(options["pattern"]) if options["literal"] else options["pattern"]
    wanted = re.compile(pattern, flags)
    left = options["limit"]
    for name in names:
        left -= _search(name, wanted, options["context"], left, os.fsencode(options["start"]))
        if left <= 0:
            _say(f"[The first {options['limit']:,} matches; there may be more]")
            return


def _search(name: bytes, wanted: re.Pattern[str], around: int, most: int, start: bytes) -> int:
    """Search one file; one that cannot be read, or is no file any more, has no matches."""
    try:
        descriptor = os.open(os.path.join(start, name), os.O_RDONLY | os.O_NONBLOCK | os.O_NOCTTY)  # noqa: PTH118
        with os.fdopen(descriptor, "rb") as file:
            if b"\0" in file.read(_SNIFFED):
                return 0
            file.seek(0)
            return _lines(file, name.decode("utf-8", "replace"), wanted, around, most)
    except OSError:
        return 0


def _lines(file: BinaryIO, name: str, wanted: re.Pattern[str], around: int, most: int) -> int:
    before: deque[str] = deque(maxlen=around)
    found = after = printed = 0
    number = 0
    while found < most and (data := file.readline(_LONGEST)):
        number += 1
        line = data.decode("utf-8", "replace").rstrip("\r\n")
        if wanted.search(line):
            if around and printed and number - len(before) > printed + 1:
                _say("--")
            for place, earlier in enumerate(before, number - len(before)):
                _say(f"{name}-{place}- {earlier}")
            _say(f"{name}:{number}: {_cut(line)}")
            before.clear()
            found, after, printed = found + 1, around, number
        elif after:
            _say(f"{name}-{number}- {_cut(line)}")
            after, printed = after - 1, number
        else:
            before.append(_cut(line))
    return found


def _say(line: str) -> None:
    sys.stdout.buffer.write(f"{line}\n".encode(errors="replace"))
    sys.stdout.buffer.flush()


def _cut(line: str) -> str:
    return line if len(line) <= _SHOWN else f"{line[:_SHOWN]}… ({len(line):,} characters)"


if __name__ == "__main__":
    main(json.loads(sys.argv[1]), [name for name in sys.stdin.buffer.read().split(b"\0") if name])
