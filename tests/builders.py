"""One-line builders of events and conversations.

An entry's `parent` is the entry before it unless a test says otherwise; `conversation` numbers the
events 1, 2, 3 … (an event that has a version keeps it, and the count goes on from there).
"""

from copy import copy
from datetime import UTC, datetime, timedelta
from uuid import UUID

import msgspec

from domain import events
from domain.conversation import Conversation
from domain.history import History

ID = UUID("01920000-0000-7000-8000-000000000001")
SOURCE = UUID("01920000-0000-7000-8000-000000000000")
NOW = datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC)
MODEL = "claude-test"
PREVIOUS = -1
"""The parent that means: whatever entry came before."""

BASH = {
    "name": "bash",
    "description": "Run a command.",
    "input_schema": {"type": "object", "properties": {"command": {"type": "string"}}},
}
DOT = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="


# -- blocks --------------------------------------------------------------------------------------


def text(said, **more):
    return {"type": "text", "text": said, **more}


def thinking(thought, signature="signed", **more):
    return {"type": "thinking", "thinking": thought, "signature": signature, **more}


def redacted(data="opaque", **more):
    return {"type": "redacted_thinking", "data": data, **more}


def tool_use(call_id, name="bash", **arguments):
    return {"type": "tool_use", "id": call_id, "name": name, "input": arguments}


def tool_result(call_id, content="done", **more):
    return {"type": "tool_result", "tool_use_id": call_id, "content": content, **more}


def image(data=DOT, media_type="image/png"):
    return {
        "type": "image",
        "source": {"type": "base64", "media_type": media_type, "data": data},
    }


# -- events --------------------------------------------------------------------------------------


def event(cls, *, version=0, at=NOW, **body):
    return cls(originator_id=ID, originator_version=version, timestamp=at, **body)


def raw(value):
    return value if isinstance(value, msgspec.Raw) else msgspec.Raw(msgspec.json.encode(value))


def message(body, *, parent=PREVIOUS, **more):
    """Any message, however odd: *body* is JSON-like, or raw JSON already."""
    return event(events.MessageAppended, parent=parent, message=raw(body), **more)


def user(*content, **more):
    """What the user says: texts or blocks."""
    return message({"role": "user", "content": _blocks(content)}, **more)


def assistant(*content, model=MODEL, stop_reason="end_turn", **more):
    """What the model says: texts or blocks."""
    body = {"role": "assistant", "content": _blocks(content)}
    return message(body, model=model, stop_reason=stop_reason, **more)


def result(call_id, content="done", *, is_error=False, **more):
    """The result of one call, as its own entry."""
    return user(tool_result(call_id, content, **({"is_error": True} if is_error else {})), **more)


def compacted(summary="the past", *, first_kept=None, parent=PREVIOUS, **more):
    return event(events.Compacted, parent=parent, summary=summary, first_kept=first_kept, **more)


def branch_summarized(summary, *, left, parent=PREVIOUS, **more):
    return event(events.BranchSummarized, parent=parent, left=left, summary=summary, **more)


def note(content, *, visible=True, kind="note", parent=PREVIOUS, **more):
    return event(
        events.NoteAppended, parent=parent, kind=kind, content=content, visible=visible, **more
    )


def started(cwd="/work", **more):
    return events.Started(originator_id=ID, timestamp=NOW, cwd=cwd, **more)


def forked(source_version, *, entry=None, source_id=SOURCE, **more):
    return event(
        events.Forked, source_id=source_id, source_version=source_version, entry=entry, **more
    )


def model(name=MODEL, max_tokens=1000, **more):
    return event(events.ModelChanged, model=name, max_tokens=max_tokens, **more)


def learned(name=MODEL, *, context_window=None, max_tokens=None, **more):
    return event(
        events.LimitsLearned,
        model=name,
        context_window=context_window,
        max_tokens=max_tokens,
        **more,
    )


