"""The settings of a run: flags > environment > project file > user file > defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import click

from app.configuration import (
    DEFAULT_TOOLS,
    MOST_BYTES,
    READING_TOOLS,
    VARIABLES,
    Keys,
    checked,
    choices,
    plain_choices,
)
from app.errors import UsageError
from app.i18n import _
from app.places import (
    expanded,
    home,
    is_new_store,
    keeps_files,
    store_folder,
    working_directory,
)
from app.view.plain import plain
from infrastructure.errors import reason_of
from infrastructure.safe_files import whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

_AS_SAID = (
    "context_window",
    "max_tokens",
    "yes",
    "editing_mode",
    "theme",
    "bell",
    "max_requests",
    "max_cost",
    "idle_limit",
)
"""Settings that are taken as the sources say them."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a person chose for this run; `app.configuration.Keys` says what may be chosen.

    *model* and *thinking* are None where no flag says anything: then the conversation's recorded
    value holds (flag > recorded > default), and a new conversation takes the default.
    """

    home: Path
    store: Path
    cwd: str
    model: str | None
    default_model: str
    thinking: str | None
    default_thinking: str
    name: str | None = None
    offline: bool = False
    here: bool = False
    yes: bool
    context_window: int | None
    max_tokens: int | None
    system_prompt: str | None
    append_system_prompt: str | None
    tools: tuple[str, ...]
    editing_mode: str
    theme: str
    bell: bool
    max_requests: int
    max_cost: float
    idle_limit: float
    environment: dict[str, str]


def settings(*, store: str | None = None, offline: bool = False) -> Settings:
    """Return the settings of a command that looks at logs: where they are.

    A store that was named and is not there is said: an empty list alone would look like an answer.

    Raises:
        UsageError: a value makes no sense.
    """
    flags = {"store": store}
    said = plain_choices(flags)
    if "theme" in said:
        checked("theme", said["theme"], f"theme={said['theme']!r}")
    chosen = _settings(said, flags, offline=offline)
    if is_new_store(chosen.store):
        warning = _("leftfold: there is no store yet: {path}").format(path=plain(str(chosen.store)))
        click.echo(warning, err=True)
    return chosen


def run_settings(
    *, name: str | None = None, offline: bool = False, here: bool = False, **flags: Any
) -> Settings:
    """Return the settings of a run that talks to a model, from every source.

    Raises:
        UsageError: a value makes no sense.
    """
    return _settings(choices(flags).values, flags, name=name, offline=offline, here=here)


def _settings(said: Mapping[str, Any], flags: Mapping[str, Any], **others: Any) -> Settings:
    keys = Keys(**said)
    environment = {"LEFTFOLD_STORE": str(_store(keys.store, flags))}
    if "durability" in said:
        environment["LEFTFOLD_DURABILITY"] = keys.durability
    return Settings(
        home=home(),
        store=_store(keys.store, flags),
        cwd=working_directory(),
        model=flags.get("model"),
        default_model=keys.model,
        thinking=flags.get("thinking"),
        default_thinking=keys.thinking,
        system_prompt=_prompt_text(keys.system_prompt),
        append_system_prompt=_prompt_text(keys.append_system_prompt),
        tools=_offered(keys.tools, is_reading=keys.read_only),
        environment=environment,
        **{key: getattr(keys, key) for key in _AS_SAID},
        **others,
    )


def _store(named: str | None, flags: Mapping[str, Any]) -> Path:
    """Return the folder of the logs.

    Raises:
        UsageError: one was named where there is no directory for it.
    """
    folder = store_folder(named)
    if named and keeps_files() and not folder.parent.is_dir():
        place = "--store" if flags.get("store") else VARIABLES["store"]
        raise UsageError(
            _("{place}: {folder}: there is no directory {parent}").format(
                place=place, folder=folder, parent=folder.parent
            )
        )
    return folder


def _offered(names: Sequence[str] | None, *, is_reading: bool) -> tuple[str, ...]:
    """Return the names of the tools that are left, each once.

    Raises:
        UsageError: none is.
    """
    offered = READING_TOOLS if is_reading else DEFAULT_TOOLS
    left = offered if names is None else tuple(dict.fromkeys(names))
    if is_reading:
        left = tuple(name for name in left if name in READING_TOOLS)
    if not left:
        raise UsageError(_("these settings leave no tool at all; `leftfold config` shows them"))
    return left


def _prompt_text(said: str | None) -> str | None:
    """Return the text of a prompt that is given as it is, or as ``@FILE``.

    Raises:
        UsageError: the file cannot be read.
    """
    if said is None or not said.startswith("@"):
        return said
    path = expanded(said[1:])
    try:
        return whole(path, MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        raise UsageError(f"{path}: {reason_of(error)}") from error
