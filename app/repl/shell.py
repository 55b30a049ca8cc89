"""``!cmd``: a command that the person runs, now; its output is a note in the conversation."""

from __future__ import annotations

from typing import TYPE_CHECKING

from app.i18n import _
from app.places import side_files
from domain.errors import InvalidCommandError
from domain.messages import ToolUseBlock

if TYPE_CHECKING:
    from app.repl.desk import Desk
    from domain.conversation import Conversation
    from domain.tool_use import ToolOutput

_SECONDS = 3600.0


async def run(desk: Desk, typed: str) -> None:
    """Run what stands after ``!``; after ``!!``, the model is not told.

    Raises:
        InvalidCommandError: there is no command.
    """
    from infrastructure.tools.bash import Bash  # noqa: PLC0415 - only here
    from infrastructure.tools.output import StoppedError, ToolContext  # noqa: PLC0415

    line = typed.lstrip("!").strip()
    if not line:
        raise InvalidCommandError(_("!COMMAND runs a command, !!COMMAND keeps it from the model."))
    factory, screen = desk.factory, desk.screen
    factory.hold(desk.open_conversation.id)
    conversation = desk.conversation
    call = ToolUseBlock(
        {"id": f"shell-{conversation.version}", "name": "bash", "input": {"command": line}}
    )
    context = ToolContext(
        cwd=desk.directory,
        side_files=side_files(factory.settings.home, conversation.id),
        tool_use_id=call.id,
        masks=factory.settings.keys.mask_secrets,
        on_output=lambda text: screen.tool_printed(call, text),
    )
    is_visible = not typed.startswith("!!")
    screen.tool_started(call, f"$ {line}")
    try:
        output = await Bash().run({"command": line, "timeout": _SECONDS}, context)
    except StoppedError as stopped:
        _end(desk, call, stopped.output, visible=is_visible)
        raise
    _end(desk, call, output, visible=is_visible)
    if not is_visible:
        desk.say(_("(the model is not told)"), "dim")


def _end(desk: Desk, call: ToolUseBlock, output: ToolOutput, *, visible: bool) -> None:
    content = (
        f"(The user ran this command: $ {call.input['command']}\n{str(output.content).strip()}\n)"
    )

    def append(conversation: Conversation) -> None:
        conversation.close_open_calls()
        conversation.append_note("shell", content, visible=visible)

    try:
        desk.open_conversation.record(append)
    finally:  # it has run: what it printed is shown even if the log cannot take it
        desk.screen.tool_ended(call, output)
        desk.screen.rest()
