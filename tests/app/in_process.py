"""The command line in this process: `main` with arguments and bytes, as a shell would start it."""

import gc
import json
import sys
from io import TextIOWrapper
from tempfile import TemporaryFile
from typing import NamedTuple
from unittest.mock import patch

from click.testing import CliRunner

from app.cli import main
from infrastructure.jsonl.locks import Lease

HELD = []
"""Leases that this run has taken."""


def acquire(*arguments, **more):
    HELD.append(_acquire(*arguments, **more))
    return HELD[-1]


_acquire = Lease.acquire


class Ended(NamedTuple):
    """What came of a run."""

    code: int
    out: bytes
    err: str

    @property
    def objects(self):
        """The output as JSON, an object a line."""
        return [json.loads(line) for line in self.out.splitlines()]

    @property
    def complaint(self):
        """What stands on stderr: one or two lines for a person, never a traceback."""
        lines = self.err.splitlines()
        assert 1 <= len(lines) <= 2, self.err
        assert "unexpected error" not in self.err
        return self.err


def run(*arguments, stdin=b""):
    """Run the program with *arguments*; *stdin* stands in a file at its standard input."""
    threshold = gc.get_threshold()
    argv = ["leftfold", *map(str, arguments)]
    with (
        TemporaryFile() as file,
        TextIOWrapper(file) as text,
        CliRunner().isolation() as (out, err, _),
        patch.object(sys, "argv", argv),
        patch.object(Lease, "acquire", acquire),
        patch.object(sys, "stdin", text),
    ):
        file.write(stdin)
        file.seek(0)
        try:
            main()
        except SystemExit as end:
            code = end.code
        finally:
            gc.set_threshold(*threshold)
            while HELD:  # the end of a process does that
                HELD.pop().release()
        return Ended(code, out.getvalue(), err.getvalue().decode())
