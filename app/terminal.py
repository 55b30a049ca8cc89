"""Whether a person is at the other end: found out here, and nowhere else; and what one is asked."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING, NamedTuple

import click

if TYPE_CHECKING:
    from collections.abc import Sequence


class Question(NamedTuple):
    """What a person is *told*, and *asked*: for one of the *words*, or else for the *default*."""

    told: Sequence[str]
    asked: str
    words: Sequence[str]
    default: str


def ask(question: Question) -> str:
    """Ask where there is no prompt of ours yet, until one of the words is typed, or nothing."""
    for line in question.told:
        click.echo(line, err=True)
    words = click.Choice(question.words)
    return str(click.prompt(question.asked, type=words, default=question.default, err=True))


def is_typed_at() -> bool:
    """Whether standard input is a terminal: somebody can be asked."""
    return sys.stdin is not None and sys.stdin.isatty()


def is_looked_at() -> bool:
    """Whether standard output is a terminal: what is printed must not command it."""
    return sys.stdout is not None and sys.stdout.isatty()


def is_dumb() -> bool:
    """Whether the terminal takes no escape codes, as ``TERM`` says."""
    return os.environ.get("TERM", "").lower() in ("dumb", "unknown")


def is_interactive() -> bool:
    """Whether a person can be asked, and sees what is asked: both are a terminal."""
    return is_typed_at() and is_looked_at()


def is_told() -> bool:
    """Whether standard error is a terminal: somebody sees how far a long work is."""
    return sys.stderr is not None and sys.stderr.isatty()
