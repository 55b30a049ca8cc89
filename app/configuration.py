"""What the sources of settings say, checked by pydantic-settings, and which of them said it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any, Literal

from pydantic import AfterValidator, BaseModel, ConfigDict, Field, ValidationError
from pydantic_settings import BaseSettings, InitSettingsSource, SettingsConfigDict

from app.errors import UsageError
from app.i18n import _
from app.settings import (
    IDLE_LIMIT,
    MAX_COST,
    MAX_REQUESTS,
    SMALLEST_WINDOW,
    USER_FILE,
    VARIABLES,
    expanded,
    from_environment,
    from_file,
    given_flags,
    home,
    project_file,
    with_paths,
    wrong_tools,
)
from app.suggestions import suggestion
from infrastructure.model.environment import DEFAULT_MODEL
from infrastructure.safe_files import NotTrustedError, require_trusted

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from pydantic_core import ErrorDetails
    from pydantic_settings import PydanticBaseSettingsSource

USERS_OWN = ("yes", "store", "durability", "max_requests", "max_cost")
"""What a project may not say. A repository may come from anybody: it must neither let tools act
without asking, nor have the user's conversations written into its own folder, nor bring logs with
"always" in them, nor make saves less safe, nor spend more of the user's money. Keys and base URLs
are no settings at all."""


def _known_tools(names: list[str]) -> list[str]:
    if problem := wrong_tools(names):
        raise ValueError(problem)
    return names


class Keys(BaseModel):
    """The settings that a file may have."""

    model_config = ConfigDict(extra="forbid", strict=True)

    model: Annotated[str, Field(min_length=1)] = DEFAULT_MODEL
    thinking: Literal["off", "low", "medium", "high", "xhigh", "max"] = "off"
    context_window: Annotated[int, Field(ge=SMALLEST_WINDOW)] | None = None
    max_tokens: Annotated[int, Field(gt=0)] | None = None
    durability: Literal["fsync", "os"] = "fsync"
    store: str | None = None
    yes: bool = False
    system_prompt: str | None = None
    append_system_prompt: str | None = None
    tools: Annotated[list[str], AfterValidator(_known_tools)] | None = None
    read_only: bool = False
    editing_mode: Literal["emacs", "vi"] = "emacs"
    theme: Literal["auto", "dark", "light"] = "auto"
    bell: bool = True
    max_requests: Annotated[int, Field(gt=0)] = MAX_REQUESTS
    max_cost: Annotated[float, Field(gt=0, allow_inf_nan=False)] = MAX_COST
    idle_limit: Annotated[float, Field(gt=0, allow_inf_nan=False)] = IDLE_LIMIT


class _Settings(Keys, BaseSettings):
    """The same, put together from the sources."""

    model_config = SettingsConfigDict(strict=False, extra="forbid")

    @classmethod
    def settings_customise_sources(
        cls,
        settings_cls: type[BaseSettings],
        init_settings: PydanticBaseSettingsSource,
        env_settings: PydanticBaseSettingsSource,
        dotenv_settings: PydanticBaseSettingsSource,
        file_secret_settings: PydanticBaseSettingsSource,
    ) -> tuple[PydanticBaseSettingsSource, ...]:
        """Take our sources, the strongest first: they come as one argument."""
        del env_settings, dotenv_settings, file_secret_settings
        assert isinstance(init_settings, InitSettingsSource)
        sources: tuple[Source, ...] = init_settings.init_kwargs["sources"]
        return tuple(InitSettingsSource(settings_cls, source.values) for source in sources)


@dataclass(frozen=True)
class Source:
    """Somebody who says settings: what kind, what each came from, and the values."""

    kind: Literal["flag", "environment", "project", "user"]
    values: dict[str, Any]
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


@dataclass(frozen=True)
class Choices:
    """The settings, and for each key the place that said it; None is the default."""

    values: dict[str, Any]
    sources: dict[str, Source | None]


def choices(flags: Mapping[str, Any]) -> Choices:
    """Return what all the sources say together.

    Raises:
        UsageError: one of them says what makes no sense; the message names it and the key.
    """
    project = project_file()
    sources = (
        Source("flag", given_flags(flags)),
        Source("environment", _environment()),
        Source("project", {} if project is None else _checked_project(project), project),
        _user_source(),
    )
    first = {key: _first(sources, key) for key in Keys.model_fields}
    try:
        values = _Settings(sources=sources).model_dump()  # type: ignore[call-arg]
    except ValidationError as error:
        problem = error.errors()[0]
        key = str(problem["loc"][0])
        source = first[key]
        given = "" if source is None else f"={source.values[key]!r}"
        place = "" if source is None else source.place(key)
        raise UsageError(f"{place}{given}: {_what(problem)}") from error
    return Choices(_narrowed(values, first["tools"], sources[-1]), first)


def _first(sources: tuple[Source, ...], key: str) -> Source | None:
    return next((source for source in sources if key in source.values), None)


def _narrowed(values: dict[str, Any], chosen: Source | None, user: Source) -> dict[str, Any]:
    """Let a project that has *chosen* the tools take some of its *user*'s away, never give any."""
    own = user.values.get("tools")
    if chosen is not None and chosen.kind == "project" and own is not None:
        values["tools"] = [name for name in values["tools"] if name in own]
    return values


