"""Commands about how requests are made, and about the conversation as a whole."""

from __future__ import annotations

from typing import TYPE_CHECKING

from domain import events
from domain.commands.trigger import Commands, raw_json
from domain.errors import InvalidCommandError
from domain.limits import Limits
from domain.seals import is_own_directory
from domain.text import valid
from domain.thinking import THINKING_LEVELS

if TYPE_CHECKING:
    from collections.abc import Sequence

    from domain.events import Version
    from domain.messages import JsonObject


class SettingCommands(Commands):
    """Model, instructions, what is not sent; the name, and whether lists show it."""

    Event = events.Event

    def works_here(self) -> bool:
        """Whether the conversation was begun here in its directory."""
        return self.cwd is None or is_own_directory(self.cwd, self.cwd_seal, self.seals)

    @property
    def known_limits(self) -> Limits:
        """What the server of today's model has said of its limits."""
        return self.limits.get(self.model or "", Limits())

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
        system, raw = valid(system), raw_json(tools)
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
