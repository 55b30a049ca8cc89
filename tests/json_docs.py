"""Writes what programs can rely on: docs/schemas/*.json, and the tables of docs/json.md.

    python -m tests.json_docs

Both come from the types that are printed (`app.outputs`, `app.headless.happenings`), and a test compares them.
A key means the same wherever it stands: `KEYS` says what, and what is special in an output.
"""

import json
from pathlib import Path
from typing import Any, Literal

import msgspec

from app import outputs
from app.cli import COMMANDS
from app.headless import happenings
from app.hooks import outputs as hooks
from app.moving import Copied
from app.syncing import Synced
from domain.events import TOPICS
from domain.projections.outline import TreeEntry
from infrastructure.jsonl.line import FORMAT

ROOT = Path(__file__).parents[1]
PAGE, SCHEMAS = ROOT / "docs" / "json.md", ROOT / "docs" / "schemas"
BEGIN, END = "<!-- written by python -m tests.json_docs -->", "<!-- end -->"


class RequestBody(outputs.Output, frozen=True):
    """The body of a request of the Messages API, just as it is sent: its digest is over these bytes.

    Of a request that an older version sent, it is canonical JSON (keys sorted, nothing escaped), as
    its digest is. `system`, `tools`, `thinking` and others stand in it as well, where they are sent.
    """

    model: str
    max_tokens: int
    messages: list[dict[str, Any]]


class Row(outputs.Output, frozen=True):
    """A row of the answer. Its keys are the columns of the question; the second of two of one name has a number.

    Whole numbers are exact, up to 64 bits; bytes are text, as SQL writes them: `x'00ff'`.
    """


OUTPUTS = {
    "list": (outputs.Listed, outputs.Unreadable),
    "search": (outputs.Found,),
    "query": (Row, outputs.Table),
    "show": (outputs.Damaged, outputs.Shown),
    "log": (outputs.Damaged, outputs.LoggedEvent, outputs.OrderedEvent),
    "tree": (outputs.Damaged, TreeEntry),
    "context": (RequestBody,),
    "verify": (outputs.Verified, outputs.VerifiedOrder),
    "recover": (outputs.Recovered,),
    "export": (outputs.Exported,),
    "import": (outputs.Imported, outputs.NotImported),
    "fork": (outputs.ForkMade,),
    "rename": (outputs.NameGiven,),
    "label": (outputs.LabelGiven,),
    "archive": (outputs.PutAway,),
    "delete": (outputs.Deleted,),
    "trash": (outputs.InTrash, outputs.Restored, outputs.Purged),
    "copy": (Copied, outputs.Unreadable),
    "sync": (Synced, outputs.Unreadable),
    "stats": (outputs.Statistics, outputs.Unreadable),
    "hooks": (hooks.HookListed, hooks.HookRan, hooks.HookEvent),
    "config": (dict[str, outputs.Setting],),
}
"""What a line of ``leftfold COMMAND --json`` can be."""


class Order(msgspec.Struct, frozen=True, tag_field="type"):
    """A line that is read; its `type` says what is to be done. Other keys are passed over."""


class Prompt(Order, frozen=True, tag="prompt"):
    """Begin a turn; while one runs, queue the prompt."""

    text: str


class Interrupt(Order, frozen=True, tag="interrupt"):
    """Stop the running turn."""


class Approve(Order, frozen=True, tag="approve"):
    """Answer an `approval_needed`."""

    tool_use_id: str
    decision: Literal["yes", "always", "no"]
    reason: str | None = None
    command: bool | None = None


class Quit(Order, frozen=True, tag="quit"):
    """Stop the running turn, and end."""


STREAMS = {
    "result": (happenings.Result,),
    "stream-json": tuple(happenings.Happening.__subclasses__()),
    "input": (Prompt, Interrupt, Approve, Quit),
}
"""What ``-p --output json`` prints, a line of ``stream-json``, and a line of its input."""

NESTED = (outputs.Finding, outputs.Damage, outputs.Problem, outputs.Spent, outputs.SpentOnBranch,
          outputs.Fate, hooks.HookFailure, outputs.Setting)  # fmt: skip

