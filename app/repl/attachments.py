"""``@file`` in a prompt: what is in the file goes with the message, and into the log.

The content is stored, not the path: a file that is gone tomorrow breaks nothing (case I6). The
limits are those of the tool that reads files: text is capped, an image that the API would refuse
is not attached (case I4).
"""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

from app.i18n import _
from app.view.plain import one_line
from app.view.transcript import ATTACHED

if TYPE_CHECKING:
    from pathlib import Path

    from app.repl.desk import Desk
    from domain.messages import JsonObject

_MENTION = re.compile(r'(?:(?<=\s)|^)@(?:"([^"\n]+)"|([^\s"]+))')
_WIDTH_OF_NAMES = 200
_ENDS_SENTENCE = ".,;:!?)。，；：！？）"


class Attachments:
    """Attaches the files that prompts at the *desk* mention, and says what became of each."""

    def __init__(self, desk: Desk) -> None:
        self._desk = desk
        self._unsaid: dict[str, list[tuple[str, str]]] = {}  # by the queued prompt

    async def of(self, prompt: str) -> list[JsonObject]:
        """Return the blocks of the files that *prompt* mentions as ``@path`` or ``@"path"``."""
        blocks = await self.of_queued(prompt)
        self.say_of(prompt)
        return blocks

    async def of_queued(self, prompt: str) -> list[JsonObject]:
        """Return the same for a queued prompt: what became of its files is said below it."""
        directory = self._desk.directory
        mentioned = dict.fromkeys(match[1] or match[2] for match in _MENTION.finditer(prompt))
        files = {path: _existing(path, directory) for path in mentioned}
        blocks: list[JsonObject] = []
        notices = self._unsaid[prompt] = []
        for path in dict.fromkeys(filter(None, files.values())):
            added, problem = await _blocks(path, directory)
            blocks += added
            if problem:
                notices.append((_("not attached: {problem}").format(problem=problem), "yellow"))
            else:
                notices.append((_("attached {path}").format(path=path), "dim"))
        if missing := [f"@{path}" for path, file in files.items() if file is None]:
            names = one_line(", ".join(missing), _WIDTH_OF_NAMES)
            notices.append((_("no such file, sent as text: {names}").format(names=names), "yellow"))
        return blocks

    def say_of(self, prompt: str) -> None:
        """Say what became of the files of *prompt*, once."""
        for line, style in self._unsaid.pop(prompt, ()):
            self._desk.say(line, style)


def _existing(path: str, cwd: Path) -> str | None:
    """Return the path of a regular file; ``@a.py,`` at the end of a clause means ``a.py``."""
    from infrastructure.errors import ToolError  # noqa: PLC0415
    from infrastructure.tools.files import resolve  # noqa: PLC0415 - only for attachments

    for candidate in (path, path.rstrip(_ENDS_SENTENCE)):
        try:
            if candidate and resolve(candidate, cwd).is_file():
                return candidate
        except (OSError, ValueError, ToolError):
            continue
    return None


async def _blocks(path: str, cwd: Path) -> tuple[list[JsonObject], str]:
    """Return the blocks of a file; or none, and why it does not go with the prompt."""
    from infrastructure.tools.output import ToolContext  # noqa: PLC0415
    from infrastructure.tools.read import Read  # noqa: PLC0415

    context = ToolContext(cwd=cwd, side_files=cwd, tool_use_id="attachment")
    output = await Read().run({"path": path}, context)
    if output.is_error:
        return [], str(output.content)
    if isinstance(output.content, str):
        text = f"{ATTACHED}{path}:\n{output.content.rstrip()}\n)"
        return [{"type": "text", "text": text}], ""
    images = [block for block in output.content if block.get("type") == "image"]
    return [{"type": "text", "text": f"{ATTACHED}{path})"}, *images], ""
