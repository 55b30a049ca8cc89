"""Settings: flags > environment > project file > user file > defaults. The one place that knows.

What is plain text (where the store is, which model) is read here with the standard library alone:
pydantic-settings takes longer to import than `leftfold list` may take. It is imported
(`app.configuration`) only where a file or a variable says something that must be checked.
"""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import click

from app.errors import UsageError
from app.i18n import _
from app.suggestions import suggestion
from app.view.plain import plain
from domain.conversation import THINKING_LEVELS
from infrastructure.model.environment import DEFAULT_MODEL
from infrastructure.safe_files import require_trusted, whole

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

SMALLEST_WINDOW = 4_000
MOST_BYTES = 1024 * 1024
"""How large a file with settings, or with a prompt, may be."""
MAX_REQUESTS = 200
"""How many requests a turn may make."""
MAX_COST = 20.0
"""How many US dollars a turn may cost."""
IDLE_LIMIT = 300.0
"""How many seconds may pass without anything of an answer. Models think long, not in silence."""
DEFAULT_TOOLS = ("bash", "read", "write", "edit")
READING_TOOLS = ("read", "ls", "find", "grep")
"""The tools that need no approval: all that is offered to one who only looks."""
TOOL_NAMES = (*DEFAULT_TOOLS, *READING_TOOLS[1:])
"""All of them. A test compares these with the tools: to import them is slow."""

USER_FILE, PROJECT_FILE = "settings.toml", ".leftfold.toml"
VARIABLES = {
    "model": "MODEL_ID",
    "thinking": "LEFTFOLD_THINKING",
    "context_window": "LEFTFOLD_CONTEXT_WINDOW",
    "max_tokens": "LEFTFOLD_MAX_TOKENS",
    "durability": "LEFTFOLD_DURABILITY",
    "store": "LEFTFOLD_STORE",
    "yes": "LEFTFOLD_YES",
    "system_prompt": "LEFTFOLD_SYSTEM_PROMPT",
    "append_system_prompt": "LEFTFOLD_APPEND_SYSTEM_PROMPT",
    "tools": "LEFTFOLD_TOOLS",
    "read_only": "LEFTFOLD_READ_ONLY",
    "editing_mode": "LEFTFOLD_EDITING_MODE",
    "theme": "LEFTFOLD_THEME",
    "bell": "LEFTFOLD_BELL",
    "max_requests": "LEFTFOLD_MAX_REQUESTS",
    "max_cost": "LEFTFOLD_MAX_COST",
    "idle_limit": "LEFTFOLD_IDLE_LIMIT",
}
"""The settings, and the environment variable of each."""

THEMES = ("auto", "dark", "light")
_PLAIN = ("model", "store", "durability", "theme")
"""Settings that are any text: the code that uses them checks it."""

_READ_HERE = (*_PLAIN, "context_window")
"""Settings of the environment that need nothing more than what is here."""


@dataclass(frozen=True, kw_only=True)
class Settings:
    """What a person chose for this run.

    *model* and *thinking* are None where no flag says anything: then the conversation's recorded
    value holds (flag > recorded > default), and a new conversation takes the default.
    """

    home: Path
    store: Path
    cwd: str
    model: str | None = None
    default_model: str
    thinking: str | None = None
    default_thinking: str = "off"
    name: str | None = None
    offline: bool = False
    yes: bool = False
    here: bool = False
    context_window: int | None = None
    max_tokens: int | None = None
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    tools: tuple[str, ...] = DEFAULT_TOOLS
    editing_mode: str = "emacs"
    theme: str = "auto"
    bell: bool = True
    max_requests: int = MAX_REQUESTS
    max_cost: float = MAX_COST
    idle_limit: float = IDLE_LIMIT
    environment: dict[str, str] = field(default_factory=dict)


def settings(*, store: str | None = None, offline: bool = False) -> Settings:
    """Return the settings of a command that looks at logs: where they are.

    A store that was named and is not there is said: an empty list alone would look like an answer.

    Raises:
        UsageError: a value makes no sense.
    """
    flags = {"store": store}
    chosen = _settings(_said_plainly(flags), flags, offline=offline)
    if is_new_store(chosen):
        said = _("leftfold: there is no store yet: {path}").format(path=plain(str(chosen.store)))
        click.echo(said, err=True)
    return chosen


