"""Writes the reference of docs/embedding.md: what a projection may use, as the code says it.

python -m tests.reference
"""

import inspect
from pathlib import Path
from uuid import UUID

from domain.conversation import Conversation
from domain.projections import catalogue, context, outline, transcript, usage
from tests.builders import NOW

PAGE = Path(__file__).parents[1] / "docs" / "embedding.md"
BEGIN, END = "<!-- written by python -m tests.reference -->", "<!-- end -->"

STATE = {
    "archived": "whether lists leave it out",
    "caching": "whether the model's server keeps the beginning of requests",
    "cwd": "the directory in which it works",
    "instructions": "the newest `InstructionsChanged`",
    "labels": "the names of entries, by version",
    "last_turn": "the newest `TurnEnded`; none while a turn is open",
    "max_tokens": "how long an answer may be",
    "model": "the model that answers next",
    "name": "its name",
    "origin": "the `Forked` of a copy",
    "thinking_level": "how hard the model thinks",
    "unrecognised": "events that this version cannot read",
}
"""Attributes of a conversation. Each exists; the rest of them is the fold's own business."""

OWN = {"blank", "fold", "replay", "restored", "snapshot", "start", "when"}
"""What begins and rebuilds a conversation."""

PROJECTIONS = (
    transcript.transcript, transcript.recent, outline.outline, context.context,
    context.request_of,
    usage.usage_of, usage.by_model, usage.own_entries, usage.total, catalogue.row,
)  # fmt: skip


_CLASSES = [cls for cls in reversed(Conversation.__mro__) if cls.__module__.startswith("domain.")]


def methods():
    """The public functions and properties that the conversation itself defines, by name."""
    return {
        name: value
        for owner in _CLASSES
        for name, value in vars(owner).items()
        if not name.startswith("_") and name not in OWN
        if inspect.isroutine(value) or isinstance(value, property)
        if getattr(inspect.unwrap(_function(value)), "__module__", "") == owner.__module__
    }


def _function(value):
    return value.fget if isinstance(value, property) else getattr(value, "__func__", value)


def _is_command(value):
    return inspect.signature(_function(value)).return_annotation in (None, "None")


def _row(name, value):
    says = inspect.getdoc(value).split("\n\n")[0].replace("\n", " ")
    if isinstance(value, property):
        return f"| `{name}` | {says} |"
    parameters = list(inspect.signature(_function(value)).parameters.values())
    shown = [str(each.replace(annotation=each.empty)) for each in parameters if each.name not in ("self", "cls")]  # fmt: skip
    keyword = [each for each in parameters if each.kind is each.KEYWORD_ONLY]
    if keyword:
        shown.insert(len(shown) - len(keyword), "*")
    return f"| `{name}({', '.join(shown)})` | {says} |"


def tables():
    """The reference, as Markdown."""
    found = methods()
    reads = [_row(name, value) for name, value in found.items() if not _is_command(value)]
    commands = [_row(name, value) for name, value in found.items() if _is_command(value)]
    projections = [_row(f"{each.__module__}.{each.__name__}", each) for each in PROJECTIONS]
    state = [f"| `{name}` | {says} |" for name, says in STATE.items()]
    head = ["| | |", "|---|---|"]
    return "\n".join(
        [
            "### The state of a `Conversation`", *head, *state,
            "\n### What it tells", *head, *reads,
            "\n### Commands, for `record`", *head, *commands,
            "\n### Projections", *head, *projections,
        ]
    )  # fmt: skip


def page(text):
    """The page *text* with its reference as it is now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def missing():
    """Names of `STATE` that a conversation does not have."""
    return STATE.keys() - vars(Conversation.blank(UUID(int=1), NOW)).keys()


if __name__ == "__main__":
    PAGE.write_text(page(PAGE.read_text()))
