"""A run of the program that is no command: what is to be done, by which settings.

A person in a new conversation gets a prompt at once: what works behind it is imported meanwhile.
"""

from __future__ import annotations

import asyncio
import importlib
import os
import re
from typing import Any

import click

from app import standard_input
from app.errors import NoCredentialsError, UsageError
from app.i18n import _
from app.places import is_new_store
from app.settings import Settings, run_settings
from app.suggestions import no_command
from app.terminal import is_dumb, is_looked_at, is_typed_at
from app.view import colours
from app.view.plain import complain
from infrastructure.withheld import hide

_OPTION = re.compile(r"-[A-Za-z]|--[A-Za-z][\w-]*(=.*)?", re.DOTALL)
"""What is an option, not a prompt, even where we have none of that name."""


def run(
    *,
    go_on: bool,
    resume: str | None,
    fork_of: str | None,
    prompt: str | None,
    output: str,
    input_: str = "text",
    first: str | None = None,
    **flags: Any,
) -> int:
    """Run the REPL, one turn, or what a program says; return the exit code.

    *first* is what the REPL begins with, as if it had been typed.
    """
    hide()
    if sum((go_on, resume is not None, fork_of is not None)) > 1:
        raise UsageError(_("-c, -r and --fork exclude one another"))
    is_driven = input_ == "stream-json"
    if is_driven and prompt is not None:
        raise UsageError(_("-p and --input stream-json exclude one another"))
    chosen = run_settings(**flags)
    _check_hook(str(chosen.store))
    colours.choose(chosen.keys.theme)
    text = None if prompt is None else _prompt(prompt)
    is_asked = text is None and not is_driven and is_typed_at()
    if first is not None:
        _check_first(first, is_asked=is_asked)
    if is_new_store(chosen.store):
        complain(_("a new store: {path}").format(path=chosen.store))
    if chosen.is_offline and not chosen.offline and not is_asked:
        raise NoCredentialsError
    is_new = not go_on and resume is None and fork_of is None
    if is_new and first is None and is_asked and is_looked_at() and not is_dumb():
        return asyncio.run(_begin(chosen))
    from app import job  # noqa: PLC0415 - see above

    what = job.Job(text, output, is_driven, first)
    return job.run(what, chosen, go_on=go_on, resume=resume, fork_of=fork_of)


def _check_hook(store: str) -> None:
    """Refuse a run that a hook has started over its own *store*: it would run the hook again.

    Raises:
        UsageError: it is so.
    """
    hook = os.environ.get("LEFTFOLD_HOOK")
    if hook and store == os.environ.get("LEFTFOLD_STORE"):
        raise UsageError(
            _(
                "this is run by the hook {name}, and would run it again and again: "
                "give it another --store"
            ).format(name=hook)
        )


async def _begin(chosen: Settings) -> int:
    """Talk in a new conversation, with a prompt at once; return the exit code."""
    from app.repl.banner import banner  # noqa: PLC0415 - not for -p
    from app.repl.first_prompt import FirstPrompt  # noqa: PLC0415

    prompt = FirstPrompt(chosen)
    async with prompt.standing(banner(chosen, chosen.first_model, chosen.cwd)):
        job = await asyncio.to_thread(importlib.import_module, "app.job")
        code: int = await job.run_behind(prompt, chosen)
        return code


def _check_first(first: str, *, is_asked: bool) -> None:
    """Refuse a *first* prompt that nobody could talk on from, or that has no text.

    Raises:
        UsageError, click.UsageError: it is so.
    """
    if not is_asked:
        hint = _("What the model is to be told goes behind -p.")
        raise click.UsageError(no_command(first, hint), click.get_current_context().find_root())
    if not first.strip():
        raise UsageError(_("a prompt needs some text in it"))


def _prompt(given: str) -> str:
    """Return the prompt of ``-p``: what was piped in, then what was *given*, if not ``-``.

    Raises:
        UsageError: there is no text, or an option in its place.
    """
    if _OPTION.fullmatch(given):
        raise UsageError(
            _("-p needs a TEXT, and {option!r} is an option; `-p -` reads standard input").format(
                option=given
            )
        )
    parts = [standard_input.piped(), "" if given == "-" else given]
    text = "\n\n".join(part for part in parts if part.strip())
    if not text:
        raise UsageError(_("-p needs a prompt with some text in it"))
    return text