def withheld(targets, kinds=("image",), *, model=MODEL, reason="", **more):
    return event(
        events.ContentWithheld,
        targets=tuple(targets),
        kinds=tuple(kinds),
        model=model,
        reason=reason,
        **more,
    )


def thinking_level(level, **more):
    return event(events.ThinkingLevelChanged, level=level, **more)


def instructions(system="Be brief.", tools=(BASH,), **more):
    tools = list(tools) if isinstance(tools, tuple) else tools
    return event(events.InstructionsChanged, system=system, tools=raw(tools), **more)


def approved(call_id, decision="yes", tool="bash", **more):
    return event(events.ApprovalDecided, tool_use_id=call_id, tool=tool, decision=decision, **more)


def tool_started(call_id, **more):
    return event(events.ToolStarted, tool_use_id=call_id, **more)


def queued(said, **more):
    return event(events.PromptQueued, text=said, **more)


def withdrawn(target, **more):
    return event(events.PromptWithdrawn, target=target, **more)


def turn_ended(outcome="done", **more):
    return event(events.TurnEnded, outcome=outcome, **more)


def moved(target, **more):
    return event(events.LeafMoved, target=target, **more)


def labelled(target, label, **more):
    return event(events.LabelChanged, target=target, label=label, **more)


def renamed(name, **more):
    return event(events.Renamed, name=name, **more)


def archived(flag=True, **more):
    return event(events.Archived, archived=flag, **more)


def unrecognised(topic="Newer", state=b"{}", reason="unknown topic", **more):
    return event(events.Unrecognised, topic=topic, state=state, reason=reason, **more)


# -- whole conversations -------------------------------------------------------------------------


def numbered(*stream):
    """The events with versions 1, 2, 3 …, and every `PREVIOUS` parent filled in."""
    version, entry, result = 0, None, []
    for item in stream:
        version = item.originator_version or version + 1
        changes = {"originator_version": version}
        if isinstance(item, events.Entry) and item.parent == PREVIOUS:
            changes["parent"] = entry
        if isinstance(item, events.Entry):
            entry = version
        if isinstance(item, events.LeafMoved):
            entry = item.target
        result.append(msgspec.structs.replace(item, **changes))
    return result


class Believing:
    """Seals for which everything was said here."""

    def seal(self, _vouched_for):
        return ""

    def agrees(self, _vouched_for, _seal):
        return True


def conversation(*stream):
    """The conversation in which these events happened, all of them here."""
    talk = Conversation.replay(None, numbered(*stream))
    if talk is not None:
        talk.seals = Believing()
    return talk


def lost(stream, *versions):
    """The events of *stream* without those of *versions*."""
    return [item for item in stream if item.originator_version not in versions]


class Clock:
    """A clock that advances by a second at each look."""

    def __init__(self, now=NOW):
        self.now = now

    def __call__(self):
        self.now += timedelta(seconds=1)
        return self.now


def new_conversation(**more):
    """A conversation made by commands, with a model, instructions and a clock of its own."""
    talk = Conversation.start(ID, timestamp=NOW, cwd="/work", **more)
    talk.clock = Clock()
    talk.change_model(MODEL, max_tokens=1000)
    talk.change_instructions("Be brief.", [BASH])
    return talk


def state(talk):
    """Everything that a conversation is, as something that can be compared and shown."""
    if talk is None:
        return None
    hidden = {"clock", "seals", "restored_from", "_pending_events"}
    hidden |= vars(History(load=None)).keys()
    facts = {key: value for key, value in sorted(vars(talk).items()) if key not in hidden}
    tree = talk._reach(1)
    names = ("parents", "turns", "gaps", "leaf", "is_orderly")
    past = {name: copy(getattr(tree, name)) for name in names} | {"entries": dict(tree.entries)}
    started = {call: list(leaves) for call, leaves in tree.started_tools.items()}
    order, count = list(tree.entries), talk.message_count()
    return facts | past | {"started_tools": started, "order": order, "count": count}


def _blocks(content):
    return [text(part) if isinstance(part, str) else part for part in content]
