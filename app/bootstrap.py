"""Puts the parts together: the only place that names concrete classes.

What only a turn needs (the loop, the tools, the model) is imported where it is made, so that
commands that only look at logs start at once.
"""

from __future__ import annotations

import os
from contextlib import ExitStack, asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from eventsourcing.persistence import Mapper, PersistenceError

from app import PROGRAM, VERSION, instructions, leases
from app.application import Conversations
from app.open_conversation import OpenConversation, require_known
from app.places import side_files
from app.settings import OFFLINE_MODEL, Settings
from domain.conversation import Conversation
from infrastructure.errors import SettingsError
from infrastructure.model.environment import knows_caching

if TYPE_CHECKING:
    from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
    from datetime import datetime
    from decimal import Decimal
    from uuid import UUID

    from app.agent import Agent
    from app.compactor import Compactor
    from app.elsewhere import Elsewhere
    from app.leases import Lease
    from app.ports import Approver, Model, Screen
    from domain.messages import JsonObject
    from infrastructure.tools import Toolbox

SURELY_FITS = 100_000
"""Tokens that fit every model of the price list: up to here it need not be loaded."""
LARGE_WINDOW = 200_000
"""Every model that the price list knows has at least this window, or all the room it asks for."""

_TOPICS = ("PERSISTENCE_MODULE", "CIPHER_TOPIC", "COMPRESSOR_TOPIC")
"""Variables of the library that name code."""


def conversations(settings: Settings, elsewhere: Elsewhere | None = None) -> Conversations:
    """Return the application over the store (or the persistence module) of these settings.

    *elsewhere* says what is other than in these, for the other side of a copy.

    Raises:
        SettingsError: the environment names a module, a key or a compressor that is none.
        UsageError: what is said of *elsewhere* makes no sense.
    """
    changes = elsewhere.environment(settings.store) if elsewhere else {}
    try:
        found = Conversations(settings.environment | changes, home=settings.home)
        _try_out(found.mapper)
    except PersistenceError:
        raise
    except Exception as error:  # the library, and what it was told to use, raise what they like
        named = os.environ | changes
        said = (f"{name}={named[name]}" for name in _TOPICS if named.get(name))
        names = ", ".join([*said, "CIPHER_KEY"])
        why = error.__cause__ or error
        raise SettingsError(f"a setting means nothing ({names}): {why}") from error
    return found


def _try_out(mapper: Mapper[UUID]) -> None:
    """Take a byte through the compressor and the cipher: any topic may be named as one."""
    text = b"."
    if mapper.compressor is not None:
        text = mapper.compressor.decompress(mapper.compressor.compress(text))
    if mapper.cipher is not None:
        mapper.cipher.decrypt(mapper.cipher.encrypt(text))


@asynccontextmanager
async def model(settings: Settings) -> AsyncIterator[Model]:
    """Run with the model of these settings: the API's, or the offline model on loopback.

    The offline model's server starts with the first request: the prompt does not wait for it.
    """
    from infrastructure.model.client import AnthropicModel  # noqa: PLC0415

    with ExitStack() as servers:

        def offline_url() -> str:
            from infrastructure.model.offline_server import OfflineServer  # noqa: PLC0415

            return servers.enter_context(OfflineServer()).url

        if settings.is_offline:
            client = AnthropicModel(base_url=offline_url, api_key=OFFLINE_MODEL)
        else:
            client = AnthropicModel(idle_limit=settings.keys.idle_limit)
        try:
            yield client
        finally:
            await client.close()