# -- one source ------------------------------------------------------------------------------------


def _environment() -> dict[str, Any]:
    said: dict[str, Any] = dict(from_environment())
    if "tools" in said:
        said["tools"] = [name.strip() for name in said["tools"].split(",") if name.strip()]
    return said


def _user_source() -> Source:
    path = home() / USER_FILE
    return Source("user", with_paths(_checked(path), path.parent), path)


def _checked(path: Path) -> dict[str, Any]:
    """Return what a file says, every key known and every value of its type."""
    said = from_file(path)
    try:
        Keys.model_validate(said)
    except ValidationError as error:
        problem = error.errors()[0]
        key = ".".join(map(str, problem["loc"]))
        if problem["type"] == "extra_forbidden":
            near = suggestion(key, tuple(Keys.model_fields))
            raise UsageError(
                _("{path}: there is no setting {key!r}; {near}").format(
                    path=path, key=key, near=near
                )
            ) from error
        raise UsageError(f"{path}: {key} = {problem['input']!r}: {_what(problem)}") from error
    return said


def _checked_project(path: Path) -> dict[str, Any]:
    said = from_file(path)
    for key in said:
        if key in USERS_OWN:
            raise UsageError(
                _("{path}: {key!r} is for the user's own settings, not for a project's").format(
                    path=path, key=key
                )
            )
    said = _checked(path)
    if said.get("read_only") is False:
        raise UsageError(_("{path}: a project may switch read_only on, not off").format(path=path))
    for key in ("system_prompt", "append_system_prompt"):
        text = said.get(key) or ""
        if text.startswith("@"):
            _require_in_project(path, key, text)
    return with_paths(said, path.parent)


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
        raise UsageError(f"{path}: {key}: {text!r}: {error.strerror}") from error


def _what(problem: ErrorDetails) -> str:  # noqa: PLR0911 - a table
    """Return what is wrong, in our words where pydantic's are not for people."""
    match problem["type"]:
        case "greater_than_equal" | "int_parsing" | "int_type" if problem["loc"] == (
            "context_window",
        ):
            return _("give a number of tokens, at least {least}").format(least=SMALLEST_WINDOW)
        case (
            "greater_than"
            | "finite_number"
            | "float_parsing"
            | "float_type"
            | "int_parsing"
            | "int_type"
        ):
            return _("give a number above 0")
        case "literal_error":
            return _("choose one of {names}").format(names=problem["ctx"]["expected"])
        case "bool_type" | "bool_parsing":
            return _("it is either true or false")
        case "string_type":
            return _("it has to be text")
        case "value_error":
            return str(problem["ctx"]["error"])
        case _:
            return problem["msg"]
