"""What flags, environment, project file and user file say, checked; and which of them said it."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Literal, NamedTuple, get_args

import click
import msgspec
from msgspec import Meta

from app import hook_settings
from app.errors import UsageError
from app.hook_settings import Hook  # noqa: TC001 - msgspec reads the annotations
from app.i18n import _
from app.places import expanded, home, working_directory
from app.suggestions import suggestion
from infrastructure.model.environment import DEFAULT_MODEL
from infrastructure.safe_files import NotTrustedError, reason_of, require_trusted, whole

if TYPE_CHECKING:
    from collections.abc import Collection, Iterator, Mapping, Sequence


SMALLEST_WINDOW = 4_000
MAX_REQUESTS = 200
"""How many requests a turn may make."""
MAX_COST = 20.0
"""How many US dollars a turn may cost."""
IDLE_LIMIT = 300.0
"""How many seconds may pass without anything of an answer. Models think long, not in silence."""
MOST_BYTES = 1024 * 1024
"""How large a file with settings, or with a prompt, may be."""

DEFAULT_TOOLS = ("bash", "read", "write", "edit")
READING_TOOLS = ("read", "ls", "find", "grep")
"""The tools that need no approval: all that is offered to one who only looks."""
TOOL_NAMES = (*DEFAULT_TOOLS, *READING_TOOLS[1:])
"""All of them. A test compares these with the tools: to import them is slow."""

USER_FILE, PROJECT_FILE = "settings.toml", ".leftfold.toml"
USERS_OWN = ("yes", "store", "durability", "max_requests", "max_cost", "mask_secrets", "hooks")
"""What a project may not say. A repository may come from anybody: it must neither let tools act
without asking, nor have the user's conversations written into its own folder, nor bring logs with
"always" in them, nor make saves less safe, nor spend more of the user's money, nor run commands,
nor have secrets recorded.
Keys and base URLs are no settings at all."""

LOOKED_AT = ("model", "store", "durability", "theme")
"""What a command that only looks at logs is told: a mistake elsewhere keeps nobody from looking."""

_PROMPTS = ("system_prompt", "append_system_prompt")
_NUMBERS = ("context_window", "max_tokens", "max_requests", "max_cost", "idle_limit")

Tokens = Annotated[int, Meta(gt=0)]
Amount = Annotated[float, Meta(gt=0, le=sys.float_info.max)]


class Keys(msgspec.Struct, frozen=True, kw_only=True):
    """The settings that a file may have, and what they are where nobody says anything."""

    model: Annotated[str, Meta(min_length=1)] = DEFAULT_MODEL
    thinking: Literal["off", "low", "medium", "high", "xhigh", "max"] = "off"
    context_window: Annotated[int, Meta(ge=SMALLEST_WINDOW)] | None = None
    max_tokens: Tokens | None = None
    durability: Literal["fsync", "os"] = "fsync"
    store: str | None = None
    yes: bool = False
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    tools: list[str] | None = None
    read_only: bool = False
    editing_mode: Literal["emacs", "vi"] = "emacs"
    theme: Literal["auto", "dark", "light"] = "auto"
    bell: bool = True
    max_requests: Annotated[int, Meta(gt=0)] = MAX_REQUESTS
    max_cost: Amount = MAX_COST
    idle_limit: Amount = IDLE_LIMIT
    mask_secrets: bool = True
    hooks: tuple[Hook, ...] = ()


TYPES: dict[str, Any] = {key.name: key.type for key in msgspec.structs.fields(Keys)}
VARIABLES = {
    key: "MODEL_ID" if key == "model" else f"LEFTFOLD_{key.upper()}"
    for key in TYPES
    if key != "hooks"
}
"""The settings that have an environment variable, and which: hooks stand in a file alone."""


class Source(NamedTuple):
    """Somebody who says settings: what kind, the values, and the file that they stand in."""

    kind: Literal["flag", "environment", "project", "user"]
    values: Mapping[str, Any]
    path: Path | None = None

    def place(self, key: str) -> str:
        """Return where *key* was said, for people."""
        match self.kind:
            case "flag":
                return f"--{key.replace('_', '-')}"
            case "environment":
                return VARIABLES[key]
            case _:
                return str(self.path)


class Choices(NamedTuple):
    """The settings, and who said each; None is the default."""

    keys: Keys
    sources: dict[str, Source | None]


def choices(flags: Mapping[str, Any], *, looks_at: Collection[str] = ()) -> Choices:
    """Return what all the sources say together: the strongest that says a key counts.

    A command that only looks at logs is told of no more than the keys that it *looks_at*.

    Raises:
        UsageError: one of them says what makes no sense; the message names it and the key.
    """
    user = _user(looks_at)
    project = Source("project", {}) if looks_at else _project()
    # An empty flag is said, a switch that is off is not; nor is an empty variable.
    flag = {key: value for key, value in flags.items() if value is not None and value is not False}
    environment = {key: text for key, name in VARIABLES.items() if (text := os.environ.get(name))}
    strongest = (Source("flag", flag), Source("environment", environment), project, user)
    sources = {
        key: next((source for source in strongest if key in source.values), None)
        for key in (looks_at or TYPES)
    }
    said = {key: _value(key, source) for key, source in sources.items() if source is not None}
    if sources.get("tools") is project and "tools" in user.values:  # it takes some of them away
        said["tools"] = [name for name in said["tools"] if name in user.values["tools"]]
    return Choices(Keys(**said), sources)


# -- one value -------------------------------------------------------------------------------------


def _value(key: str, source: Source) -> Any:
    """Return what *source* says of *key*; what a flag or a variable says comes as text."""
    value = source.values[key]
    if source.path is not None:
        return value  # the file was checked as a whole
    if key == "tools":
        value = [name.strip() for name in value.split(",") if name.strip()]
    place = source.place(key)
    named = place if (source.kind, key) == ("flag", "tools") else f"{place}={value!r}"
    return _checked(key, value, named, is_text=True)


def _checked(key: str, value: Any, named: str, *, is_text: bool = False) -> Any:
    """Return the *value* of a setting as what it stands for; *named* says where it stands."""
    try:
        if is_text and TYPES[key] is bool:
            value = click.BOOL.convert(value, None, None)
        is_number = is_text and key in _NUMBERS
        value = msgspec.convert(
            value.strip() if is_number else value, TYPES[key], strict=not is_number
        )
    except (msgspec.ValidationError, UnicodeEncodeError, click.BadParameter) as error:
        raise UsageError(f"{named}: {_takes(key)}") from error
    if key == "tools" and (problem := _wrong_tools(value)):
        raise UsageError(f"{named}: {problem}")
    return value


def _takes(key: str) -> str:
    """Return what a setting takes, for people."""
    if key == "context_window":
        return _("give a number of tokens, at least {least}").format(least=SMALLEST_WINDOW)
    if key in _NUMBERS:
        return _("give a number above 0")
    if TYPES[key] is bool:
        return _("it is either true or false")
    if key == "tools":
        return _wrong_tools(()) or ""
    if names := [repr(name) for name in get_args(TYPES[key]) if isinstance(name, str)]:
        listed = f"{', '.join(names[:-1])} or {names[-1]}"
        return _("choose one of {names}").format(names=listed)
    return _("it has to be text")


def _wrong_tools(names: Sequence[str]) -> str | None:
    """Return what is wrong with these names of tools, if something is."""
    if not names:
        return _("name at least one of {names}").format(names=", ".join(TOOL_NAMES))
    for name in names:
        if name not in TOOL_NAMES:
            return _("there is no tool {name!r}; {near}").format(
                name=name, near=suggestion(name, TOOL_NAMES)
            )
    return None


# -- the files -------------------------------------------------------------------------------------


def _user(keys: Collection[str]) -> Source:
    """Return what the user's file says: all of it, or no more than what it says of *keys*."""
    path = home() / USER_FILE
    said = _from_file(path)
    said = {key: value for key, value in said.items() if key in keys} if keys else said
    return Source("user", _with_paths(_all_checked(path, said), path.parent), path)