KEYS = {
    "tools": "the tools whose calls it is for; none: whatever the event is about",
    "time": "when it was",
    "HookListed.position": "how far it has come in the order of all events",
    "HookRan.outcome": "whether it ended well, will be tried again, or is parked",
    "HookRan.message": "what went wrong; null if nothing did",
    "output": "the file with what it printed",
    "is_running": "whether a program runs it now",
    "is_parked": "whether it waits until somebody runs it again",
    "hook": "the name of the hook",
    "failure": "what went wrong with the event that it is at; null if nothing did",
    "HookListed.events": "the events that it is for",
    "event_id": "the conversation and the version, `ID@VERSION`: it names an event for ever",
    "HookListed.command": "what is run",
    "HookEvent.call": "the call that the event is about: `id`, `name`, `input`; null if it is about none",
    "behind": "how many events it has not seen",
    "attempts": "how often it was tried for this event",
    "attempt": "how often it was tried for this event, this time included",
    "Exported.content": "what would stand in a file; null if it is in one",
    "Exported.path": "the file; null if it is in `content`",
    "format": "pi, claude-code, codex, gemini-cli, opencode, messages, markdown, atif or jsonl",
    "NotImported.source": "the file",
    "Imported.source": "the file",
    "unfinished": "whether the last line is not whole: it is left for the next import",
    "damaged": "lines that could not be read, and are kept verbatim as notes",
    "added": "events that were added",
    "known": "what the file tells and the conversation had already",
    "Imported.messages": "messages that were added",
    "new": "whether the conversation was begun by it",
    "notes": "lines of the file that have no place here, and are kept verbatim as notes",
    "answers": "answers of the model",
    "archived": "whether lists leave it out",
    "branches": "what was spent on the path to each leaf, by the leaf's version",
    "InTrash.bytes": "size of its file",
    "Purged.bytes": "size that its file had",
    "bytes": "size of the log; null over another persistence module",
    "cached_share": "share of the input tokens that came from the server's cache; null without input",
    "call": "the call as the model made it: `id`, `name`, `input`",
    "columns": "the names of its columns",
    "command": "true: `always` holds for this very command, not for the tool",
    "content": "what a call gave: text, or content blocks of the Messages API",
    "cost": "US dollars; null where the price of a model is not known",
    "created": "time of the first event",
    "cwd": "the directory in which the conversation works; null if its log does not say it any more",
    "damage": "what is wrong with the log; not there if nothing is",
    "data": "the raw content block where there is more than text in it, else empty",
    "decision": "what was decided of a call",
    "Statistics.depth": "how many entries there are from the root to the leaf",
    "deleted": "when it was moved to the trash",
    "depth": "0 on the line to the leaf, one more for each branch off it",
    "digest": "SHA-256 over the versions, topics and states of all its events, the same whatever keeps them; null where nothing had to be read",
    "entries": "entries on the path",
    "entry": "the entry that the copy goes on from; null: from the beginning",
    "Result.error": "why it failed; not there if it did not",
    "error": "why it failed",
    "event": "a stream event of the Messages API, as it came; or `retry` (`attempt`, `of`, `after` in seconds, `reason`) before another try",
    "Listed.events": "the old name of `version`",
    "Statistics.events": "the old name of `version`",
    "events": "how many events there are",
    "Copied.events": "how many events were added",
    "Synced.events": "how many events were added, or are the fork's own",
    "failed": "whether it is a result that is an error",
    "failed_calls": "calls of tools whose result is an error",
    "fate": "what became of it: saved, saved in part, or lost",
    "fates": "what became of each damaged place",
    "findings": "each thing that is wrong, or could not be checked",
    "fork": "the id of the fork, where the two went on differently; null: none was made",
    "from": "who said it",
    "InTrash.id": "the conversation; null: it is no log",
    "Purged.id": "the conversation; null: it was no log",
    "Result.id": "the conversation; null if the run failed before it had one",
    "id": "the conversation",
    "in_part": "events of which only a part could be saved, as notes",
    "input": "the arguments of a call",
    "is_compacted": "whether a summary stands for it in what the model gets",
    "is_error": "whether a call failed, or was refused",
    "is_leaf": "whether the next entry hangs from it",
    "is_on_path": "whether it is on the way to the leaf",
    "kind": "what kind of thing it is",
    "label": "the name of an entry; null: none",
    "labels": "the labels of its entries",
    "leaf": "the entry from which the next one hangs; null: none",
    "Complaint.line": "line of the input, from 1",
    "line": "line of the file, from 1; null if not known",
    "lost": "versions that are lost, as inclusive ranges",
    "max_tokens": "as the Messages API has it",
    "message": "in words, for people: in their language, and it may change",
    "RequestBody.messages": "as the Messages API has them",
    "messages": "how many messages stand on the path",
    "Listed.messages": "how many messages there are, on all branches",
    "model": "the model that answers next",
    "models": "what was spent with each model",
    "name": "the name of the conversation; null: none",
    "offset": "byte of the file, from 0; null if not known",
    "ok": "whether nothing is wrong",
    "order": "the file that holds the order",
    "outcome": "how the turn ended",
    "Copied.outcome": "what was done: `same` is nothing, it is all there",
    "Synced.outcome": "what was done: `merged`, names and labels of one after the work of the other; `deleted`, nothing, for one was deleted",
    "Copied.version": "the version of the last event, of the fork if one was made",
    "Synced.version": "the version of the last event, of the fork if one was made",
    "parted": "the first version at which the two differ; null: they did not",
    "parent": "the entry that it hangs from; null: it is a root",
    "Purged.path": "where the file was",
    "path": "where the file is now",
    "place": "the flag, variable or file that says it; null for a default",
    "position": "where it stands in the order of all events: its notification id",
    "proofs_dropped": "digests of requests that the loss broke",
    "proofs_kept": "digests of requests that still hold",
    "Approve.reason": "told to the model after a `no`",
    "LoggedEvent.reason": "in words: why it cannot be read; only then there",
    "reason": "in words: why",
    "records": "how many events stand in the order",
    "requests_proven": "requests that were rebuilt, and whose digest is the one recorded",
    "restored": "how many messages the conversation has already",
    "saved": "events that were saved whole",
    "seconds": "time spent waiting for answers",
    "side_files_kept": "whether whole outputs of its tools stay, because another log names them",
    "source": "the old name of `source_id`",
    "Listed.source_id": "the conversation that this is a fork of",
    "source_id": "the conversation that this was made from",
    "source_version": "the version of it that was copied, this one included",
    "state": "the data of the event: see [events.md](events.md); not there if it is unreadable",
    "stop_reason": "why the model stopped; null if it said nothing",
    "summary": "what a call would do, in a line",
    "table": "its name",
    "target": "the entry that the label is for",
    "Table.text": "what its rows are, in words, for people",
    "Result.text": "the text of the last answer",
    "Found.text": "the beginning of what it says, or the line in which it stands, cut to what is around it",
    "Found.tool": "the tool that was called, or whose result it is; null: none",
    "text": "what it says",
    "timestamp": "when it was recorded",
    "InTrash.title": "the name, or else the beginning of the first prompt; of what has none, the name of its file",
    "to": "which store was changed, or whose line became the fork: this one is `here`; null: neither",
    "title": "the name, or else the beginning of the first prompt",
    "Spent.tokens": "how many, by kind",
    "SpentOnBranch.tokens": "how many, by kind",
    "Listed.tokens": "how many tokens were spent, by kind; a fork counts its own",
    "tokens": "about how many tokens the context has",
    "tool": "the name of a tool",
    "tool_calls": "calls of tools",
    "tool_use_id": "the id of a call",
    "topic": "the name of an event: see [events.md](events.md)",
    "total": "all of it",
    "type": "what kind of line, or of error, it is",
    "unreadable": "the data of an event that this version cannot read, as it stands in the log; only then there",
    "updated": "time of the last event",
    "usage": "tokens by kind, summed over the turn",
    "v": "the old name of `version`",
    "value": "the value; null: not set",
    "Result.version": "the version after the turn; null if nobody knows",
    "version": "the number of an event in its conversation; of a conversation, that of its last event",
    "what": "in words: what is wrong",
}  # fmt: skip


