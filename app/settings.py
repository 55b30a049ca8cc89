"""The settings of a run: flags > environment > project file > user file > defaults."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from app.configuration import DEFAULT_TOOLS, LOOKED_AT, MOST_BYTES, READING_TOOLS, choices
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
from app.view.plain import complain
from infrastructure.model.environment import has_credentials
from infrastructure.safe_files import reason_of, whole

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence
    from pathlib import Path

    from app.configuration import Choices, Keys, Source

OFFLINE_MODEL = "offline"


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a person chose for this run: *keys* as the sources say them, and what follows from them.

    *model* and *thinking* are None where no flag says anything: then the conversation's recorded
    value holds (flag > recorded > default), and a new conversation takes the default, that of
    *keys*.
    """

    keys: Keys
    home: Path
    store: Path
    cwd: str
    model: str | None
    thinking: str | None
    name: str | None = None
    offline: bool = False
    here: bool = False
    system_prompt: str | None
    append_system_prompt: str | None
    tools: tuple[str, ...]
    environment: dict[str, str]

    @property
    def is_offline(self) -> bool:
        """Whether the offline model answers: asked for, or there is no key."""
        return self.offline or not has_credentials()

    @property
    def first_model(self) -> str:
        """The model of a new conversation."""
        return self.model or (OFFLINE_MODEL if self.is_offline else self.keys.model)

    @property
    def first_thinking(self) -> str:
        """The thinking level of a new conversation."""
        return self.thinking or self.keys.thinking


def settings(
    *, store: str | None = None, offline: bool = False, also: Sequence[str] = ()
) -> Settings:
    """Return the settings of a command that looks at logs: where they are, and the keys *also*.

    A store that was named and is not there is said: an empty list alone would look like an answer.

    Raises:
        UsageError: a value makes no sense.
    """
    flags = {"store": store}
    chosen = _settings(choices(flags, looks_at=(*LOOKED_AT, *also)), flags, offline=offline)
    if is_new_store(chosen.store):
        complain(_("there is no store yet: {path}").format(path=chosen.store))
    return chosen


def run_settings(
    *, name: str | None = None, offline: bool = False, here: bool = False, **flags: Any
) -> Settings:
    """Return the settings of a run that talks to a model, from every source.

    Raises:
        UsageError: a value makes no sense.
    """
    return _settings(choices(flags), flags, name=name, offline=offline, here=here)


def _settings(chosen: Choices, flags: Mapping[str, Any], **others: Any) -> Settings:
    keys = chosen.keys
    store = _store(keys.store, chosen.sources["store"])
    return Settings(
        keys=keys,
        home=home(),
        store=store,
        cwd=working_directory(),
        model=flags.get("model"),
        thinking=flags.get("thinking"),
        system_prompt=_prompt_text(keys.system_prompt),
        append_system_prompt=_prompt_text(keys.append_system_prompt),
        tools=_offered(keys.tools, is_reading=keys.read_only),
        environment={"LEFTFOLD_STORE": str(store), "LEFTFOLD_DURABILITY": keys.durability},
        **others,
    )


def _store(named: str | None, source: Source | None) -> Path:
    """Return the folder of the logs; one that is *named* has to have a place."""
    folder = store_folder(named)
    if source is not None and keeps_files() and not folder.parent.is_dir():
        raise UsageError(
            _("{place}: {folder}: there is no directory {parent}").format(
                place=source.place("store"), folder=folder, parent=folder.parent
            )
        )
    return folder


def _offered(names: Sequence[str] | None, *, is_reading: bool) -> tuple[str, ...]:
    """Return the names of the tools that are left, each once; there has to be one."""
    offered = READING_TOOLS if is_reading else DEFAULT_TOOLS
    left = offered if names is None else tuple(dict.fromkeys(names))
    if is_reading:
        left = tuple(name for name in left if name in READING_TOOLS)
    if not left:
        raise UsageError(_("these settings leave no tool at all; `leftfold config` shows them"))
    return left


def _prompt_text(said: str | None) -> str | None:
    """Return the text of a prompt that is given as it is, or as ``@FILE``."""
    if said is None or not said.startswith("@"):
        return said
    path = expanded(said[1:])
    try:
        return whole(path, MOST_BYTES).decode("utf-8-sig", "replace")
    except OSError as error:
        raise UsageError(f"{path}: {reason_of(error)}") from error