def _project() -> Source:
    path = next((path for path, why in _project_files() if not why), None)
    if path is None:
        return Source("project", {})
    said = _from_file(path)
    for key in said:
        if key in USERS_OWN:
            raise UsageError(
                _("{path}: {key!r} is for the user's own settings, not for a project's").format(
                    path=path, key=key
                )
            )
    said = _all_checked(path, said)
    if said.get("read_only") is False:
        raise UsageError(_("{path}: a project may switch read_only on, not off").format(path=path))
    for key in _PROMPTS:
        text = said.get(key) or ""
        if text.startswith("@"):
            _require_in_project(path, key, text)
    return Source("project", _with_paths(said, path.parent), path)


def _all_checked(path: Path, said: dict[str, Any]) -> dict[str, Any]:
    """Return what a file says, every key known and every value of its type."""
    for key in said:
        if key not in TYPES:
            raise UsageError(
                _("{path}: there is no setting {key!r}; {near}").format(
                    path=path, key=key, near=suggestion(key, tuple(TYPES))
                )
            )
    return {
        key: hook_settings.checked(value, f"{path}: {key}")
        if key == "hooks"
        else _checked(key, value, f"{path}: {key} = {value!r}")
        for key, value in said.items()
    }


def _require_in_project(path: Path, key: str, text: str) -> None:
    """Make sure that the file ``@FILE`` that a project names is its own."""
    try:
        require_trusted(path.parent / expanded(text[1:]), path.parent)
    except NotTrustedError as error:
        raise UsageError(
            _("{path}: {key}: {text!r} is no file of the project: {why}").format(
                path=path, key=key, text=text, why=error.why
            )
        ) from error
    except OSError as error:
        raise UsageError(f"{path}: {key}: {text!r}: {reason_of(error)}") from error


def left_out() -> list[str]:
    """Return, for people, which files with settings of the project are not read, and why."""
    return [
        _("{path} is left out: {why}").format(path=path, why=why)
        for path, why in _project_files()
        if why
    ]


def _project_files() -> Iterator[tuple[Path, str]]:
    """Yield the project's settings in this directory, and in those above up to the git root.

    A file that somebody else put there, or that leads out of the project, is none: it says why.
    """
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
            yield path, reason_of(error)
        if folder == root:
            break


def _from_file(path: Path) -> dict[str, Any]:
    """Return what a settings file says, unchecked; nothing if there is none."""
    try:
        data = whole(path, MOST_BYTES)
    except FileNotFoundError:
        return {}
    except OSError as error:
        raise UsageError(f"{path}: {reason_of(error)}") from error
    import tomllib  # noqa: PLC0415 - most people have no such file

    try:
        return tomllib.loads(data.decode("utf-8-sig"))
    except (tomllib.TOMLDecodeError, UnicodeDecodeError, RecursionError) as error:
        raise UsageError(
            _("{path}: this is no TOML: {error}").format(path=path, error=error)
        ) from error


def _with_paths(said: dict[str, Any], folder: Path) -> dict[str, Any]:
    """Return what a file in *folder* says, with the places that it names as seen from anywhere."""
    for key in _PROMPTS:
        text = said.get(key)
        if isinstance(text, str) and text.startswith("@"):
            said[key] = f"@{folder / expanded(text[1:])}"
    if said.get("store"):
        said["store"] = str(folder / expanded(said["store"]))
    return said