def schema_of(types):
    """The JSON Schema of a line that is one of *types*."""
    refs, definitions = msgspec.json.schema_components(types)
    for name, definition in definitions.items():
        for key, value in definition.get("properties", {}).items():
            if "$ref" not in value and (info := meaning(name, key)):
                value["description"] = info
    lines = refs[0] if len(refs) == 1 else {"anyOf": list(refs)}
    dialect = "https://json-schema.org/draft/2020-12/schema"
    return {"$schema": dialect, **lines, "$defs": definitions}


def log_schema():
    """The JSON Schema of a line of a log: its header, or an event, whose state the topic tells."""
    _, definitions = msgspec.json.schema_components(TOPICS.values(), ref_template="#/$defs/{name}")
    for event in TOPICS.values():
        for key in ("originator_id", "originator_version"):  # the file and the line say them
            definitions[event.__name__]["properties"].pop(key, None)
    text, count = {"type": "string"}, {"type": "integer", "minimum": 1}
    line = {
        "v": count,
        "crc": {"type": "string", "pattern": "^[0-9a-f]{8}$"},
        "batch": {"type": "array", "items": count, "minItems": 2, "maxItems": 2},
        "base": {"type": "integer", "minimum": 0},
        "tracking": {"type": "array", "prefixItems": [text, count], "minItems": 2, "maxItems": 2},
    }
    events = [
        {
            "type": "object",
            "required": ["v", "topic", "state"],
            "properties": {
                "topic": {"const": topic},
                "state": {"$ref": f"#/$defs/{event.__name__}"},
            }
            | line,
        }
        for topic, event in TOPICS.items()
    ]
    other = {
        "description": "An event of a newer version, or one that is encrypted or compressed.",
        "type": "object",
        "required": ["v", "topic"],
        "properties": {"topic": {"not": {"enum": list(TOPICS)}}, **line},
    }
    sealed = other | {
        "required": ["v", "topic", "state64"],
        "properties": {"topic": text, "state64": text} | line,
    }
    header = {
        "type": "object",
        "required": ["format", "id"],
        "properties": {"format": {"const": FORMAT}, "id": text, "created": text},
    }
    return {
        "$schema": "https://json-schema.org/draft/2020-12/schema",
        "title": "A line of a log of Leftfold",
        "anyOf": [header, *events, sealed, other],
        "$defs": definitions,
    }


