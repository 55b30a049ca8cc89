"""What a model can have done on this machine: run a command, look around, read and change files.

Tools act and answer; they know nothing of events. The loop records before and after.
"""

from __future__ import annotations

from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Final

from domain.tool_use import Plan, ToolOutput
from infrastructure.tools.bash import Bash
from infrastructure.tools.changing import Write
from infrastructure.tools.edit import EditTool
from infrastructure.tools.looking import Find, Grep, Ls
from infrastructure.tools.output import ToolContext
from infrastructure.tools.read import Read
from infrastructure.tools.tool import Tool

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from domain.messages import JsonObject, ToolUseBlock

__all__ = ["TOOLS", "Tool", "ToolContext", "ToolOutput", "Toolbox"]

TOOLS: Final[tuple[Tool[Any], ...]] = (
    Bash(), Read(), Write(), EditTool(), Ls(), Find(), Grep()
)  # fmt: skip


class Toolbox:
    """Runs calls by name in the directory *cwd*; full outputs go into the folder *side_files*.

    Known secrets are masked in both, if it *masks*.
    """

    def __init__(
        self,
        *,
        cwd: Path,
        side_files: Path,
        tools: Iterable[Tool[Any]] = TOOLS,
        masks: bool = True,
    ) -> None:
        self.tools = MappingProxyType({tool.name: tool for tool in tools})
        self._cwd = cwd
        self._side_files = side_files
        self._masks = masks

    def definitions(self) -> list[JsonObject]:
        """Return the tools as the API takes them."""
        return [tool.definition() for tool in self.tools.values()]

    async def plan(self, call: ToolUseBlock, seen: Mapping[str, str]) -> Plan:
        """Find out what *call* would do; an unknown tool, too, is a problem for the model.

        *seen* are the files that the model knows whole, and the digest of each.
        """
        tool = self.tools.get(call.name)
        if tool is None:
            return Plan(problem=self._no_such_tool(call.name))
        return await tool.plan(call.input, self._context(call, seen=seen))

    async def run(
        self,
        call: ToolUseBlock,
        on_output: Callable[[str], None],
        *,
        state: object,
        seen: Mapping[str, str],
    ) -> ToolOutput:
        """Run *call* to its end, on the *state* on which it was planned and on no other.

        Whatever goes wrong is a result.
        """
        tool = self.tools.get(call.name)
        if tool is None:
            return self._no_such_tool(call.name)
        context = self._context(call, seen=seen, on_output=on_output, state=state)
        return await tool.run(call.input, context)

    def _context(self, call: ToolUseBlock, **more: Any) -> ToolContext:
        return ToolContext(
            cwd=self._cwd,
            side_files=self._side_files,
            tool_use_id=call.id,
            masks=self._masks,
            **more,
        )

    def _no_such_tool(self, name: str) -> ToolOutput:
        names = ", ".join(self.tools)
        return ToolOutput(f"There is no tool {name[:80]!r}; there are: {names}.", is_error=True)
