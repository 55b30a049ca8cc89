"""The options that say which conversations, or entries, a command is about."""

from __future__ import annotations

from functools import reduce
from typing import TYPE_CHECKING, Any, get_args

import click

from domain.projections.transcript import Kind

if TYPE_CHECKING:
    from collections.abc import Callable

_KINDS = [kind for kind in get_args(Kind) if kind not in ("gap", "other")]

_PLACES = (
    click.option("--all", "everywhere", is_flag=True, help="Of every directory."),
    click.option("--dir", "directory", metavar="DIR", help="Of this directory, however spelled."),
    click.option("--model", metavar="NAME", help="Only with a model that has NAME in its name."),
    click.option("--since", metavar="WHEN", help="From then on: 2026-12-01, 12h, 3d or 2w."),
    click.option("--until", metavar="WHEN", help="Before then: 2026-12-01, 12h, 3d or 2w."),
    click.option("--cost", type=click.FloatRange(min=0), help="Only what cost so many dollars."),
)
_ROWS = (
    click.option("--archived", is_flag=True, help="Also those that were put away."),
    click.option("--search", metavar="TEXT", help="Only those with TEXT in the title."),
    click.option("--text", multiple=True, metavar="TEXT", help="Only those in which TEXT stands."),
)
_CONTENT = (
    click.option("--kind", type=click.Choice(_KINDS), help="Only in what is of this kind."),
    click.option(
        "--tool", metavar="NAME", help="Only in calls of this tool, and in what they gave."
    ),
    click.option("--failed", is_flag=True, help="Only in results that are errors."),
)


def selects_entries(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give *command* the options that choose among entries."""
    return _with(command, *_PLACES, *_CONTENT)


def selects_conversations(command: Callable[..., Any]) -> Callable[..., Any]:
    """Give *command* the options that choose among conversations."""
    return _with(command, *_PLACES, *_ROWS, *_CONTENT)


def _with(command: Callable[..., Any], *options: Callable[..., Any]) -> Callable[..., Any]:
    return reduce(lambda made, option: option(made), reversed(options), command)
