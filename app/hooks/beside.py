"""Who runs the hooks: a process of its own, beside each run of the program that makes events.

It is started where hooks are named, and told by the end of its standard input that the run has
ended, however it did. Then it goes to the end of the order, and ends. So a hook never holds up a
turn, nor the end of a ``-p``, and what a killed run has recorded is not forgotten.
"""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from hashlib import sha256
from pathlib import Path
from typing import TYPE_CHECKING

import app
from app.hooks.runner import HookRunner
from app.i18n import _
from app.places import keeps_files
from infrastructure.withheld import for_tools

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator, Sequence

    from app.application import Conversations
    from app.hook_settings import Hook
    from app.hooks.outputs import HookRan
    from app.settings import Settings

_OF_STORES = ("CIPHER_", "COMPRESSOR_", "POSTGRES_")
"""Variables of logs that no tool gets, and without which they cannot be read."""


def folder_of(settings: Settings) -> Path:
    """Return where the positions of hooks over this store are, in the home of the person."""
    names = ("PERSISTENCE_MODULE", "POSTGRES_HOST", "POSTGRES_PORT", "POSTGRES_DBNAME",
             "POSTGRES_SCHEMA", "SQLITE_DBNAME", "UMADB_URI")  # fmt: skip
    where = [str(settings.store.resolve())]
    if not keeps_files():
        where = [os.environ.get(name, "") for name in names]
    return settings.home / "hooks" / sha256("\0".join(where).encode()).hexdigest()[:16]


def runners(
    settings: Settings,
    conversations: Conversations,
    hooks: Sequence[Hook],
    report: Callable[[HookRan], object] = lambda _: None,
) -> list[HookRunner]:
    """Return a runner for each of the *hooks*; those that are new begin at the end of the order.

    Raises:
        StoreError: the file with the positions cannot be used.
    """
    folder = folder_of(settings)
    found = [HookRunner(hook, conversations, folder, settings.store, report) for hook in hooks]
    for runner in found:
        runner.register()
    return found


@contextlib.contextmanager
def hooks_beside(settings: Settings, conversations: Conversations) -> Iterator[list[str]]:
    """Have the hooks run by a process of their own; hand out what a person should know of them.

    The positions of new ones are there before the first event is.
    """
    parked = [
        _(
            "hook {name} is parked since {event}: {error} (`leftfold hooks run {name}` tries again)"
        ).format(
            name=runner.hook.name,
            event=failure.event_id,
            error=failure.error.splitlines()[-1] if failure.error else "",
        )
        for runner in runners(settings, conversations, settings.keys.hooks)
        if (failure := runner.positions.failure(runner.hook.name)) and failure.is_parked
    ]
    main = Path(app.__file__).with_name("main.py")
    environment = {name: value for name, value in os.environ.items() if name.startswith(_OF_STORES)}
    process = subprocess.Popen(  # noqa: S603 - this program
        [sys.executable, str(main), "--store", str(settings.store), "hooks", "run", "--beside"],
        stdin=subprocess.PIPE,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        env=for_tools(os.environ) | environment,
        cwd=settings.home,
        start_new_session=True,
    )
    try:
        yield parked
    finally:
        assert process.stdin is not None
        process.stdin.close()
        process.returncode = 0  # it goes on without us, and is nobody's to wait for