def run_settings(
    *, name: str | None = None, offline: bool = False, here: bool = False, **flags: Any
) -> Settings:
    """Return the settings of a run that talks to a model, from every source.

    Raises:
        UsageError: a value makes no sense.
    """
    flags["tools"] = tool_names(flags["tools"]) if flags.get("tools") is not None else None
    if is_more_than_plain():
        from app.configuration import choices  # noqa: PLC0415 - see above

        said: Mapping[str, Any] = choices(flags).values
    else:
        said = _said_plainly(flags)
    return _settings(said, flags, name=name, offline=offline, here=here)


def _settings(said: Mapping[str, Any], flags: Mapping[str, Any], **others: Any) -> Settings:
    thinking = flags.get("thinking")
    if thinking is not None and thinking not in THINKING_LEVELS:
        raise UsageError(
            _("--thinking {thinking!r}: choose one of {thinking_levels}").format(
                thinking=thinking, thinking_levels=", ".join(THINKING_LEVELS)
            )
        )
    folder = store_folder(said.get("store"))
    if said.get("store") and _is_of_files() and not folder.parent.is_dir():
        place = "--store" if flags.get("store") else VARIABLES["store"]
        raise UsageError(
            _("{place}: {folder}: there is no directory {parent}").format(
                place=place, folder=folder, parent=folder.parent
            )
        )
    environment = {"LEFTFOLD_STORE": str(folder)}
    if said.get("durability"):
        environment["LEFTFOLD_DURABILITY"] = said["durability"]
    return Settings(
        home=home(),
        store=folder,
        cwd=working_directory(),
        model=flags.get("model"),
        default_model=said.get("model") or DEFAULT_MODEL,
        thinking=thinking,
        default_thinking=said.get("thinking") or "off",
        yes=bool(said.get("yes")),
        context_window=said.get("context_window"),
        max_tokens=said.get("max_tokens"),
        system_prompt=_prompt_text(said.get("system_prompt")),
        append_system_prompt=_prompt_text(said.get("append_system_prompt")),
        tools=_offered(said.get("tools"), is_reading=bool(said.get("read_only"))),
        editing_mode=said.get("editing_mode") or "emacs",
        theme=_theme(said.get("theme") or "auto"),
        bell=said.get("bell") is not False,
        max_requests=said.get("max_requests") or MAX_REQUESTS,
        max_cost=said.get("max_cost") or MAX_COST,
        idle_limit=said.get("idle_limit") or IDLE_LIMIT,
        environment=environment,
        **others,
    )


# -- the sources, without a check ------------------------------------------------------------------


def home() -> Path:
    """Return where Leftfold keeps its things."""
    return expanded(os.environ.get("LEFTFOLD_HOME") or "~/.leftfold")


def store_folder(said: str | None) -> Path:
    """Return the folder of the logs: what was *said*, or the one in the home."""
    return (expanded(said) if said else home() / "conversations").absolute()


def is_new_store(chosen: Settings) -> bool:
    """Whether a store that was named, and is no home's own, is not there yet."""
    own = store_folder(None)
    return _is_of_files() and chosen.store != own and not chosen.store.exists()


def _is_of_files() -> bool:
    """Whether conversations are kept in a folder, not by another persistence module."""
    module = os.environ.get("PERSISTENCE_MODULE")
    return module in (None, "", "infrastructure.jsonl")


def expanded(path: str) -> Path:
    """Return *path* with the home that a ``~`` at its beginning stands for.

    Raises:
        UsageError: it is the home of nobody.
    """
    try:
        return Path(path).expanduser()
    except RuntimeError:
        raise UsageError(_("{path}: whose home is that?").format(path=path)) from None


def working_directory() -> str:
    """Return the directory in which the program was started.

    Raises:
        UsageError: it is gone.
    """
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise UsageError(_("the working directory is gone; go to another one first")) from None


def project_file() -> Path | None:
    """Return the project's settings: in this directory, or in one above up to the git root.

    A file that somebody else put there, or that leads out of the project, is none (`left_out`).
    """
    return next((path for path, why in _project_files() if not why), None)


def left_out() -> list[str]:
    """Return, for people, which files with settings of the project are not read, and why."""
    return [
        _("{path} is left out: {why}").format(path=path, why=why)
        for path, why in _project_files()
        if why
    ]


