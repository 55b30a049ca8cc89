"""Commands and questions about turns: prompts, also those that wait, answers, notes, the end."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.commands.trigger import Commands, raw_json
from domain.errors import InvalidCommandError
from domain.messages import JsonObject, user_message
from domain.seals import is_sealed
from domain.text import valid, valid_json

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from domain.events import Version


class TurnCommands(Commands):
    """What the user, the model and an embedding program say."""

    Event = events.Event

    def append_prompt(self, text: str, attachments: Sequence[JsonObject] = ()) -> None:
        """Append what the user says, and the content blocks that go with it.

        Raises:
            InvalidCommandError: *text* is blank; the API would refuse it (case B4).
        """
        if not text.strip():
            raise InvalidCommandError("A prompt needs some text.")
        self._append(events.MessageAppended, message=raw_json(user_message(text, attachments)))

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
        self._trigger(
            events.MessageAppended,
            with_seal=has_calls,
            parent=self.leaf if answers is None else answers,
            message=raw_json({"role": "assistant", "content": content}),
            model=self.model if model is None else model,
            stop_reason=stop_reason,
            usage=usage,
            response_id=response_id,
            duration=duration,
            request_digest=request_digest,
            request_version=request_version,
            projection=projection,
        )

    def append_note(self, kind: str, content: str, *, visible: bool) -> None:
        """Append something that is no message; *visible* says whether the model sees it."""
        self._append(events.NoteAppended, kind=kind, content=content, visible=visible)

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
            spent=spent or {},
            lost=lost or {},
        )

    # -- prompts that wait -----------------------------------------------------------------------

    @property
    def queue(self) -> dict[Version, str]:
        """The prompts that wait to be sent, by their versions: those that were typed here."""
        return {version: event.text for version, event in self._queued(is_ours=True)}

    @property
    def held_back(self) -> dict[Version, str]:
        """The prompts that wait in this log and were not typed here: they are never sent."""
        return {version: event.text for version, event in self._queued(is_ours=False)}

    def _queued(self, *, is_ours: bool) -> Iterator[tuple[Version, events.PromptQueued]]:
        for version, event in self.queued.items():
            if is_sealed(event, self.seals) == is_ours:
                yield version, event

    def queue_prompt(self, text: str) -> None:
        """Keep what was typed while a turn runs."""
        if not text.strip():
            raise InvalidCommandError("A prompt needs some text.")
        self._trigger(events.PromptQueued, text=text, with_seal=True)

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


def _recordable(raw: JsonObject) -> JsonObject:
    """Return *raw* as the log can hold it; thinking that had to be changed loses its signature.

    The API takes thinking back byte for byte, or refuses the request (case C2).
    """
    block: JsonObject = valid_json(raw)
    if block != raw and block.get("type") in ("thinking", "redacted_thinking"):
        return block | {"signature" if block["type"] == "thinking" else "data": ""}
    return block
