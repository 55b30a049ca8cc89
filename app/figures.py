"""What a conversation spent, as figures and as a table: per model, and per branch."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from app.i18n import _
from app.outputs import Spent, SpentOnBranch, Statistics
from app.view.lines import columns
from app.view.plain import cells, plain
from domain.projections.usage import Usage, by_model, own_entries, usage_of

if TYPE_CHECKING:
    from domain.conversation import Conversation


def statistics(conversation: Conversation) -> Statistics:
    """Return what a conversation spent itself: a fork counts from where it was forked."""
    from infrastructure.model.prices import cost  # noqa: PLC0415 - half a second

    entries = own_entries(conversation)
    inherited = conversation.origin.originator_version if conversation.origin else 0
    lost = [turn.lost for turn in conversation.turns if turn.originator_version > inherited]
    leaves = set(conversation.entries) - set(conversation.parents.values())
    branches = {
        leaf: [e for e in conversation.path(leaf) if e.originator_version > inherited]
        for leaf in sorted(leaves)
    }
    return Statistics(
        id=conversation.id,
        name=conversation.name,
        version=conversation.version,
        events=conversation.version,
        messages=len(conversation.messages()),
        total=Spent(**_figures(usage_of(entries, cost, lost=lost))),
        models={model: Spent(**_figures(used)) for model, used in by_model(entries, cost).items()},
        branches={
            str(leaf): SpentOnBranch(**_figures(usage_of(branch, cost)), entries=len(branch))
            for leaf, branch in branches.items()
        },
        leaf=conversation.leaf,
        depth=len(conversation.path(conversation.leaf)),
    )


def _figures(used: Usage) -> dict[str, Any]:
    share = used.cached_share
    return used._asdict() | {
        "cost": None if used.cost is None else float(used.cost),
        "seconds": round(used.seconds, 3),
        "cached_share": None if share is None else round(share, 3),
    }


def text_of(figures: Statistics, width: int | None = None) -> str:
    """Return the statistics of one conversation for people: a table, if *width* has room for it."""
    lines = [
        f"{figures.id}  {plain(figures.name or '')}".rstrip(),
        _("  {events} events, {messages} messages on the path").format(
            events=figures.version, messages=figures.messages
        ),
    ]
    rows = [(_("total"), figures.total), *figures.models.items()]
    if len(figures.branches) > 1:
        title = _("branch ending at ")
        rows += [(f"{title}{leaf}", used) for leaf, used in figures.branches.items()]
    heads = ["", _("in"), _("out"), _("cached"), _("calls"), _("failed"), _("time"), _("cost")]
    cells_of = [_row(plain(name), used) for name, used in rows]
    table = [f"  {line}" for line in columns([heads, *cells_of])]
    if width is not None and max(map(cells, table)) > width:
        table = [line for row in cells_of for line in _listed(heads, row)]
    return "\n".join([*lines, *table])


def _listed(heads: list[str], row: list[str]) -> list[str]:
    """Return a row of the table as lines: its name, and its figures, each with what it is."""
    name, *figures = row
    pairs = zip(heads[1:-1], figures, strict=False)
    return [f"  {name}", "    " + ", ".join([*(f"{a} {b}" for a, b in pairs), figures[-1]])]


def _row(name: str, used: Spent) -> list[str]:
    """Return what stands in the columns: tokens, the cache's share of them, calls, time, cost."""
    tokens = used.tokens
    read = tokens.get("cache_read_input_tokens", 0)
    sent = tokens.get("input_tokens", 0) + read + tokens.get("cache_creation_input_tokens", 0)
    return [
        name,
        f"{sent:,}",
        f"{tokens.get('output_tokens', 0):,}",
        f"{used.cached_share or 0:.0%}",
        f"{used.tool_calls:,}",
        f"{used.failed_calls:,}",
        f"{used.seconds:.1f} s",
        _("cost unknown") if used.cost is None else f"${used.cost:.4f}",
    ]