def schemas():
    """The text of each schema, by the name of its file."""
    found = {name: schema_of(types) for name, types in (OUTPUTS | STREAMS).items()}
    found["log-file"] = log_schema()
    return {
        f"{name}.json": json.dumps(schema, indent=1, ensure_ascii=False) + "\n"
        for name, schema in found.items()
    }


def meaning(type_, key):
    """What *key* means, in the output *type_* if it is special there."""
    return None if key == "type" and type_ != "Problem" else KEYS.get(f"{type_}.{key}") or KEYS[key]


def tables():
    """The tables of docs/json.md, as Markdown."""
    sections = []
    for name, types in OUTPUTS.items():
        sections.append(f"### `leftfold {name} --json`\n[schema](schemas/{name}.json)")
        sections += [_table(each) for each in types]
    titles = {
        "result": "### `-p --output json`",
        "stream-json": "### `--output stream-json`, and what `--input stream-json` prints",
        "input": "### What `--input stream-json` reads",
    }
    for name, types in STREAMS.items():
        sections.append(f"{titles[name]}\n[schema](schemas/{name}.json)")
        sections += [_table(each) for each in types]
    sections.append("### What stands inside")
    sections += [_table(each) for each in NESTED]
    return "\n\n".join(sections)


def _table(type_):
    info = msgspec.inspect.type_info(type_)
    if not isinstance(info, msgspec.inspect.StructType):
        return "One object: the key is the name of a setting, the value a `Setting`."
    said = " ".join(type_.__doc__.split())
    name = f"`{type_.__name__}`" if info.tag is None else f'`"type": "{info.tag}"`'
    rows = [
        f"| `{field.encode_name}` | {_type(field.type)} | {meaning(type_.__name__, field.encode_name)} |"
        for field in info.fields
    ]
    head = ["", "| key | value | |", "|---|---|---|"] if rows else []
    return "\n".join([f"**{name}** {said}", *head, *rows])


_NAMES = {"UUIDType": "id", "IntType": "number", "FloatType": "number", "BoolType": "true, false",
          "StrType": "text", "DateTimeType": "time", "NoneType": "null", "AnyType": "any"}  # fmt: skip


def _type(info):  # noqa: PLR0911
    match info:
        case msgspec.inspect.UnionType():
            return " or ".join(_type(each) for each in info.types)
        case msgspec.inspect.LiteralType():
            return ", ".join(f"`{value}`" for value in info.values)
        case msgspec.inspect.StructType():
            return f"`{info.cls.__name__}`"
        case msgspec.inspect.DictType():
            value = _type(info.value_type)
            return "object" if value == "any" else f"object of {value}"
        case msgspec.inspect.ListType() | msgspec.inspect.VarTupleType():
            return f"list of {_type(info.item_type)}"
        case msgspec.inspect.TupleType():
            return f"[{', '.join(_type(each) for each in info.item_types)}]"
        case _:
            return _NAMES[type(info).__name__]


def page(text):
    """The page *text* with its tables as they are now."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{tables()}\n\n{END}{after}"


def main():
    SCHEMAS.mkdir(exist_ok=True)
    for name, text in schemas().items():
        (SCHEMAS / name).write_text(text)
    PAGE.write_text(page(PAGE.read_text()))
    assert set(OUTPUTS) == set(COMMANDS)


if __name__ == "__main__":
    main()
