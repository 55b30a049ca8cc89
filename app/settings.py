"""Settings: flags > environment > defaults. The one place that reads our environment variables."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from app.errors import UsageError
from domain.conversation import THINKING_LEVELS
from infrastructure.model.environment import DEFAULT_MODEL

SMALLEST_WINDOW = 4_000


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
    name: str | None = None
    offline: bool = False
    yes: bool = False
    context_window: int | None = None
    environment: dict[str, str] = field(default_factory=dict)


def settings(
    *,
    store: str | None = None,
    model: str | None = None,
    thinking: str | None = None,
    name: str | None = None,
    offline: bool = False,
    yes: bool = False,
) -> Settings:
    """Return the settings of this run, from flags (the arguments) and the environment.

    Raises:
        UsageError: a value makes no sense.
    """
    if thinking is not None and thinking not in THINKING_LEVELS:
        raise UsageError(f"--thinking {thinking!r}: choose one of {', '.join(THINKING_LEVELS)}")
    home = Path(os.environ.get("LEFTFOLD_HOME") or "~/.leftfold").expanduser()
    chosen = store or os.environ.get("LEFTFOLD_STORE")
    folder = Path(chosen).expanduser() if chosen else home / "conversations"
    return Settings(
        home=home,
        store=folder.absolute(),
        cwd=_working_directory(),
        model=model,
        default_model=os.environ.get("MODEL_ID") or DEFAULT_MODEL,
        thinking=thinking,
        name=name,
        offline=offline,
        yes=yes,
        context_window=_context_window(),
        environment={"LEFTFOLD_STORE": str(folder.absolute())},
    )


def _context_window() -> int | None:
    """Return how many tokens the model takes in, if LEFTFOLD_CONTEXT_WINDOW says so."""
    said = os.environ.get("LEFTFOLD_CONTEXT_WINDOW")
    if not said:
        return None
    if not said.isdecimal() or int(said) < SMALLEST_WINDOW:
        raise UsageError(
            f"LEFTFOLD_CONTEXT_WINDOW={said!r}: give a number of tokens, at least {SMALLEST_WINDOW}"
        )
    return int(said)


def _working_directory() -> str:
    try:
        return str(Path.cwd())
    except FileNotFoundError:
        raise UsageError("the working directory is gone; go to another one first") from None