def _project_files() -> Iterator[tuple[Path, str]]:
    """Yield the files that may be the project's settings, the nearest first; why not, if so."""
    from app.instructions import project_root  # noqa: PLC0415

    cwd = Path(working_directory())
    root = project_root(str(cwd)) or cwd
    for folder in (cwd, *cwd.parents):
        path = folder / PROJECT_FILE
        try:
            require_trusted(path, root)
            yield path, ""
        except FileNotFoundError:
            pass
        except OSError as error:
            yield path, error.strerror or str(error)
        if folder == root:
            break


def from_environment() -> dict[str, str]:
    """Return what the environment says of each setting; nothing said is nothing."""
    said = {key: os.environ.get(variable) for key, variable in VARIABLES.items()}
    return {key: value for key, value in said.items() if value}


def from_file(path: Path) -> dict[str, Any]:
    """Return what a settings file says, unchecked; nothing if there is none.

    Raises:
        UsageError: it cannot be read, or is no TOML.
    """
    try:
        data = whole(path, MOST_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{path}: {error.strerror}") from error
    import tomllib  # noqa: PLC0415 - most people have no such file

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            _("{path}: this is no TOML: {error}").format(path=path, error=error)
        ) from error


def with_paths(said: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a file in *folder* says, with the places that it names as seen from anywhere."""
    for key in ("system_prompt", "append_system_prompt"):
        text = said.get(key)
        if isinstance(text, str) and text.startswith("@"):
            said[key] = f"@{folder / expanded(text[1:])}"
    if said.get("store"):
        said["store"] = str(folder / expanded(said["store"]))
    return said


def given_flags(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags that were given: an empty text is one, a switch that is off is none."""
    return {key: value for key, value in flags.items() if value is not None and value is not False}


def is_more_than_plain() -> bool:
    """Whether a source says something that must be checked before it is believed."""
    said = from_environment().keys() - set(_READ_HERE)
    return bool(said) or (home() / USER_FILE).exists() or project_file() is not None


def _said_plainly(flags: Mapping[str, Any]) -> dict[str, Any]:
    """Return the flags, over what the environment and the user file say in plain text."""
    file = home() / USER_FILE
    said = {key: value for key, value in from_file(file).items() if key in _PLAIN}
    for key, value in said.items():
        if not isinstance(value, str):
            raise UsageError(
                _("{file}: {key} has to be text, not {value!r}").format(
                    file=file, key=key, value=value
                )
            )
    said = with_paths(said, file.parent)
    environment = {key: value for key, value in from_environment().items() if key in _READ_HERE}
    said |= environment | given_flags(flags)
    if window := said.get("context_window"):
        said["context_window"] = _number_of_tokens(window)
    return said


# -- values ----------------------------------------------------------------------------------------


def tool_names(said: str) -> list[str]:
    """Return the names in a list with commas.

    Raises:
        UsageError: there is none, or one that no tool has.
    """
    names = [name.strip() for name in said.split(",") if name.strip()]
    if problem := wrong_tools(names):
        raise UsageError(f"--tools: {problem}")
    return list(dict.fromkeys(names))


def _offered(names: Sequence[str] | None, *, is_reading: bool) -> tuple[str, ...]:
    """Return the names of the tools that are left.

    Raises:
        UsageError: none is.
    """
    offered = READING_TOOLS if is_reading else DEFAULT_TOOLS
    left = offered if names is None else tuple(names)
    if is_reading:
        left = tuple(name for name in left if name in READING_TOOLS)
    if not left:
        raise UsageError(_("these settings leave no tool at all; `leftfold config` shows them"))
    return left


def wrong_tools(names: Sequence[str]) -> str | None:
    """Return what is wrong with these names of tools, if something is."""
    if not names:
        return _("name at least one of {names}").format(names=", ".join(TOOL_NAMES))
    for name in names:
        if name not in TOOL_NAMES:
            return _("there is no tool {name!r}; {near}").format(
                name=name, near=suggestion(name, TOOL_NAMES)
            )
    return None


def _number_of_tokens(said: str) -> int:
    if not said.isdecimal() or int(said) < SMALLEST_WINDOW:
        raise UsageError(
            _(
                "LEFTFOLD_CONTEXT_WINDOW={said!r}: give a number of tokens, at least "
                "{smallest_window}"
            ).format(said=said, smallest_window=SMALLEST_WINDOW)
        )
    return int(said)


def _theme(said: str) -> str:
    if said not in THEMES:
        raise UsageError(
            _("theme={said!r}: choose one of {names}").format(said=said, names=", ".join(THEMES))
        )
    return said


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
        raise UsageError(f"{path}: {error.strerror}") from error
