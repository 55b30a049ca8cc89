"""The aggregate: what may be said to a conversation, and what can be asked of it.

A command checks, then triggers an event, and never touches state itself: what a conversation is,
its events alone tell (see `domain.fold`).
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from domain import events
from domain.calls import Call, calls_of
from domain.errors import InvalidCommandError, UnknownCallError, UnknownEntryError
from domain.events import Entry, MessageAppended, Version
from domain.fold import Fold
from domain.limits import Limits
from domain.messages import ToolUseBlock, tool_result_message, user_message
from domain.seals import NO_KEY, Seals, is_own_directory, is_sealed, sealed
from domain.text import valid, valid_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence
    from datetime import datetime
    from uuid import UUID

    from domain.messages import JsonObject

THINKING_LEVELS = ("off", "low", "medium", "high", "xhigh", "max")

DECISIONS = ("yes", "always", "no")

OUTCOME_UNKNOWN = (
    "The outcome of this call is unknown: it was started, and interrupted before its result was "
    "recorded. It was not run again; check before you repeat it."
)
NEVER_STARTED = "This call was never started: the turn was interrupted before."


class Conversation(Fold):
    """A conversation: what may be said to it, and what can be asked of it."""

    Event = events.Event

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
        seals: Seals = NO_KEY,
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
        entry = self._tree.entries.get(asked_at)
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
        blocks = [] if answer is None else answer.content.blocks
        return tuple(call for call in calls_of(blocks) if call.fault)

    def _newest_calls(self, leaf: Version | None) -> tuple[Version, tuple[ToolUseBlock, ...]]:
        """Return the newest assistant message on the path to *leaf*, and its unanswered calls."""
        answered: set[str] = set()
        for entry in self.backwards(leaf):
            if not isinstance(entry, MessageAppended):
                continue
            said = entry.content
            if said.role == "assistant":
                calls = [call for call in calls_of(said.blocks) if not call.fault]
                open_calls = (call for call in calls if call.id not in answered)
                return entry.originator_version, tuple(ToolUseBlock(c.raw) for c in open_calls)
            answered.update(result["tool_use_id"] for result in said.tool_results)
        return 0, ()

    def _newest_answer(self, leaf: Version | None) -> MessageAppended | None:
        """Return the newest assistant message on the path to *leaf*."""
        for entry in self.backwards(leaf):
            if isinstance(entry, MessageAppended) and entry.content.role == "assistant":
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
        tree = self._reach(1)
        for place in reversed(tree.started_tools.get(tool_use_id, [])):
            for version, entry in tree.entries.items():
                is_next = place is not None and tree.parents[version] == place
                if is_next and isinstance(entry, MessageAppended) and entry.content.tool_results:
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
        kept, places = source._path_from(first_kept), dict[Version, Version]()
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
            places[entry.originator_version] = self.version
        self._keep_withheld(source, places)
        for name, limits in source.limits.items():
            self.learn_limits(name, **limits._asdict())
        self._trigger(
            events.Forked,
            source_id=source.id,
            source_version=source.version,
            entry=source.leaf,
        )

    def _keep_withheld(self, source: Conversation, places: Mapping[Version, Version]) -> None:
        """Send none of what *source* sends no more; *places* tells where its entries are now."""
        groups: dict[tuple[str, str], list[Version]] = {}
        for model, version, kind in sorted(source.withheld):
            if version in places:
                groups.setdefault((model, kind), []).append(places[version])
        for (model, kind), targets in groups.items():
            self._trigger(
                events.ContentWithheld,
                targets=tuple(targets),
                kinds=(kind,),
                model=model,
                reason="carried over",
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
