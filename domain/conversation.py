"""The aggregate: what may be said to a conversation (commands), and what it then is (the fold).

State is a left fold over events. `Conversation.when` is the one place where it changes; a command
checks, then triggers an event, and never touches state itself. The fold tolerates whatever a
damaged log holds: gaps, entries whose parent is lost, a first event that is not `Started`.
"""

from __future__ import annotations

from itertools import takewhile
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import UUID

import msgspec
from eventsourcing.domain import BaseAggregate

from domain import events
from domain.calls import Call, calls_of
from domain.errors import (
    HistoryLostError,
    InvalidCommandError,
    UnknownCallError,
    UnknownEntryError,
)
from domain.events import Entry, MessageAppended, Version
from domain.history import History
from domain.limits import Limits
from domain.raw_messages import JsonObject, tool_result_message, user_message
from domain.seals import NO_SEALS, Seals, is_own_directory, is_sealed, sealed
from domain.snapshot import FACTS, ConversationSnapshot
from domain.text import valid, valid_json

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
    from datetime import datetime

    from domain.history import Load
    from domain.messages import ToolUseBlock

THINKING_LEVELS = ("off", "low", "medium", "high", "xhigh", "max")

DECISIONS = ("yes", "always", "no")

OUTCOME_UNKNOWN = (
    "The outcome of this call is unknown: it was started, and interrupted before its result was "
    "recorded. It was not run again; check before you repeat it."
)
NEVER_STARTED = "This call was never started: the turn was interrupted before."


class Gap(NamedTuple):
    """Versions *first*…*last* are missing, or unreadable; *leaf* was the leaf just before them."""

    first: Version
    last: Version
    leaf: Version | None
    unreadable: bool = False


