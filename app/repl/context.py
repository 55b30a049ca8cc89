"""What the REPL is made of: the parts that `app.repl.opening` puts together."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Protocol

from app.repl.attention import Attention

if TYPE_CHECKING:
    from collections.abc import Callable

    from rich.console import Console

    from app.bootstrap import AgentFactory
    from app.open_conversation import OpenConversation
    from app.ports import Approver, Screen
    from app.repl.bottom import Bottom
    from app.repl.prompt import Prompts
    from app.repl.screen import ReplScreen

    class TurnScreen(Screen, ReplScreen, Protocol):
        """Who watches turns, and what is between them."""


@dataclass(kw_only=True)
class ReplContext:
    """What the REPL works with.

    Attributes:
        console: Where it prints.
        screen: Who watches the turns.
        prompts: Where prompts come from.
        factory: Makes conversations, and the agents that work in them.
        open_conversation: The conversation to talk in: new, or resumed.
        make_approver: Makes the approver of a conversation: what it was told once holds in that
            conversation only.
        banner: What is said first.
        first: What is done first, as if it had been typed.
        on_switch: Told which conversation is at hand, now and whenever another one is.
        attention: Calls the person who looks elsewhere.
        line: What is typed while the agent works is read from here, if anywhere.
        is_debugging: Whether unexpected errors show their traceback.
    """

    console: Console
    screen: TurnScreen
    prompts: Prompts
    factory: AgentFactory
    open_conversation: OpenConversation
    make_approver: Callable[[OpenConversation], Approver]
    banner: str = ""
    first: str = ""
    on_switch: Callable[[OpenConversation], None] = lambda _: None
    attention: Attention = field(default_factory=lambda: Attention(lambda _: None))
    line: Bottom | None = None
    is_debugging: bool = False
