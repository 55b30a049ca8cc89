"""The tools at hand in one conversation: where they run, and where long outputs go."""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any

from infrastructure.tools import TOOLS, Tool, ToolContext, ToolOutput

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from domain.messages import JsonObject, ToolUseBlock


class Toolbox:
    """Runs calls by name in the directory *cwd*; full outputs go into the folder *side_files*."""

    def __init__(self, *, cwd: Path, side_files: Path, tools: Iterable[Tool[Any]] = TOOLS) -> None:
        self.tools = MappingProxyType({tool.name: tool for tool in tools})
        self._cwd = cwd
        self._side_files = side_files

    def definitions(self) -> list[JsonObject]:
        """Return the tools as the API takes them."""
        return [tool.definition() for tool in self.tools.values()]

    async def run(self, call: ToolUseBlock, on_output: Callable[[str], None]) -> ToolOutput:
        """Run *call* to its end; an unknown tool, too, is a result for the model."""
        tool = self.tools.get(call.name)
        if tool is None:
            names = ", ".join(self.tools)
            return ToolOutput(f"There is no tool {call.name!r}; there are: {names}.", is_error=True)
        context = ToolContext(
            cwd=self._cwd,
            side_files=self._side_files,
            tool_use_id=call.id,
            on_output=on_output,
        )
        return await tool.run(call.input, context)