class Conversation(BaseAggregate[UUID]):
    """A conversation: a tree of entries, a leaf, and the facts around them."""

    Event = events.Event

    clock: Callable[[], datetime] = staticmethod(events.Event.create_timestamp)
    """Tells the time of the next event."""

    seals: Seals = NO_SEALS
    """Tells what was recorded here. Whoever opens a log hands one in."""

    # -- life ----------------------------------------------------------------------------------

    @classmethod
    def blank(cls, conversation_id: UUID, timestamp: datetime) -> Conversation:
        """Return a conversation in which nothing has happened yet (version 0)."""
        self = cls.__new__(cls)
        self._begin(conversation_id, timestamp)
        return self

    def _begin(self, conversation_id: UUID, timestamp: datetime) -> None:
        self.__base_init__(conversation_id, 0, timestamp)
        self.cwd: str | None = None
        self.cwd_seal = ""
        self.name: str | None = None
        self.archived = False
        self.model: str | None = None
        self.max_tokens: int | None = None
        self.caching = False
        self.thinking_level: str | None = None
        self.instructions: events.InstructionsChanged | None = None
        self.origin: events.Forked | None = None
        self.leaf: Version | None = None
        self.labels: dict[Version, str] = {}
        self.queued: dict[Version, events.PromptQueued] = {}
        self.allowed: list[events.ApprovalDecided] = []
        self.limits: dict[str, Limits] = {}
        self.withheld: set[tuple[str, Version, str]] = set()
        self.last_turn: events.TurnEnded | None = None
        self.gaps: list[Gap] = []
        self.unrecognised: list[events.Unrecognised] = []
        self.is_orderly = True
        self._history = History(load=_nothing)
        self._counted: tuple[Version | None, int] = (None, 0)
        self.restored_from: Version = 0

    @classmethod
    def start(
        cls,
        conversation_id: UUID,
        *,
        timestamp: datetime,
        cwd: str,
        program: str = "",
        version: str = "",
        metadata: JsonObject | None = None,
        seals: Seals = NO_SEALS,
    ) -> Conversation:
        """Begin a conversation in the directory *cwd*."""
        self = cls.blank(conversation_id, timestamp)
        self.seals = seals
        self._trigger_sealed(
            events.Started,
            timestamp=timestamp,
            cwd=cwd,
            program=program,
            version=version,
            metadata=valid_json(metadata or {}),
        )
        return self

    @classmethod
    def replay(
        cls,
        conversation: Conversation | None,
        stream: Iterable[events.Event],
        *,
        load: Load | None = None,
    ) -> Conversation | None:
        """Fold *stream* into *conversation*, or into a new one; None if there is no event.

        A projector function for the library's `Repository.get`. The stream may begin with a
        snapshot if *load* fetches the events before it.
        """
        for event in stream:
            if isinstance(event, ConversationSnapshot):
                conversation = cls.restored(event, load or _nothing)
                continue
            if conversation is None:
                conversation = cls.blank(event.originator_id, event.timestamp)
            conversation.fold(event)
        if conversation is not None and conversation.leaf is not None:
            conversation.has_entry(conversation.leaf)  # looked at at once: it may prove to be none
        return conversation

    # -- snapshots -----------------------------------------------------------------------------

    def snapshot(self) -> ConversationSnapshot | None:
        """Return what opens this conversation without its past; None if it has to be replayed.

        That is so where the log is damaged: what is lost can only be told by reading all of it.
        """
        if not self.is_orderly or self.gaps or self.pending_events:
            return None
        snapshot = ConversationSnapshot(
            originator_id=self.id,
            originator_version=self.version,
            timestamp=self.modified_on,
            created_on=self.created_on,
            labels=self.labels,
            queued=list(self.queued.values()),
            allowed=self.allowed,
            limits=self.limits,
            withheld=sorted(self.withheld),
            messages=self.message_count(),
            **{fact: getattr(self, fact) for fact in FACTS},
        )
        return sealed(snapshot, self.seals)

    @classmethod
    def restored(cls, snapshot: ConversationSnapshot, load: Load) -> Conversation:
        """Return the conversation of a *snapshot*; *load* fetches of its past what is needed."""
        self = cls.blank(snapshot.originator_id, snapshot.created_on)
        self._version = self.restored_from = snapshot.originator_version
        self._modified_on = snapshot.timestamp
        for fact in FACTS:
            setattr(self, fact, getattr(snapshot, fact))
        self.labels = dict(snapshot.labels)
        self.queued = {event.originator_version: event for event in snapshot.queued}
        self.allowed = list(snapshot.allowed)
        self.limits, self.withheld = dict(snapshot.limits), set(snapshot.withheld)
        self._counted = snapshot.leaf, snapshot.messages
        self._history = History(since=self._version + 1, leaf=snapshot.leaf, load=load)
        return self

    def _reach(self, version: Version) -> History:
        """Return the history with everything from *version* on in it."""
        history = self._history
        if version < history.since and not history.reach(version):
            self._start_over()
        return self._history

    def _start_over(self) -> None:
        """Replay all of the log: it is not what it was when the snapshot was taken."""
        whole = self.replay(None, self._history.load(1, self.version))
        if whole is None:
            raise HistoryLostError(self.id)
        for event in self.pending_events:
            event.mutate(whole)
        kept = ("clock", "seals", "_pending_events")
        vars(self).update({k: item for k, item in vars(whole).items() if k not in kept})

    # -- the fold ------------------------------------------------------------------------------

    def fold(self, event: events.Event) -> None:
        """Change state by *event*, whose version rises; a repeated version is ignored."""
        version = event.originator_version
        if version <= self._version:
            return
        if version > self._version + 1:
            self.gaps.append(Gap(self._version + 1, version - 1, self.leaf))
        self._version = version
        self._modified_on = event.timestamp
        self.when(event)

    def when(self, event: events.Event) -> None:  # noqa: C901, PLR0912 - one flat table of all events
        """Change state by what *event* says happened."""
        match event:
            case Entry(originator_version=version, parent=parent):
                history = self._history
                history.entries[version] = event
                history.parents[version] = (
                    parent if parent == self.leaf else self._resolve(parent, before=version)
                )
                self.leaf = version
                self.last_turn = None
            case events.ToolStarted(tool_use_id=tool_use_id):
                self._history.started_tools.setdefault(tool_use_id, []).append(self.leaf)
            case events.TurnEnded():
                self.last_turn = event
                self._history.turns.append(event)
            case events.ApprovalDecided(decision="always"):
                self.allowed.append(event)
            case events.LeafMoved(target=target):
                self.leaf = self._resolve(target, before=event.originator_version)
            case events.ModelChanged(model=model, max_tokens=max_tokens, caching=caching):
                self.model, self.max_tokens, self.caching = model, max_tokens, caching
            case events.LimitsLearned(model=model, context_window=window, max_tokens=max_tokens):
                known = self.limits.get(model, Limits())
                self.limits[model] = known.and_then(window, max_tokens)
            case events.ContentWithheld(targets=targets, kinds=kinds, model=model):
                self.withheld.update((model, each, kind) for each in targets for kind in kinds)
            case events.ThinkingLevelChanged(level=level):
                self.thinking_level = level
            case events.InstructionsChanged():
                self.instructions = event
            case events.PromptQueued():
                self.queued[event.originator_version] = event
            case events.PromptWithdrawn(target=target):
                self.queued.pop(target, None)
            case events.LabelChanged(target=target, label=None):
                self.labels.pop(target, None)
            case events.LabelChanged(target=target, label=str(label)):
                self.labels[target] = label
            case events.Renamed(name=name):
                self.name = name
            case events.Archived(archived=archived):
                self.archived = archived
            case events.Started(cwd=cwd, seal=seal) if self.cwd is None:  # it begins once
                self.cwd, self.cwd_seal = cwd, seal
            case events.Forked():
                self.origin = event
                self.queued.clear()
                self.allowed.clear()
            case events.Unrecognised(originator_version=version):
                self.unrecognised.append(event)
                self.gaps.append(Gap(version, version, self.leaf, unreadable=True))

    def _resolve(self, target: Version | None, *, before: Version) -> Version | None:
        """Return the entry that *target* names, or the one that stands in for a lost one.

        An entry that is missing lay in a gap (or was never an entry): what hung from it hangs
        from the leaf before that gap, the nearest earlier entry of that branch that is left.
        """
        if target is None or (target < before and self._is_taken_for_entry(target)):
            return target
        self.is_orderly = False
        for gap in self.gaps:
            if gap.first <= target <= gap.last:
                return gap.leaf
        return self.leaf

    def _is_taken_for_entry(self, version: Version) -> bool:
        """Whether *version* is an entry; what is not in memory is, until it turns out not to be."""
        history = self._history
        history.await_entry(version)
        return version in history.entries or 0 < version < history.since

    # -- the past ------------------------------------------------------------------------------

    @property
    def entries(self) -> Mapping[Version, Entry]:
        """All entries, in order."""
        return self._reach(1).entries

    @property
    def parents(self) -> Mapping[Version, Version | None]:
        """What each entry hangs from: another one, or nothing."""
        return self._reach(1).parents

    @property
    def turns(self) -> Sequence[events.TurnEnded]:
        """How every turn ended, in order."""
        return self._reach(1).turns

    def has_entry(self, version: Version) -> bool:
        """Whether *version* is an entry."""
        return version > 0 and version in self._reach(version).entries

    def entry(self, version: Version) -> Entry:
        """Return the entry *version*.

        Raises:
            UnknownEntryError: it is none.
        """
        if not self.has_entry(version):
            raise UnknownEntryError(version)
        return self._history.entries[version]

    def parent_of(self, version: Version) -> Version | None:
        """Return what the entry *version* hangs from.

        Raises:
            UnknownEntryError: *version* is not an entry.
        """
        self.entry(version)
        parent = self._history.parents[version]
        if parent is not None and parent < self._history.since:
            self._reach(parent)  # which may find that it is no entry
        return self._history.parents[version]

    def since(self, version: Version) -> Iterator[Entry]:
        """Yield the entries from *version* on, the newest first."""
        entries = self._reach(version).entries
        for number in reversed(entries):
            if number < version:
                return
            yield entries[number]

    def backwards(self, leaf: Version | None) -> Iterator[Entry]:
        """Yield the entries from *leaf* to the root, for whoever stops long before.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        while leaf is not None:
            history = self._reach(leaf) if leaf < self._history.since else self._history
            entry = history.entries.get(leaf)
            if entry is None:
                raise UnknownEntryError(leaf)
            yield entry
            parent = self._history.parents[leaf]
            known = parent is None or parent >= self._history.since
            leaf = parent if known else self.parent_of(leaf)

    def path(self, leaf: Version | None) -> tuple[Entry, ...]:
        """Return the entries from the root to *leaf*.

        Raises:
            UnknownEntryError: *leaf* is not an entry.
        """
        return tuple(self.backwards(leaf))[::-1]

    def _path_from(self, first: Version) -> list[Entry]:
        """Return the end of the path to the leaf that begins with the entry *first*.

        Raises:
            UnknownEntryError: *first* is not on the path.
        """
        end = list(takewhile(lambda e: e.originator_version >= first, self.backwards(self.leaf)))
        if not end or end[-1].originator_version != first:
            raise UnknownEntryError(first)
        return end[::-1]

    def messages(self) -> tuple[MessageAppended, ...]:
        """Return the messages on the path to the leaf."""
        return tuple(e for e in self.path(self.leaf) if isinstance(e, MessageAppended))

    def message_count(self) -> int:
        """Return how many messages are on the path to the leaf."""
        known, before = self._counted
        count = 0
        for entry in self.backwards(self.leaf):
            if entry.originator_version == known:
                count += before
                break
            count += isinstance(entry, MessageAppended)
        self._counted = self.leaf, count
        return count

    # -- what was recorded here ----------------------------------------------------------------

    @property
    def queue(self) -> dict[Version, str]:
        """The prompts that wait to be sent, by their versions: those that were typed here."""
        return {version: event.text for version, event in self._queued(is_ours=True)}

    @property
    def held_back(self) -> dict[Version, str]:
        """The prompts that wait in this log, and were not typed here: nobody sends them."""
        return {version: event.text for version, event in self._queued(is_ours=False)}

    def _queued(self, *, is_ours: bool) -> Iterator[tuple[Version, events.PromptQueued]]:
        for version, event in self.queued.items():
            if is_sealed(event, self.seals) == is_ours:
                yield version, event

    def allowed_elsewhere(self) -> list[events.ApprovalDecided]:
        """Return each "always" of this log that was not said here: it allows nothing."""
        return [said for said in self.allowed if not is_sealed(said, self.seals)]

    def works_here(self) -> bool:
        """Whether the conversation was begun here in its directory."""
        return self.cwd is None or is_own_directory(self.cwd, self.cwd_seal, self.seals)

    def has_own_calls(self) -> bool:
        """Whether the newest answer, with its calls, was recorded here."""
        asked_at, _ = self._newest_calls(self.leaf)
        entry = self._history.entries.get(asked_at)
        return isinstance(entry, MessageAppended) and is_sealed(entry, self.seals)

    @property
    def known_limits(self) -> Limits:
        """What the server of today's model has said of its limits."""
        return self.limits.get(self.model or "", Limits())

    # -- questions -----------------------------------------------------------------------------

    def open_calls(self) -> tuple[ToolUseBlock, ...]:
        """Return the calls of the newest assistant message that have no result yet, in order.

        Calls that cannot be run are not among them: see `faulty_calls`.
        """
        return self._newest_calls(self.leaf)[1]

    def faulty_calls(self) -> tuple[Call, ...]:
        """Return the calls of the newest assistant message that nobody can run.

        Their results, which say why, are the context's to make: none can be recorded for them.
        """
        answer = self._newest_answer(self.leaf)
        blocks = [] if answer is None else answer.said.blocks
        return tuple(call for call in calls_of(blocks) if call.fault)

    def _newest_calls(self, leaf: Version | None) -> tuple[Version, tuple[ToolUseBlock, ...]]:
        """Return the newest assistant message on the path to *leaf*, and its unanswered calls."""
        answered: set[str] = set()
        for entry in self.backwards(leaf):
            if not isinstance(entry, MessageAppended):
                continue
            said = entry.said
            if said.role == "assistant":
                calls = [call for call in calls_of(said.blocks) if not call.fault]
                open_calls = [call.raw for call in calls if call.id not in answered]
                return entry.originator_version, _typed(open_calls)
            answered.update(result["tool_use_id"] for result in said.tool_results)
        return 0, ()

    def _newest_answer(self, leaf: Version | None) -> MessageAppended | None:
        """Return the newest assistant message on the path to *leaf*."""
        for entry in self.backwards(leaf):
            if isinstance(entry, MessageAppended) and entry.said.role == "assistant":
                return entry
        return None

    def was_started(self, call: ToolUseBlock) -> bool:
        """Whether an open call of the newest assistant message has begun to run."""
        return (
            self.outcome_of(call.id, asked_at=self._newest_calls(self.leaf)[0]) == OUTCOME_UNKNOWN
        )

    def outcome_of(self, tool_use_id: str, *, asked_at: Version) -> str:
        """Say what is known of a call without a result that the entry *asked_at* asked for.

        Models use ids again: only a start that belongs to this very call counts. Where events are
        lost after it, the start may have been among them.
        """
        starts = self._reach(asked_at).started_tools.get(tool_use_id, [])
        lost = [gap.leaf for gap in self.gaps if gap.first > asked_at]
        answers = (self._newest_answer(leaf) for leaf in (*starts, *lost))
        started = any(answer and answer.originator_version == asked_at for answer in answers)
        return OUTCOME_UNKNOWN if started else NEVER_STARTED

    # -- commands ------------------------------------------------------------------------------

    def append_prompt(self, text: str, attachments: Sequence[JsonObject] = ()) -> None:
        """Append what the user says, and the content blocks that go with it.

        Raises:
            InvalidCommandError: *text* is blank; the API would refuse it (case B4).
        """
        if not text.strip():
            raise InvalidCommandError("A prompt needs some text.")
        self._append(events.MessageAppended, message=_raw(user_message(text, attachments)))

    def append_answer(
        self,
        content: list[JsonObject],
        *,
        stop_reason: str | None,
        answers: Version | None = None,
        model: str | None = None,
        usage: JsonObject | None = None,
        response_id: str | None = None,
        duration: float | None = None,
        request_digest: str | None = None,
        request_version: Version | None = None,
        projection: str | None = None,
    ) -> None:
        """Append what the model said: its content blocks as they came.

        It hangs from the entry *answers* that its request ended with, and was said by the *model*
        that was asked, whatever happened while it arrived: the leaf and today's model by default.
        """
        content = [_recordable(raw) for raw in content]
        self._require_entry(answers)
        has_calls = any(raw.get("type") == "tool_use" for raw in content)
        trigger = self._trigger_sealed if has_calls else self._trigger
        trigger(
            events.MessageAppended,
            parent=self.leaf if answers is None else answers,
            message=_raw({"role": "assistant", "content": content}),
            model=self.model if model is None else model,
            stop_reason=stop_reason,
            usage=valid_json(usage),
            response_id=response_id,
            duration=duration,
            request_digest=request_digest,
            request_version=request_version,
            projection=projection,
        )

    def decide(
        self,
        call: ToolUseBlock,
        decision: str,
        *,
        command: str | None = None,
        reason: str = "",
        cwd: str = "",
    ) -> None:
        """Record whether the user lets *call*, which works in *cwd*, run: yes, always or no.

        ``always`` holds for the tool from here on, or with a *command* for that command alone. A
        call that may not run gets *reason* as its result.

        Raises:
            UnknownCallError: the call is not open.
        """
        if decision not in DECISIONS:
            raise InvalidCommandError(f"{decision!r} is no decision: {', '.join(DECISIONS)}.")
        self._require_open(call.id)
        trigger = self._trigger_sealed if decision == "always" else self._trigger
        trigger(
            events.ApprovalDecided,
            tool_use_id=call.id,
            tool=call.name,
            decision=decision,
            command=command,
            reason=reason,
            cwd=cwd,
        )
        if decision == "no":
            self.append_tool_result(call.id, reason, is_error=True)

    def is_allowed(self, call: ToolUseBlock, *, cwd: str = "") -> bool:
        """Whether the user always allows *call* in *cwd*: its tool, or exactly its command.

        It has to have been said here: what a log says gives nobody a permission.
        """
        command = call.input.get("command")
        return any(
            said.tool == call.name
            and (said.command is None or said.command == command)
            and said.cwd == cwd
            and is_sealed(said, self.seals)
            for said in self.allowed
        )

    def start_tool(self, tool_use_id: str) -> None:
        """Record that a tool is about to run, before it does.

        Raises:
            UnknownCallError: no such call is open.
        """
        self._require_open(tool_use_id)
        self._trigger(events.ToolStarted, tool_use_id=tool_use_id)

    def append_tool_result(
        self,
        tool_use_id: str,
        content: str | list[JsonObject],
        *,
        is_error: bool = False,
        seen: Mapping[str, str] | None = None,
    ) -> None:
        """Append the result of one call. A call has one result, of whatever kind (case A3).

        *seen* are the files that the model knows whole from it, and their digests.

        Raises:
            UnknownCallError: no such call is open.
        """
        self._trigger(
            events.MessageAppended,
            parent=self._place_of_result(tool_use_id),
            message=_raw(tool_result_message(tool_use_id, content, is_error=is_error)),
            seen=valid_json(seen or {}),
        )

    def _place_of_result(self, tool_use_id: str) -> Version | None:
        """Return what a result hangs from: the leaf, or the branch that was left while it ran.

        Raises:
            UnknownCallError: no such call is open in either.
        """
        if any(call.id == tool_use_id for call in self.open_calls()):
            return self.leaf
        history = self._reach(1)
        for place in reversed(history.started_tools.get(tool_use_id, [])):
            for version, entry in history.entries.items():
                is_next = place is not None and history.parents[version] == place
                if is_next and isinstance(entry, MessageAppended) and entry.said.tool_results:
                    place = version  # noqa: PLW2901 - the results that came before it
            if any(call.id == tool_use_id for call in self._newest_calls(place)[1]):
                return place
        raise UnknownCallError(tool_use_id)

    def close_open_calls(self) -> None:
        """Answer every open call with what is known: outcome unknown, or never started."""
        asked_at, calls = self._newest_calls(self.leaf)
        for call in calls:
            text = self.outcome_of(call.id, asked_at=asked_at)
            self.append_tool_result(call.id, text, is_error=True)

    def end_turn(
        self,
        outcome: str,
        *,
        error: events.TurnError | None = None,
        spent: JsonObject | None = None,
        lost: JsonObject | None = None,
    ) -> None:
        """Record that a turn is over: done, interrupted or failed."""
        if error is not None:
            error = events.TurnError(valid(error.type), valid(error.message), error.request_id)
        self._trigger(
            events.TurnEnded,
            outcome=outcome,
            error=error,
            spent=valid_json(spent or {}),
            lost=valid_json(lost or {}),
        )

    def change_model(self, model: str, *, max_tokens: int, caching: bool = False) -> None:
        """Ask *model* from here on, for answers of up to *max_tokens*; recorded if it differs.

        Raises:
            InvalidCommandError: the model has no name, or one that is no line of text, or may not
                say a single token.
        """
        model = valid(model)
        if not model.strip() or not model.isprintable():
            raise InvalidCommandError(f"A model needs a name, in one line, not {model!r}.")
        if max_tokens < 1:
            raise InvalidCommandError("An answer needs at least one token.")
        if (model, max_tokens, caching) != (self.model, self.max_tokens, self.caching):
            self._trigger(events.ModelChanged, model=model, max_tokens=max_tokens, caching=caching)

    def learn_limits(
        self, model: str, *, context_window: int | None = None, max_tokens: int | None = None
    ) -> None:
        """Record what the server of *model* said of its limits; nothing if it is known already."""
        known = self.limits.get(model, Limits())
        if known.and_then(context_window, max_tokens) != known:
            self._trigger(
                events.LimitsLearned,
                model=model,
                context_window=context_window,
                max_tokens=max_tokens,
            )

    def withhold(self, targets: Sequence[Version], kinds: Sequence[str], *, reason: str) -> None:
        """Send no blocks of these *kinds* of the entries *targets* to today's model any more.

        Raises:
            UnknownEntryError: one of *targets* is not an entry.
        """
        for target in targets:
            self._require_entry(target)
        self._trigger(
            events.ContentWithheld,
            targets=tuple(targets),
            kinds=tuple(map(valid, kinds)),
            model=self.model or "",
            reason=reason,
        )

    def change_thinking_level(self, level: str) -> None:
        """Let the model think as hard as *level* says from here on; recorded if it differs."""
        if level not in THINKING_LEVELS:
            choices = ", ".join(THINKING_LEVELS)
            raise InvalidCommandError(f"{level!r} is not a thinking level: {choices}.")
        if level != self.thinking_level:
            self._trigger(events.ThinkingLevelChanged, level=level)

    def change_instructions(self, system: str, tools: list[JsonObject]) -> None:
        """Send this system prompt and these tools from here on; recorded if they differ."""
        system, raw = valid(system), _raw(tools)
        now = self.instructions
        if now is None or (now.system, bytes(now.tools)) != (system, bytes(raw)):
            self._trigger(events.InstructionsChanged, system=system, tools=raw)

    def rename(self, name: str | None) -> None:
        """Give the conversation a name; a blank one takes it away."""
        cleaned = " ".join(valid(name or "").split()) or None
        if cleaned != self.name:
            self._trigger(events.Renamed, name=cleaned)

    def archive(self, *, archived: bool = True) -> None:
        """Put the conversation away, or bring it back."""
        if archived != self.archived:
            self._trigger(events.Archived, archived=archived)

    def label(self, target: Version, text: str | None) -> None:
        """Give the entry *target* a label; a blank one takes it away.

        Raises:
            UnknownEntryError: *target* is not an entry.
            InvalidCommandError: the label would read as a version.
        """
        self._require_entry(target)
        cleaned = " ".join(valid(text or "").split()) or None
        if cleaned is not None and cleaned.lstrip("-").isdigit():
            raise InvalidCommandError(f"{cleaned!r} would be read as an entry's number.")
        if cleaned != self.labels.get(target):
            self._trigger(events.LabelChanged, target=target, label=cleaned)

    def move_leaf(self, target: Version | None) -> None:
        """Let the next entry hang from *target*; from nothing, for None.

        Raises:
            UnknownEntryError: *target* is not an entry.
        """
        self._require_entry(target)
        if target != self.leaf:
            self._trigger(events.LeafMoved, target=target)

    def leave_branch(
        self,
        target: Version | None,
        summary: str,
        *,
        model: str | None = None,
        usage: JsonObject | None = None,
        asked: events.SummaryRequests | None = None,
    ) -> None:
        """Move the leaf to *target*, and say there what happened on the branch that was left.

        Raises:
            UnknownEntryError: *target* is not an entry, or there is no branch to leave.
        """
        left = self.leaf if asked is None else asked.leaf
        if left is None:
            raise UnknownEntryError(0)
        self.move_leaf(target)
        self._append(
            events.BranchSummarized,
            left=left,
            summary=valid(summary),
            model=model,
            usage=valid_json(usage),
            asked=asked,
        )

    def compact(
        self,
        summary: str,
        *,
        first_kept: Version | None,
        tokens_before: int,
        reason: str,
        model: str | None = None,
        usage: JsonObject | None = None,
        asked: events.SummaryRequests | None = None,
    ) -> None:
        """Let *summary* stand for everything on the path before the entry *first_kept*.

        Raises:
            UnknownEntryError: *first_kept* is not on the path.
            InvalidCommandError: the summary is blank.
        """
        if not summary.strip():
            raise InvalidCommandError("A compaction needs a summary.")
        try:
            parent = (
                self.leaf
                if first_kept is None
                else self._path_from(first_kept)[-1].originator_version
            )
        except UnknownEntryError:
            if asked is None:
                raise
            parent = asked.leaf  # the leaf was moved while the summary was written
        self._trigger(
            events.Compacted,
            parent=parent,
            summary=valid(summary),
            first_kept=first_kept,
            tokens_before=tokens_before,
            model=model,
            usage=valid_json(usage),
            reason=reason,
            asked=asked,
        )

    def carry_over(
        self,
        source: Conversation,
        summary: str,
        first_kept: Version,
        *,
        usage: JsonObject | None = None,
    ) -> None:
        """Begin, in a new conversation, from a summary of *source* and its path from *first_kept*.

        The huge log can be left behind: this one needs nothing of it, and says where it is from.

        Raises:
            UnknownEntryError: *first_kept* is not on the path of *source*.
        """
        kept = source._path_from(first_kept)
        self._append(
            events.Compacted,
            summary=valid(summary),
            first_kept=None,
            model=source.model,
            usage=valid_json(usage),
            reason="rotation",
        )
        for entry in kept:
            match entry:
                case MessageAppended(message=message, model=model, stop_reason=why, seen=seen):
                    # What it cost, and the request behind it, belong to the source.
                    self._append(
                        MessageAppended, message=message, model=model, stop_reason=why, seen=seen
                    )
                case events.BranchSummarized(summary=text):
                    self._append(
                        events.NoteAppended, kind="branch summary", content=text, visible=True
                    )
                case events.NoteAppended(kind=kind, content=text, visible=visible):
                    self.append_note(kind, text, visible=visible)
        for name, limits in source.limits.items():
            self.learn_limits(name, **limits._asdict())
        self._trigger(
            events.Forked,
            source_id=source.id,
            source_version=source.version,
            entry=source.leaf,
        )

    def append_note(self, kind: str, content: str, *, visible: bool) -> None:
        """Append something that is no message; *visible* says whether the model sees it."""
        self._append(events.NoteAppended, kind=valid(kind), content=valid(content), visible=visible)

    def queue_prompt(self, text: str) -> None:
        """Keep what was typed while a turn runs."""
        if not text.strip():
            raise InvalidCommandError("A prompt needs some text.")
        self._trigger_sealed(events.PromptQueued, text=valid(text))

    def deliver_prompts(self, attachments: Mapping[Version, Sequence[JsonObject]]) -> None:
        """Append the queued prompts, in order, as what the user says.

        *attachments* are the content blocks that go with some of them, by their versions.
        """
        for version, text in self.queue.items():
            self.withdraw_prompt(version)
            self.append_prompt(text, attachments.get(version, ()))

    def withdraw_prompt(self, target: Version) -> None:
        """Take a queued prompt back; *target* is the version of its `PromptQueued`."""
        if target not in self.queued:
            raise InvalidCommandError(f"No prompt is queued as {target}.")
        self._trigger(events.PromptWithdrawn, target=target)

    # -- the common part of commands -----------------------------------------------------------

    def _append(self, event_class: type[Entry], **body: Any) -> None:
        self._trigger(event_class, parent=self.leaf, **body)

    def _trigger(self, event_class: type[events.Event], **body: Any) -> None:
        body = {key: valid(item) if isinstance(item, str) else item for key, item in body.items()}
        self.trigger_event(event_class, **{"timestamp": self.clock(), **body})

    def _trigger_sealed(self, event_class: type[Any], **body: Any) -> None:
        """Trigger an event with the seal that shows that it was recorded here."""
        body = {key: valid(item) if isinstance(item, str) else item for key, item in body.items()}
        body = {"timestamp": self.clock(), **body}
        place = {"originator_id": self.id, "originator_version": self.version + 1}
        seal = sealed(event_class(**place, **body), self.seals).seal
        self.trigger_event(event_class, **body, seal=seal)

    def _require_entry(self, target: Version | None) -> None:
        if target is not None:
            self.entry(target)

    def _require_open(self, tool_use_id: str) -> None:
        if all(call.id != tool_use_id for call in self.open_calls()):
            raise UnknownCallError(tool_use_id)


def _typed(calls: Sequence[JsonObject]) -> tuple[ToolUseBlock, ...]:
    """Return *calls*, which may run, typed and validated."""
    if not calls:
        return ()
    from domain.messages import ToolUseBlock  # noqa: PLC0415 - pydantic is not needed to fold

    return tuple(map(ToolUseBlock.model_validate, calls))


def _nothing(_first: Version, _last: Version) -> Sequence[events.Event]:
    return ()


def _recordable(raw: JsonObject) -> JsonObject:
    """Return *raw* as the log can hold it; thinking that had to be changed loses its signature.

    The API takes thinking back byte for byte, or refuses the request (case C2).
    """
    block: JsonObject = valid_json(raw)
    if block != raw and block.get("type") in ("thinking", "redacted_thinking"):
        return block | {"signature" if block["type"] == "thinking" else "data": ""}
    return block


def _raw(value: Any) -> msgspec.Raw:
    """Return *value* as undecoded JSON, all text in it made valid."""
    return msgspec.Raw(msgspec.json.encode(valid_json(value)))