@dataclass(frozen=True)
class AgentFactory:
    """Makes conversations and agents by one set of settings.

    *notices* are what a person should know before they begin.
    """

    settings: Settings
    conversations: Conversations
    model: Model
    leases: dict[UUID, Lease] = field(default_factory=dict)
    notices: Sequence[str] = ()

    def hold(self, conversation_id: UUID) -> None:
        """Take the lease of a conversation, until this program ends; others are told who has it.

        Raises:
            LeaseHeldError: another program has it.
        """
        if conversation_id not in self.leases:
            lease = leases.lease(self.conversations, conversation_id)
            if lease is not None:
                self.leases[conversation_id] = lease

    def let_go(self, conversation_id: UUID) -> None:
        """Give the lease of a conversation back: others, and the trash, may have it."""
        lease = self.leases.pop(conversation_id, None)
        if lease is not None:
            lease.release()

    def start(self, earlier: UUID | None = None) -> OpenConversation:
        """Return the conversation that the program starts with: *earlier*, or a new one.

        What the flags say is recorded in it. Those that come later know nothing of them, but the
        new ones have the same model and thinking level.

        Raises:
            LeaseHeldError: another program has it open.
        """
        chosen = self.settings
        if earlier is None:
            return self.conversations.start(partial(self._begin, name=chosen.name))
        open_conversation = self.resume(earlier, chosen.model)
        if chosen.thinking is not None:
            open_conversation.record(
                partial(Conversation.change_thinking_level, level=chosen.thinking)
            )
        if chosen.name is not None:
            open_conversation.record(partial(Conversation.rename, name=chosen.name))
        return open_conversation

    def begin_new(self) -> OpenConversation:
        """Return a new conversation, which is in the store from its first prompt on."""
        return self.conversations.start(self._begin)

    async def rotate(self, old: OpenConversation, screen: Screen) -> OpenConversation:
        """Return a new conversation that begins from a summary of *old* and its recent past.

        Raises:
            ModelError: there was no good summary; nothing was recorded.
        """
        carry_over = await self.compactor(old, screen).rotated()
        source = old.conversation

        def begin(conversation_id: UUID, timestamp: datetime) -> Conversation:
            conversation = self._begin(conversation_id, timestamp)
            self.change_model(conversation, self.settings.model or self._model_of(source))
            conversation.change_thinking_level(source.thinking_level or "off")
            return conversation

        new = self.conversations.start(begin)
        new.record(carry_over)
        return new

    def resume(self, conversation_id: UUID, model: str | None = None) -> OpenConversation:
        """Return an earlier conversation; it goes on with *model*, else with the one that it had.

        Raises:
            LeaseHeldError: another program has it open.
        """
        is_held = conversation_id in self.leases
        self.hold(conversation_id)
        try:
            open_conversation = self.conversations.open(conversation_id)
            require_known(open_conversation.conversation)
            model = model or self._model_of(open_conversation.conversation)
            limits = self.settings.keys.context_window or self.settings.keys.max_tokens
            if open_conversation.conversation.model != model or limits:
                open_conversation.record(partial(self.change_model, model=model))
        except BaseException:
            if not is_held:
                self.let_go(conversation_id)
            raise
        return open_conversation

    def agent(
        self,
        open_conversation: OpenConversation,
        *,
        approver: Approver,
        screen: Screen,
        attach: Callable[[str], Awaitable[Sequence[JsonObject]]] | None = None,
    ) -> Agent:
        """Return an agent for the open conversation, working in its directory.

        *attach* returns what goes with a queued prompt.
        """
        from app.agent import Agent, nothing  # noqa: PLC0415
        from app.tool_calls import ToolCalls  # noqa: PLC0415
        from app.turn_limits import TurnLimits  # noqa: PLC0415

        self.hold(open_conversation.id)
        cwd = working_directory(open_conversation.conversation, self.settings.cwd)
        toolbox = self._toolbox(open_conversation.conversation)
        return Agent(
            open_conversation=open_conversation,
            compactor=self.compactor(open_conversation, screen),
            model=self.model,
            limits=TurnLimits(self.settings.keys.max_requests, self.settings.keys.max_cost, _cost),
            tool_calls=ToolCalls(open_conversation, toolbox, approver, screen, cwd=cwd),
            screen=screen,
            prepare=partial(self._instruct, toolbox=toolbox),
            attach=attach or nothing,
        )

    def _toolbox(self, conversation: Conversation) -> Toolbox:
        from infrastructure.tools import TOOLS, Toolbox  # noqa: PLC0415

        return Toolbox(
            cwd=Path(working_directory(conversation, self.settings.cwd)),
            side_files=side_files(self.settings.home, conversation.id),
            tools=[tool for tool in TOOLS if tool.name in self.settings.tools],
            masks=self.settings.keys.mask_secrets,
        )

    def _instruct(self, conversation: Conversation, toolbox: Toolbox) -> None:
        """Record the system prompt and the tools in *conversation*, if they have changed."""
        cwd = working_directory(conversation, self.settings.cwd)
        system = instructions.system_prompt(
            cwd,
            instructions.context_files(self.settings.home, cwd),
            tools=toolbox.tools,
            surroundings=instructions.surroundings(
                cwd, conversation, instructions.project_root(cwd)
            ),
            replacement=self.settings.system_prompt,
            addition=self.settings.append_system_prompt,
        )
        conversation.change_instructions(system, toolbox.definitions())

    def foreseen(self, conversation: Conversation) -> Conversation:
        """Return a copy of *conversation* with the instructions that its next request has."""
        pending: list[Any] = list(conversation.pending_events)
        copy = Conversation.replay(None, pending) or self.conversations.get(
            conversation.id, version=conversation.version
        )
        if copy.instructions is None:
            self._instruct(copy, self._toolbox(copy))
        return copy

    def compactor(self, open_conversation: OpenConversation, screen: Screen) -> Compactor:
        """Return what makes room in the open conversation."""
        from app.compactor import Compactor  # noqa: PLC0415

        fits = 0 if self.settings.keys.context_window else SURELY_FITS
        return Compactor(open_conversation, self.model, screen, self.window_of, surely_fits=fits)

    def window_of(self, model: str) -> int:
        """Return how many tokens *model* can take in: what the settings say, or what is known."""
        from infrastructure.model.prices import context_window  # noqa: PLC0415 - half a second

        return self.settings.keys.context_window or context_window(model)

    def change_model(self, conversation: Conversation, model: str) -> None:
        """Let *model* answer from here on, with as much room for answers as its window gives.

        A larger window in the settings is the person's word against what a server once said.
        """
        from domain.limits import Room  # noqa: PLC0415

        window, most = self.settings.keys.context_window, self.settings.keys.max_tokens
        reserve = Room.of(window or LARGE_WINDOW).reserve
        caching = self.settings.is_offline or knows_caching()
        conversation.change_model(model, max_tokens=min(most or reserve, reserve), caching=caching)
        if window and conversation.known_limits.within(window) < window:
            conversation.learn_limits(model, context_window=window)

    def _begin(
        self, conversation_id: UUID, timestamp: datetime, name: str | None = None
    ) -> Conversation:
        conversation = Conversation.start(
            conversation_id,
            timestamp=timestamp,
            cwd=self.settings.cwd,
            program=PROGRAM,
            version=VERSION,
            seals=self.conversations.seals,
        )
        self.change_model(conversation, self.settings.first_model)
        conversation.change_thinking_level(self.settings.first_thinking)
        if name is not None:
            conversation.rename(name)
        return conversation

    def _model_of(self, conversation: Conversation) -> str:
        """Return the recorded model, or the default; the offline model only while offline."""
        if self.settings.is_offline:
            return OFFLINE_MODEL
        if conversation.model in (None, OFFLINE_MODEL):
            return self.settings.keys.model
        return str(conversation.model)


def working_directory(conversation: Conversation, launched_in: str) -> str:
    """Return where tools run: the conversation's own directory, if it is still there (case H6).

    A directory that only the log speaks for is none: it may come from anywhere. Where the person
    is, they are on purpose.
    """
    if (
        conversation.cwd is not None
        and conversation.works_here()
        and Path(conversation.cwd).is_dir()
    ):
        return conversation.cwd
    return launched_in


def _cost(model: str | None, usage: JsonObject) -> Decimal | None:
    from infrastructure.model.prices import cost  # noqa: PLC0415 - half a second

    return cost(model, usage)
