"""Variables that no tool gets: what signs requests to models, opens accounts, or our own logs.

Tools are programs that a model asks for, and many print their environment. What a build needs of
its own (``NPM_TOKEN``, ``GITHUB_TOKEN``, ``DATABASE_URL``) they get: that is why it was exported.
What the rule takes away is given back by name, ``LEFTFOLD_TOOL_VARIABLES=AWS_ACCESS_KEY_ID,…``, but
never what is the model's.

What tools do not get, they must not find with their parent either: on Linux every process of the
user can read ``/proc/PID/environ``, the block of memory with which a program was started. `hide`
overwrites the secrets there; this program has copies.
"""

from __future__ import annotations

import os
import re
import sys
from contextlib import suppress
from typing import TYPE_CHECKING, Final

from infrastructure.secrets import names_secret

if TYPE_CHECKING:
    from collections.abc import Mapping

GIVEN: Final = "LEFTFOLD_TOOL_VARIABLES"
_OF_MODELS: Final = re.compile(r"(ANTHROPIC|CLAUDE)_|AWS_BEARER_TOKEN_BEDROCK$", re.IGNORECASE)
_OF_ACCOUNTS: Final = re.compile(
    r"(TO_|FROM_)?(AWS|AZURE|ARM|GOOGLE|GCP|GCLOUD|CLOUDSDK|VERTEX|BEDROCK|CIPHER|POSTGRES)_",
    re.IGNORECASE,
)
_ANYWHERE: Final = re.compile(r"WEBHOOK|CUSTOM_HEADERS", re.IGNORECASE)
_ENV_START, _ENV_END = 47, 48  # of /proc/PID/stat, counted from the state


def is_withheld(name: str, given: str = "") -> bool:
    """Whether tools do not get the variable *name*; those that are *given* they do get."""
    if _OF_MODELS.match(name):
        return True
    if name in re.split(r"[\s,]+", given):
        return False
    of_account = _OF_ACCOUNTS.match(name) is not None and names_secret(name)
    return of_account or _ANYWHERE.search(name) is not None


def for_tools(environment: Mapping[str, str]) -> dict[str, str]:
    """Return of *environment* what tools get."""
    given = environment.get(GIVEN, "")
    return {name: value for name, value in environment.items() if not is_withheld(name, given)}


def hide() -> None:
    """Overwrite, where Linux shows it to others, what tools do not get; here it stays.

    A few system calls on this program's own memory, and only if there is something to hide. Where
    they are not allowed, and on other systems, nothing is hidden.
    """
    given = os.environ.get(GIVEN, "")
    names = [name for name in os.environ if is_withheld(name, given)]
    if not names or sys.platform != "linux":
        return
    for name in names:  # the C library makes copies of its own
        os.environ[name] = os.environ[name]
    with suppress(OSError, ValueError, IndexError):
        _overwrite({os.fsencode(name) for name in names})


def _overwrite(names: set[bytes]) -> None:
    with open("/proc/self/stat", "rb") as file:  # noqa: PTH123 - pathlib is not loaded yet
        fields = file.read().rpartition(b")")[2].split()
    start, end = int(fields[_ENV_START]), int(fields[_ENV_END])
    memory = os.open("/proc/self/mem", os.O_RDWR | os.O_CLOEXEC)
    try:
        place = start
        for entry in os.pread(memory, end - start, start).split(b"\0"):
            name, _, value = entry.partition(b"=")
            if name in names:
                os.pwrite(memory, bytes(len(value)), place + len(name) + 1)
            place += len(entry) + 1
    finally:
        os.close(memory)
